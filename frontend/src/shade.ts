/** Numbers as colours, and how they are printed where there is little room. */
import { scaleLinear } from "d3-scale";
import { diverging, LINE, sequential } from "./colour";
import { show } from "./ui";

export type Maybe = number | null | undefined;

/** A scale of colours: sequential from 0 (or what is below it), or diverging, the same on both sides of 0. */
export interface Shade {
  low: number;
  high: number;
  ticks: number[];
  colour: (value: number) => string;
}

export const present = (values: readonly Maybe[]): number[] => values.filter((v): v is number => v !== null && v !== undefined && Number.isFinite(v));

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

/** A number in few characters: `.62`, `−.08`, `2.4`, `31`. */
export function short(value: Maybe): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  const text = size >= 9.95 ? size.toFixed(0) : size >= 0.995 ? size.toFixed(1) : size.toFixed(2).slice(1);
  return value < 0 && /[1-9]/.test(text) ? `−${text}` : text;
}

const largest = (values: readonly Maybe[]): number => present(values).reduce((most, value) => Math.max(most, Math.abs(value)), 0);

/** Decimals that tell values apart: two, or as many as the largest needs for two digits. */
export function digitsOf(values: readonly Maybe[]): number {
  const most = largest(values);
  return most > 0 ? Math.min(9, Math.max(2, 1 - Math.floor(Math.log10(most)))) : 2;
}

/** The power of ten by which small values are multiplied where there is little room; 0 for others. */
export function powerOf(values: readonly Maybe[]): number {
  const most = largest(values);
  return most > 0 && most < 0.05 ? Math.ceil(-Math.log10(most)) : 0;
}

/** How a legend says that values were multiplied: ` × 10³`. */
export const timesPower = (power: number): string => (power ? ` × 10${[...String(power)].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(digit)]).join("")}` : "");

/** A value with its interval: `0.46 [0.45 0.47]`. */
export const spelled = (value: Maybe, low: Maybe, high: Maybe, digits = 2): string => (present([value, low, high]).length < 3 ? show(value, digits) : `${show(value, digits)} [${show(low, digits)} ${show(high, digits)}]`);

/** A difference with its sign: `+0.12`, `−0.03`. */
export const signed = (value: Maybe, digits = 2): string => (value === null || value === undefined || !Number.isFinite(value) ? "–" : `${value < 0 ? "−" : value > 0 ? "+" : ""}${Math.abs(value).toFixed(digits)}`);

/** A difference with its interval: `+0.12 [+0.05 +0.19]`. */
export const signedInterval = (value: Maybe, low: Maybe, high: Maybe, digits = 2): string => (present([low, high]).length < 2 ? signed(value, digits) : `${signed(value, digits)} [${signed(low, digits)} ${signed(high, digits)}]`);
