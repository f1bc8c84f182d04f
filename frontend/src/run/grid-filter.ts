/** The filter of the grid of heads, and its description in captions. */
import { inWords } from "../data/directions";
import type { Head } from "../data/heads";
import { show } from "../data/numbers";
import { lift, ruleOf } from "../data/quantity";
import type { Quantity, Run } from "../types";
import type { GridState } from "./grid-state";

interface Layers {
  has: (layer: number) => boolean;
  words: string; // "" if all layers pass
  trouble: string; // a message about layers that do not exist
}

/**
 * The layers in a list such as "3, 5-8". Parts that match no layer are reported in `trouble`. If the list is empty or no
 * part matches, all layers pass.
 */
export function layersIn(list: string, heads: readonly { head: Head }[]): Layers {
  const known = [...new Set(heads.map(({ head }) => head.layer))].sort((a, b) => a - b), last = known.at(-1) ?? 0;
  const named = new Set<number>(), missing: string[] = [], kept: string[] = [];
  for (const part of list.split(/[\s,;]+/).filter(Boolean)) {
    const [, from, to] = /^(\d+)(?:[-–](\d*))?$/.exec(part) ?? []; // "5-" is incomplete input for "5-8"
    const ends = [Number(from), Number(to || from)].sort((a, b) => a - b) as [number, number];
    const found = from === undefined ? [] : known.filter((layer) => layer >= ends[0] && layer <= ends[1]);
    for (const layer of found) named.add(layer);
    if (found.length) kept.push(found.length > 1 ? `${found[0]}-${found.at(-1)}` : String(found[0]));
    if (!found.length) missing.push(part);
    else if (ends[1] > last) missing.push(String(ends[1]));
  }
  return {
    has: (layer) => !named.size || named.has(layer),
    words: kept.length ? `layer${named.size > 1 ? "s" : ""} ${kept.join(", ")}` : "",
    trouble: missing.length ? `There is no layer ${missing.join(", ")}: the layers are ${known[0]} to ${last}.` : "",
  };
}

/** The side of the baseline with the heads of interest: above for shares, below for other quantities (low entropy means focus). */
export const side = (quantity: Quantity): "above" | "below" => (quantity.share ? "above" : "below");

/** Whether each head passes the filter. `shown` are the values that the slider filters. */
export function passing(heads: readonly { head: Head; at: number }[], quantity: Quantity | undefined, shown: readonly (number | null)[], state: GridState): boolean[] {
  const layers = layersIn(state.layers, heads);
  const beyond = (at: number): boolean => {
    const by = quantity ? lift(quantity, at) : null;
    return by !== null && (side(quantity!) === "above" ? by > 0 : by < 0);
  };
  return heads.map(({ head, at }) => layers.has(head.layer) && (!state.only || !quantity || beyond(at)) && (state.least === null || (shown[at] ?? -Infinity) >= state.least));
}

/**
 * The filter and the order in words: "32 of 144 heads: above even, layers 1-4; in the order of to_sep".
 * "" without a filter and in the order of the model.
 */
export function filterWords(run: Run, heads: readonly { head: Head }[], passes: readonly boolean[], quantity: Quantity | undefined, state: GridState, above: boolean): string {
  const filters = [
    ...(state.only && quantity ? [`${side(quantity)} ${ruleOf(run, quantity)}`] : []),
    ...(state.least !== null && quantity ? [`${above ? `above ${ruleOf(run, quantity)} by ` : ""}at least ${show(state.least)}`] : []),
    layersIn(state.layers, heads).words,
  ].filter(Boolean);
  const order = state.order === "value" && quantity ? `in the order of ${inWords(quantity.name)}` : "";
  const filter = filters.length ? `${passes.filter(Boolean).length} of ${heads.length} heads: ${filters.join(", ")}` : "";
  return [filter, order].filter(Boolean).join("; ");
}
