/** Names of heads: `8-10`, `cross/3-2`, counted from 1, as in the tables. */
import type { Kind, Side, Site, Text } from "../types";

export interface Head {
  name: string;
  kind: Kind;
  layer: number; // from 1
  head: number; // from 1
  group: number | null; // of the key-value heads that several query heads share, from 1; null where each has its own
}

export const headName = (kind: Kind, layer: number, head: number): string => (kind === "encoder" ? "" : `${kind}/`) + `${layer}-${head}`;

/** All heads in the order of the arrays. */
export function allHeads(sites: readonly Site[]): Head[] {
  return sites.flatMap(({ kind, layer, heads, kv_heads }) =>
    Array.from({ length: heads }, (_, i) => ({
      name: headName(kind, layer, i + 1),
      kind,
      layer,
      head: i + 1,
      group: kv_heads < heads ? Math.floor((i * kv_heads) / heads) + 1 : null,
    })),
  );
}

export const kindOf = (head: string): Kind => (head.includes("/") ? (head.split("/")[0] as Kind) : "encoder");

/** The sides of a head's map: what attends, and what is attended to. */
export function sidesOf(text: Text, head: string): { queries: Side; keys: Side } {
  const kind = kindOf(head);
  const target = text.target ?? text.source;
  return { queries: kind === "encoder" ? text.source : target, keys: kind === "decoder" ? target : text.source };
}
