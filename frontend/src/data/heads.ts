/** Names of heads: `8-10`, or `cross/3-2` where a model has several kinds of attention, counted from 1, as in the tables. */
import type { Kind, Side, Site, Text } from "../types";

export interface Head {
  name: string;
  kind: Kind;
  layer: number; // from 1
  head: number; // from 1
  group: number | null; // of the key-value heads that several query heads share, from 1; null where each has its own
}

/** All heads in the order of the arrays. */
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

/** The kind that a head's name says; null in models that have one kind. */
export const kindOf = (head: string): Kind | null => (head.includes("/") ? (head.split("/")[0] as Kind) : null);

/** The name of a known head that was called with or without its kind. Without it, it is of the kind of the `current` head, or of the first kind. */
export function findHead(name: string, sites: readonly Site[], current?: string): string | undefined {
  const heads = allHeads(sites);
  const [place = "", kind = (current && kindOf(current)) || heads[0]?.kind] = name.split("/").reverse();
  return heads.find((head) => head.kind === kind && `${head.layer}-${head.head}` === place)?.name;
}

/** The sides of a head's map: what attends, and what is attended to. */
export function sidesOf(text: Text, head: string): { queries: Side; keys: Side } {
  const kind = kindOf(head);
  const target = text.target ?? text.source;
  return { queries: kind === null || kind === "encoder" ? text.source : target, keys: kind === "decoder" ? target : text.source };
}
