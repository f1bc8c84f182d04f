/** Names of heads: `8-10`, or `cross/3-2` in models with several kinds of attention. As in the tables, they are counted from 1. */
import type { Kind, Side, Site, Text } from "../types";

export interface Head {
  name: string;
  kind: Kind;
  layer: number; // from 1
  head: number; // from 1
  group: number | null; // the key-value group of the query head, from 1; null if query heads do not share key-value heads
}

/** All heads, in the order of arrays over heads. */
export function allHeads(sites: readonly Site[]): Head[] {
  const several = new Set(sites.map(({ kind }) => kind)).size > 1;
  return sites.flatMap(({ kind, layer, heads, kv_heads }) =>
    Array.from({ length: heads }, (_, i) => ({
      name: `${several ? `${kind}/` : ""}${layer}-${i + 1}`,
      kind,
      layer,
      head: i + 1,
      group: kv_heads < heads ? Math.floor((i * kv_heads) / heads) + 1 : null,
    })),
  );
}

/** The kind in a head's name; null in models with one kind of attention. */
export const kindOf = (head: string): Kind | null => (head.includes("/") ? (head.split("/")[0] as Kind) : null);

/**
 * The full name of a head that is given with or without its kind; undefined for an unknown head. Without a kind, it is
 * the kind of the `current` head, or else the first kind.
 */
export function findHead(name: string, sites: readonly Site[], current?: string): string | undefined {
  const heads = allHeads(sites);
  const [place = "", kind = (current && kindOf(current)) || heads[0]?.kind] = name.split("/").reverse();
  return heads.find((head) => head.kind === kind && `${head.layer}-${head.head}` === place)?.name;
}

/** The two sides of a head's map: the attending side (queries) and the attended side (keys). */
export function sidesOf(text: Text, head: string): { queries: Side; keys: Side } {
  const kind = kindOf(head);
  const target = text.target ?? text.source;
  return { queries: kind === null || kind === "encoder" ? text.source : target, keys: kind === "decoder" ? target : text.source };
}
