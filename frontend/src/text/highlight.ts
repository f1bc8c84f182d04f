/** The links of a text that are drawn in red: those of a relation, or those between mentions of one entity. */
import { inWords } from "../data/directions";
import { kindOf, sidesOf } from "../data/heads";
import type { Position } from "../data/maps";
import type { NamedPairs, Side, Text } from "../types";

export type Direction = "dep-to-head" | "head-to-dep";

/** What to highlight. `relation` is a label of the annotation; a label without a subtype includes its subtypes. */
export interface Highlight {
  relation?: string;
  direction?: Direction; // direction of the attention; dep-to-head by default
  coreferent?: boolean;
}

const DIRECTIONS: Direction[] = ["dep-to-head", "head-to-dep"];

/** A highlight as the value of a select: "" for none. */
export function highlightKey(highlight: Highlight | undefined): string {
  if (highlight?.coreferent) return "coreferent";
  return highlight?.relation ? `${highlight.direction ?? "dep-to-head"} ${highlight.relation}` : "";
}

/** The options of the highlight select for a head's map. Empty if its rows and columns are different texts. */
export function highlightOptions(text: Text, head: string, first = ""): [key: string, name: string][] {
  const { queries, keys } = sidesOf(text, head);
  if (queries !== keys) return [];
  const known = new Set(queries.relations?.map(([, , label]) => label));
  const asked = /^\S+-to-\S+ (.+)$/.exec(first)?.[1];
  if (asked && wordPairs(text, head, first).size) known.add(asked);
  const labels = [...known].sort();
  const relations = labels.flatMap((label) => DIRECTIONS.map((way): [string, string] => [`${way} ${label}`, `${label}: ${inWords(way)}`]));
  return wordPairs(text, head, "coreferent").size ? [...relations, ["coreferent", "coreferent mentions"]] : relations;
}

const WORDS = 0x100000; // more words than any text has
const ANY = WORDS - 1; // stands for all words and special tokens

/** The value of the select for the named pairs. */
export const NAMED = "named";

/** A pair of words as one number, as in the sets of `wordPairs`. */
export const pairNumber = (query: number, key: number): number => query * WORDS + key;

/** The named pairs for the kind of attention of a head. */
export function namedPairs(named: NamedPairs | undefined, head: string): Set<number> {
  const kind = kindOf(head), pairs = named?.pairs ?? {};
  const chosen = kind === null ? Object.values(pairs)[0] : pairs[kind];
  return new Set((chosen ?? []).map(([query, key]) => pairNumber(query ?? ANY, key ?? ANY)));
}

/** Whether a link belongs to a marked pair. */
export function isMarked(marked: ReadonlySet<number>, row: Position, column: Position): boolean {
  const query = row.word < 0 ? null : row.word, key = column.word < 0 ? null : column.word;
  if (query !== null && marked.has(pairNumber(query, ANY))) return true;
  if (key !== null && marked.has(pairNumber(ANY, key))) return true;
  return query !== null && key !== null && marked.has(pairNumber(query, key));
}

/** The rows and columns with words of marked pairs. */
export function markedWords(marked: ReadonlySet<number>, rows: readonly Position[], columns: readonly Position[]): { row: Set<number>; column: Set<number> } {
  const queries = new Set([...marked].map((pair) => Math.floor(pair / WORDS))), keys = new Set([...marked].map((pair) => pair % WORDS));
  const among = (positions: readonly Position[], words: ReadonlySet<number>): Set<number> => new Set(positions.flatMap(({ word }, at) => (word >= 0 && words.has(word) ? [at] : [])));
  return { row: among(rows, queries), column: among(columns, keys) };
}

/** The pairs of words (attending, attended to) of a highlight. */
export function wordPairs(text: Text, head: string, key: string): Set<number> {
  const { queries, keys } = sidesOf(text, head);
  if (!key || queries !== keys) return new Set();
  if (key === "coreferent") return coreferent(queries);
  const [way, ...rest] = key.split(" ");
  const asked = rest.join(" ");
  const found = (queries.relations ?? []).filter(([, , label]) => label === asked || label.startsWith(`${asked}:`));
  return new Set(found.map(([dependent, governor]) => (way === "head-to-dep" ? pairNumber(governor, dependent) : pairNumber(dependent, governor))));
}

function coreferent(side: Side): Set<number> {
  const mentions = side.mentions ?? [];
  const pairs = new Set<number>();
  for (const one of mentions)
    for (const other of mentions) {
      if (one === other || one[2] !== other[2]) continue;
      for (let i = one[0]; i <= one[1]; i++) for (let j = other[0]; j <= other[1]; j++) if (i !== j) pairs.add(pairNumber(i, j));
    }
  return pairs;
}
