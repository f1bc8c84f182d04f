/** Operations on the map of one head: word maps, maps without special tokens, and the links to draw. */
import type { MapSource, Packed, PackedInfluence, Side, Text } from "../types";
import { WORD } from "../types";
import { sidesOf } from "./heads";

/** A map with the positions of its rows and columns. */
export interface Grid {
  weights: Float32Array; // row by row
  rows: Position[];
  columns: Position[];
}

export interface Position {
  text: string;
  special: boolean;
  word: number; // index of the word; -1 for special tokens
  generated: number; // the generation step that wrote the token, from 1; 0 for tokens of the input
  original?: string; // the word of the text, if the token is the unknown token
  blank: boolean; // whether the first character is the tokenizer's symbol for a blank: "Ġcat", "▁cat"
}

export function unpack(packed: string): Float32Array {
  const text = atob(packed);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return fromUint16(new Uint16Array(bytes.buffer));
}

export function fromUint16(values: Uint16Array): Float32Array {
  const weights = new Float32Array(values.length);
  for (let i = 0; i < values.length; i++) weights[i] = values[i]! / 65535;
  return weights;
}

/** Influence by one measure, one matrix per layer. */
export function unpackInfluence({ scales, values }: PackedInfluence): Float32Array[] {
  const shares = unpack(values), size = shares.length / scales.length;
  return scales.map((scale, layer) => shares.slice(layer * size, (layer + 1) * size).map((share) => share * scale));
}

/** The mean of matrices of the same size. */
export const meanOf = (matrices: readonly Float32Array[]): Float32Array => matrices[0]!.map((_, at) => matrices.reduce((sum, matrix) => sum + matrix[at]!, 0) / matrices.length);

const NAMED = 3; // most heads that an error message names

/** Maps and measures of influence that are embedded in the page. */
export class Embedded implements MapSource {
  constructor(private readonly maps: (text: Text) => Packed | undefined, private readonly held: Record<string, PackedInfluence> = {}) {}

  has(text: Text, head: string): boolean {
    return this.maps(text)?.[head] !== undefined;
  }

  async influence(_: Text, measure: string): Promise<PackedInfluence> {
    const packed = this.held[measure];
    if (!packed) throw new Error(`this page does not hold ${measure}; make the page with --measure ${measure}`);
    return packed;
  }

  async map(text: Text, head: string): Promise<Float32Array> {
    const held = this.maps(text) ?? {}, packed = held[head];
    if (packed !== undefined) return unpack(packed);
    const names = Object.keys(held), more = names.length - NAMED;
    const others = names.length ? `, only ${names.length > 1 ? "those" : "that"} of ${names.slice(0, NAMED).join(", ")}${more > 0 ? ` and ${more} more` : ""}` : "";
    throw new Error(`this page does not hold the map of this head${others}; make the page with --heads ${head}, or open it with headscope serve`);
  }
}

const stepOf = ({ generated = Infinity }: Side, token: number): number => Math.max(0, token - generated + 1);

const UNKNOWN = /^(\[UNK\]|<unk>|<UNK>)$/;

const tokens = (side: Side): Position[] =>
  side.tokens.map((text, i) => {
    const word = side.words[i] ?? -1, own = side.forms[word]?.startsWith(text[0] ?? ""); // Maltese has words that start with Ġ
    const original = UNKNOWN.test(text) && side.forms[word] !== text ? side.forms[word] : undefined;
    return { text, special: side.roles[i] !== WORD, word, generated: stepOf(side, i), blank: /^[Ġ▁]/.test(text) && !own, ...(original === undefined ? {} : { original }) };
  });

/** The group index of each token. The tokens of a word form one group; each special token is a separate group. */
export function groups(side: Side): number[] {
  let count = -1;
  let last: number | null = null;
  return side.words.map((word) => {
    if (word < 0 || word !== last) count += 1;
    last = word >= 0 ? word : null;
    return count;
  });
}

const grouped = (side: Side): Position[] => {
  const of = groups(side);
  return side.tokens.flatMap((text, i) => {
    const word = side.words[i] ?? -1;
    if (i > 0 && of[i] === of[i - 1]) return [];
    return [{ text: word < 0 ? text : (side.forms[word] ?? text), special: side.roles[i] !== WORD, word, generated: stepOf(side, i), blank: false }];
  });
};

/** How the columns of a word's tokens are combined: attention is summed (Clark et al. §4.1), influence is averaged (Westera). */
export type Grouping = "sum" | "mean";

/** A map between words. The columns of a word's tokens are summed or averaged; the rows are averaged. */
export function wordMap(weights: Float32Array, queries: Side, keys: Side, grouping: Grouping = "sum"): Float32Array {
  const q = groups(queries), k = groups(keys);
  const height = (q.at(-1) ?? -1) + 1, width = (k.at(-1) ?? -1) + 1;
  const sums = new Float32Array(height * width), tall = new Float32Array(height), wide = new Float32Array(width);
  for (const row of q) tall[row]! += 1;
  for (const column of k) wide[column]! += 1;
  q.forEach((row, i) => {
    for (let j = 0; j < k.length; j++) sums[row * width + k[j]!]! += weights[i * k.length + j]!;
  });
  for (let at = 0; at < sums.length; at++) sums[at]! /= tall[Math.floor(at / width)]! * (grouping === "mean" ? wide[at % width]! : 1);
  return sums;
}

export interface Choice {
  level: "token" | "word";
  specials: "show" | "hide" | "renormalise";
}

/** The rows and columns of a head's map. They are known before the map has arrived. */
export function positions(text: Text, head: string, choice: Choice): { rows: Position[]; columns: Position[] } {
  const { queries, keys } = sidesOf(text, head);
  const all = (side: Side): Position[] => (choice.level === "word" ? grouped(side) : tokens(side));
  const shown = (side: Side): Position[] => (choice.specials === "show" ? all(side) : all(side).filter((position) => !position.special));
  return { rows: shown(queries), columns: shown(keys) };
}

/** The part of a map to draw. Without special tokens, rows keep their weights or are renormalised to a sum of 1. */
export function chosen(weights: Float32Array, text: Text, head: string, choice: Choice, grouping: Grouping = "sum"): Grid {
  const { queries, keys } = sidesOf(text, head);
  const byWord = choice.level === "word";
  const full: Grid = {
    weights: byWord ? wordMap(weights, queries, keys, grouping) : weights,
    rows: byWord ? grouped(queries) : tokens(queries),
    columns: byWord ? grouped(keys) : tokens(keys),
  };
  if (choice.specials === "show") return full;
  const kept = (side: Position[]) => side.flatMap((position, i) => (position.special ? [] : [i]));
  const rows = kept(full.rows), columns = kept(full.columns);
  const left = new Float32Array(rows.length * columns.length);
  rows.forEach((row, i) => {
    let sum = 0;
    columns.forEach((column, j) => {
      const weight = full.weights[row * full.columns.length + column]!;
      left[i * columns.length + j] = weight;
      sum += weight;
    });
    if (choice.specials === "renormalise" && sum > 0) for (let j = 0; j < columns.length; j++) left[i * columns.length + j]! /= sum;
  });
  return { weights: left, rows: rows.map((i) => full.rows[i]!), columns: columns.map((i) => full.columns[i]!) };
}

/** The weight between two positions. */
export interface Link {
  row: number;
  column: number;
  weight: number;
}

/** The links to draw: weights of at least `threshold`, and only the `top` strongest of each row (0 for all). */
export function links(grid: Grid, threshold: number, top: number): Link[] {
  const width = grid.columns.length;
  return grid.rows.flatMap((_, row) => {
    const found: Link[] = [];
    for (let column = 0; column < width; column++) {
      const weight = grid.weights[row * width + column]!;
      if (weight > 0 && weight >= threshold) found.push({ row, column, weight });
    }
    return top > 0 && found.length > top ? found.sort((a, b) => b.weight - a.weight).slice(0, top) : found;
  });
}
