/** Data and layout of the picture of lines: the words, their positions, and the links between them. */
import { fit, visible, widthOf } from "../charts/labels";
import type { Link, Position } from "../data/maps";
import { links } from "../data/maps";
import { isMarked } from "./highlight";
import type { Step } from "./steps";

/** The weights of one head. All heads of a picture have the same rows and columns. */
export interface Layer {
  head: string;
  colour: string; // var(--hs-…)
  weights: Float32Array;
}

export type SideName = "row" | "column";

/** A word in the left or right column of the picture. */
export interface Place {
  side: SideName;
  at: number;
}

export interface Line extends Link {
  layer: number;
  strong: boolean; // pinned or highlighted
  marked: boolean; // in a highlighted pair
}

/** The content of a picture of lines. */
export interface Scene {
  rows: Position[];
  columns: Position[];
  layers: readonly Layer[];
  lines: readonly Line[];
  pins: readonly Place[];
  marked: Record<SideName, ReadonlySet<number>>; // words of highlighted pairs
  pairs: ReadonlySet<number>; // the highlighted pairs
  step?: Step | undefined; // of a generated text: only its row is drawn, and later tokens are faint
}

export const samePlace = (a: Place | null, b: Place | null): boolean => a?.side === b?.side && a?.at === b?.at;

export const MOST = 20_000; // most lines; more cannot be distinguished
const LEAST = 0.005; // the smallest weight that is printed as 0.01

/**
 * The lines to draw, most important last, and the number of lines before the limit. The threshold and the number of
 * links per word do not apply to pinned words and marked pairs.
 */
export function linesOf(
  rows: Position[], columns: Position[], layers: readonly Layer[],
  choice: { threshold: number; top: number; pins: readonly Place[]; marked: ReadonlySet<number> },
): { lines: Line[]; of: number } {
  const width = columns.length;
  const lines: Line[] = [];
  layers.forEach(({ weights }, layer) => {
    const strong = new Set<number>();
    const keep = (row: number, column: number, least: number): void => {
      const weight = weights[row * width + column]!;
      if (weight <= 0 || weight < least || strong.has(row * width + column)) return;
      strong.add(row * width + column);
      lines.push({ row, column, weight, layer, strong: true, marked: isMarked(choice.marked, rows[row]!, columns[column]!) });
    };
    for (const { side, at } of choice.pins) {
      if (side === "row") columns.forEach((_, column) => keep(at, column, LEAST));
      else rows.forEach((_, row) => keep(row, at, LEAST));
    }
    if (choice.marked.size) rows.forEach((row, i) => columns.forEach((column, j) => isMarked(choice.marked, row, column) && keep(i, j, 0)));
    for (const link of links({ weights, rows, columns }, choice.threshold, choice.top)) {
      if (!strong.has(link.row * width + link.column)) lines.push({ ...link, layer, strong: false, marked: false });
    }
  });
  const order = (line: Line): number => Number(line.strong) + Number(line.marked);
  lines.sort((a, b) => order(a) - order(b) || a.weight - b.weight);
  return { lines: lines.slice(-MOST), of: lines.length };
}

/** The links of one word in one head, strongest first. */
export function linksAt(layer: Layer, height: number, width: number, { side, at }: Place): { other: number; weight: number }[] {
  const found = [];
  for (let other = 0; other < (side === "row" ? width : height); other++) {
    const weight = layer.weights[side === "row" ? at * width + other : other * width + at]!;
    if (weight >= LEAST) found.push({ other, weight });
  }
  return found.sort((a, b) => b.weight - a.weight);
}

/** Positions and sizes in pixels. */
export interface Layout {
  width: number;
  height: number;
  top: number;
  step: number; // distance between words
  font: number;
  slots: number; // number of weights printed beside a word
  slot: number; // width of a printed weight
  left: number; // right end of the words on the left
  right: number; // left end of the words on the right
  labels: Record<SideName, string[]>;
}

export const PAD = 7; // between a word and its lines

export function layoutOf(rows: Position[], columns: Position[], heads: number, space: number): Layout {
  const room = Math.min(space, 800);
  const dense = Math.max(rows.length, columns.length) > 60;
  const font = dense ? 11.5 : 13.5, step = dense ? 16 : 21, top = 22;
  const slots = Math.min(heads, room < 520 ? 1 : 3), slot = heads > 1 ? 40 : 32;
  const margin = slots * slot;
  const most = Math.max(40, (room - 2 * margin) * 0.34);
  const texts = { row: rows.map(visible), column: columns.map(visible) };
  const widest = (side: SideName): number => Math.ceil(Math.min(most, texts[side].reduce((wide, text) => Math.max(wide, widthOf(text, font)), 56)));
  const roomFor = { row: widest("row"), column: widest("column") };
  const gap = Math.max(60, Math.min(360, room - 2 * margin - roomFor.row - roomFor.column));
  const labels = (side: SideName): string[] => texts[side].map((text) => fit(text, roomFor[side] + 1, font));
  const left = margin + roomFor.row, right = left + gap;
  return {
    width: right + roomFor.column + margin,
    height: top + Math.max(rows.length, columns.length) * step + 4,
    top, step, font, slots, slot, left, right,
    labels: { row: labels("row"), column: labels("column") },
  };
}

/** The vertical centre of a word. */
export const middle = (layout: Layout, at: number): number => layout.top + (at + 0.5) * layout.step;

/** The ends of a line. The lines of several heads are shifted a little. */
export function ends(layout: Layout, line: { row: number; column: number; layer: number }, heads: number): [x1: number, y1: number, x2: number, y2: number] {
  const shift = (line.layer - (heads - 1) / 2) * Math.min(2.5, layout.step / 2 / heads);
  return [layout.left + PAD, middle(layout, line.row) + shift, layout.right - PAD, middle(layout, line.column) + shift];
}

/** Lines of this weight or more can be distinguished from the background, in light and in dark. */
export const SEEN = 0.05;

export const opacityOf = (weight: number): number => (weight >= SEEN ? 0.35 + 0.65 * Math.min(1, weight) : (0.38 * weight) / SEEN);
export const widthOfLine = (weight: number, strong: boolean): number => (strong ? 2.2 : 1.2) + 0.9 * Math.min(1, weight);

/**
 * The stroke of a line. Highlighted pairs are red if there is one head; with several heads each link has the colour of
 * its head. With `emphasis`, lines that are neither highlighted nor pinned are fainter.
 */
export function strokeOf(line: Line, layers: readonly Layer[], emphasis: boolean): { colour: string; opacity: number; width: number } {
  const faded = emphasis && !line.strong;
  return {
    colour: line.marked && layers.length === 1 ? "var(--hs-red)" : layers[line.layer]!.colour,
    opacity: opacityOf(line.weight) * (faded ? 0.55 : 1),
    width: widthOfLine(line.weight, line.strong),
  };
}
