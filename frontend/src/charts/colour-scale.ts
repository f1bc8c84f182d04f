/** Colour scales for numbers. */
import { scaleLinear } from "d3-scale";
import type { Maybe } from "../data/numbers";
import { present } from "../data/numbers";
import { diverging, LINE, sequential } from "./colour";

/** A colour scale from `low` to `high`: sequential, or diverging and symmetric around 0. */
export interface Shade {
  low: number;
  high: number;
  ticks: number[];
  colour: (value: number) => string;
}

/** The scale for some values: diverging if `centred` or if a value is negative, else sequential from 0. */
export function shadeOf(values: readonly Maybe[], centred = false): Shade {
  const known = present(values);
  const least = known.reduce((a, b) => Math.min(a, b), 0), most = known.reduce((a, b) => Math.max(a, b), 0);
  if (centred || least < 0) {
    const bound = Math.max(-least, most) || 1;
    return { low: -bound, high: bound, ticks: scaleLinear([-bound, bound], [0, 1]).ticks(4), colour: (v) => diverging(v / bound) };
  }
  const high = most || 1;
  return { low: 0, high, ticks: scaleLinear([0, high], [0, 1]).ticks(4), colour: (v) => sequential(v / high) };
}

/** The scale of line thumbnails: the opacity of a line is its weight. */
export const LINES: Shade = { low: 0, high: 1, ticks: [0, 0.5, 1], colour: (v) => `rgba(${LINE},${v})` };

/** The scale of map thumbnails. The colour follows the square root of the weight, which keeps broad attention visible. */
export const WEIGHTS: Shade = { low: 0, high: 1, ticks: [0, 0.25, 0.5, 1], colour: (v) => sequential(Math.sqrt(v)) };
