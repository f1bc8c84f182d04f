/** What is known of one head in one quantity. */
import { digitsOf, present, signed, spelled } from "./shade";
import type { Quantity, Run } from "./types";
import { show } from "./ui";

export const keyOf = (quantity: { measure: string; name: string }): string => `${quantity.measure}/${quantity.name}`;

/** The key of the quantity to begin with: the first that there are words for. */
export function first(quantities: readonly { measure: string; name: string; about: string }[]): string {
  const found = quantities.find(({ about }) => about) ?? quantities[0];
  return found ? keyOf(found) : "";
}

/** A quantity's name with what it is: `previous: to the previous token`. */
export function titled({ name, about }: { name: string; about: string }): string {
  return !about ? name : about.startsWith(`${name}:`) ? about : `${name}: ${about}`;
}

/** What a select of quantities offers: those of a measure together. */
export function grouped(quantities: readonly { measure: string; name: string }[]): { group: string; options: [string, string][] }[] {
  const measures = [...new Set(quantities.map(({ measure }) => measure))];
  return measures.map((group) => ({
    group,
    options: quantities.filter(({ measure }) => measure === group).map((quantity) => [keyOf(quantity), quantity.name]),
  }));
}

/** How far a head is above its baseline. */
export function lift(quantity: Quantity, at: number): number | null {
  const value = quantity.value[at] ?? null, baseline = quantity.baseline[at] ?? null;
  return value === null || baseline === null ? null : value - baseline;
}

/** Whether all of a head's interval is above its baseline. */
export function clearlyAbove(quantity: Quantity, at: number): boolean {
  const low = quantity.low[at] ?? null, baseline = quantity.baseline[at] ?? null;
  return low !== null && baseline !== null && low > baseline;
}

/** A head's place when heads are sorted by value, the largest first, and how many there are; null without a value. */
export function rank(quantity: Quantity, at: number): { place: number; of: number } | null {
  const value = quantity.value[at] ?? null;
  if (value === null) return null;
  const known = present(quantity.value);
  return { place: 1 + known.filter((other) => other > value).length, of: known.length };
}

/** Lines of a note: value with interval, baseline, n. */
export function facts(quantity: Quantity, at: number): string[] {
  const baseline = quantity.baseline[at] ?? null;
  const value = quantity.value[at] ?? null;
  if (value === null) return [`${quantity.name}: no value`];
  const digits = digitsOf(quantity.value);
  return [
    `${quantity.name} ${spelled(value, quantity.low[at], quantity.high[at], digits)}`,
    ...(baseline === null ? [] : [`${quantity.baseline_name} ${show(baseline, digits)}, above it ${signed(value - baseline, digits)}`]),
    `n = ${(quantity.n[at] ?? 0).toLocaleString("en")}`,
  ];
}

/** How much a quantity rests on: `347`, `627 words`. */
export function sampleSize(run: Run, quantity: Quantity): string {
  const most = quantity.n.reduce((a, b) => Math.max(a, b), 0);
  const counted = run.contests.find(({ measure }) => measure === quantity.measure)?.counted;
  return most.toLocaleString("en") + (counted ? ` ${counted}` : "");
}
