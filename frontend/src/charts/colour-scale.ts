/** Scales from numbers to colours. */
import { scaleLinear } from "d3-scale";
import type { Maybe } from "../data/numbers";
import { present } from "../data/numbers";
import { diverging, LINE, sequential } from "./colour";

/** A scale of colours: sequential from 0 (or what is below it), or diverging, the same on both sides of 0. */
export interface Shade {
  low: number;
  high: number;
  ticks: number[];
  colour: (value: number) => string;
}

/** The scale for some values; `centred` asks for the diverging one, which values on both sides of 0 get anyway. */
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

/** Weights as lines of thumbnails are drawn. */
export const LINES: Shade = { low: 0, high: 1, ticks: [0, 0.5, 1], colour: (v) => `rgba(${LINE},${v})` };

/** Weights as maps are coloured in small: by their square root, so that broad heads do not vanish. */
export const WEIGHTS: Shade = { low: 0, high: 1, ticks: [0, 0.25, 0.5, 1], colour: (v) => sequential(Math.sqrt(v)) };
