/** Which links of a text are drawn in red: those of a relation, or those between mentions of one entity. */
import { inWords } from "./directions";
import { sidesOf } from "./heads";
import type { Side, Text } from "./types";

export type Direction = "dep-to-head" | "head-to-dep";

/** What to highlight. `relation` is a label as in the annotation; one without a subtype means its subtypes, too. */
export interface Highlight {
  relation?: string;
  direction?: Direction; // which way the attention goes; dep-to-head unless said
  coreferent?: boolean;
}

const DIRECTIONS: Direction[] = ["dep-to-head", "head-to-dep"];

/** A highlight as the value of a select: "" for none. */
export function highlightKey(highlight: Highlight | undefined): string {
  if (highlight?.coreferent) return "coreferent";
  return highlight?.relation ? `${highlight.direction ?? "dep-to-head"} ${highlight.relation}` : "";
}

/** What can be highlighted in a head's map, as options of a select. Empty where its rows and columns are different texts. */
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

/** A pair of words as one number, to look up in the set that `wordPairs` gives. */
export const pairNumber = (query: number, key: number): number => query * 0x100000 + key;

/** The pairs of words (attending, attended to) that a highlight means. */
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
