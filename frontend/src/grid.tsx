import type { JSX } from "preact";
import type { MapSource, Run } from "./types";

export function ModelGrid(_: { run: Run; source: MapSource; selected: string | null; onSelect: (head: string) => void }): JSX.Element {
  return <p>grid</p>;
}
