/** The values and descriptions of one quantity. */
import type { Quantity, Run } from "../types";
import { inWords } from "./directions";
import { digitsOf, present, show, signed, valueAndInterval } from "./numbers";

export const keyOf = (quantity: { measure: string; name: string }): string => `${quantity.measure}/${quantity.name}`;

/** The key of the quantity shown initially: the first with a description that is not a fixed offset, else the first one. */
export function first(quantities: readonly { measure: string; name: string; about: string }[]): string {
  const found = quantities.find(({ name, about }) => about && !name.startsWith("offset_")) ?? quantities[0];
  return found ? keyOf(found) : "";
}

/** A quantity's name with its description: `previous: to the previous token`. */
export function titled({ name, about }: { name: string; about: string }): string {
  const label = name.replace(/ \(.*\)$/, ""); // removed from the start of `about`
  return about ? `${inWords(name)}: ${about.startsWith(`${label}: `) ? about.slice(label.length + 2) : about}` : inWords(name);
}

/** A quantity with all values missing, for a slice with too few cases. */
export function emptied(quantity: Quantity): Quantity {
  const nothing = quantity.value.map(() => null);
  return { ...quantity, value: nothing, low: nothing, high: nothing, baseline: nothing, documents: nothing, n: quantity.n.map(() => 0) };
}

/** The options of a select of quantities, grouped by measure. */
export function grouped(quantities: readonly { measure: string; name: string }[]): { group: string; options: [string, string][] }[] {
  const measures = [...new Set(quantities.map(({ measure }) => measure))];
  return measures.map((group) => ({
    group,
    options: quantities.filter(({ measure }) => measure === group).map((quantity) => [keyOf(quantity), inWords(quantity.name)]),
  }));
}

/** The difference between a head's value and its baseline; null if either is missing. */
export function lift(quantity: Quantity, at: number): number | null {
  const value = quantity.value[at] ?? null, baseline = quantity.baseline[at] ?? null;
  return value === null || baseline === null ? null : value - baseline;
}

/** Whether a head's whole interval is above its baseline. */
export function clearlyAbove(quantity: Quantity, at: number): boolean {
  const low = quantity.low[at] ?? null, baseline = quantity.baseline[at] ?? null;
  return low !== null && baseline !== null && low > baseline;
}

/** A head's rank by value (1 for the largest) and the number of heads with a value; null if the head has no value. */
export function rank(quantity: Quantity, at: number): { place: number; of: number } | null {
  const value = quantity.value[at] ?? null;
  if (value === null) return null;
  const known = present(quantity.value);
  return { place: 1 + known.filter((other) => other > value).length, of: known.length };
}

/** The name of a quantity's baseline: "even", "best fixed offset". */
export const ruleOf = (run: Run, quantity: Quantity): string => run.contests.find(({ measure }) => measure === quantity.measure)?.rule ?? quantity.baseline_name;

/** The lines of a tooltip: value with interval, baseline, n. */
export function facts(run: Run, quantity: Quantity, at: number): string[] {
  const baseline = quantity.baseline[at] ?? null;
  const value = quantity.value[at] ?? null;
  if (value === null) return [`${inWords(quantity.name)}: no value`];
  const digits = digitsOf(quantity.value);
  return [
    `${inWords(quantity.name)} ${valueAndInterval(value, quantity.low[at], quantity.high[at], digits)}`,
    ...(baseline === null ? [] : [`${ruleOf(run, quantity)} ${show(baseline, digits)}, above it ${signed(value - baseline, digits)}`]),
    sized(run, quantity, quantity.n[at] ?? 0, quantity.documents[at] ?? null),
  ];
}

/** The unit of a quantity's n: "words", "texts"; "" if it is unknown. */
function unitOf(run: Run, { measure }: Quantity): string {
  const figure = run.curves.find(({ panels }) => panels.some((panel) => panel.measure === measure));
  return run.contests.find((contest) => contest.measure === measure)?.counted ?? /^[\d,]+ (\w+)$/.exec(figure?.n ?? "")?.[1] ?? "";
}

function sized(run: Run, quantity: Quantity, n: number, documents: number | null): string {
  const unit = unitOf(run, quantity);
  return `n = ${n.toLocaleString("en")}${unit && ` ${unit}`}${documents === null ? "" : `, ${documents.toLocaleString("en")} document${documents === 1 ? "" : "s"}`}`;
}

/** The sample size of a quantity: `n = 347 texts, 19 documents`, `n = 627 words`. */
export const sampleSize = (run: Run, quantity: Quantity): string =>
  sized(run, quantity, Math.max(0, ...quantity.n), quantity.documents.every((n) => n === null) ? null : Math.max(...present(quantity.documents)));

/** The phrase about intervals in a caption; "" if there are no intervals. */
export const withIntervals = (low: readonly (number | null)[]): string => (present(low).length ? " with 95% intervals" : "");
