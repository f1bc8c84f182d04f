/** A summary of a head in one sentence, made from its numbers, and the labels that it is best at. */
import { inWords } from "../data/directions";
import { show, valueAndInterval } from "../data/numbers";
import { clearlyAbove, lift, ruleOf } from "../data/quantity";
import type { Quantity, Run } from "../types";

/** Whether a quantity is from a contest: an accuracy per label and direction. */
export const isContest = (quantity: Quantity): boolean => quantity.direction !== "";

/** A head's labels, each in its better direction, furthest above the baseline first. Labels without a value are left out. */
export function bestLabels(run: Run, at: number, measure?: string): Quantity[] {
  const better = new Map<string, Quantity>();
  for (const quantity of run.quantities) {
    if (!isContest(quantity) || lift(quantity, at) === null || (measure !== undefined && quantity.measure !== measure)) continue;
    const key = `${quantity.measure}/${quantity.label}`, other = better.get(key);
    if (!other || lift(quantity, at)! > lift(other, at)!) better.set(key, quantity);
  }
  return [...better.values()].sort((a, b) => lift(b, at)! - lift(a, at)!);
}

/** The target of the attention that a quantity measures: "to the previous token"; "" for other quantities. */
function target({ name, about }: Quantity): string {
  const offset = /^offset_([+-])(\d+)$/.exec(name);
  if (offset) return `to the token ${offset[2]} ${offset[1] === "+" ? "after" : "before"}`;
  return about.startsWith("to ") ? about : "";
}

const percent = (share: number): string => `${Math.round(share * 100)}%`;

/** The target for which the head's attention is furthest above even attention, in words. */
function surface(run: Run, at: number): string {
  const targets = run.quantities.filter((q) => q.share && !isContest(q) && target(q) && lift(q, at) !== null);
  if (!targets.length) return "";
  const most = targets.reduce((a, b) => (lift(b, at)! > lift(a, at)! ? b : a));
  const value = most.value[at]!, even = most.baseline[at]!;
  const entropy = run.quantities.find((q) => q.name === "entropy" && lift(q, at) !== null);
  const broad = entropy && run.types?.labels.some(({ head, type }) => head === at && type === "broad") ? `attends broadly (entropy ${show(entropy.value[at])}, even attention ${show(entropy.baseline[at])}); ` : "";
  if (value <= even) return `${broad}gives no measured target more than even attention would`;
  return `${broad}gives ${percent(value)} of its attention ${target(most)} (even attention: ${percent(even)})`;
}

/** The best label of a measure for which the head's interval is above the rule, in words. */
function skill(run: Run, at: number, measure: string): string {
  const labels = bestLabels(run, at, measure);
  const rule = labels[0] ? ruleOf(run, labels[0]) : "";
  const best = labels.find((quantity) => clearlyAbove(quantity, at));
  if (!labels.length) return "";
  if (!best) return `in ${measure}, not significantly above the ${rule} for any of ${labels.length} labels`;
  return `best at ${inWords(best.name)}: ${valueAndInterval(best.value[at], best.low[at], best.high[at]).replaceAll(" ", "\u00a0")}, ${rule} ${show(best.baseline[at])}`;
}

/** One sentence about a head; "" if nothing is known. */
export function sentence(run: Run, at: number): string {
  const measures = [...new Set(run.quantities.filter(isContest).map(({ measure }) => measure))];
  const parts = [surface(run, at), ...measures.map((measure) => skill(run, at, measure))].filter(Boolean);
  const text = parts.join("; ");
  return text && `${text[0]!.toUpperCase()}${text.slice(1)}.`;
}
