import type { JSX } from "preact";
import type { MapSource, Run } from "./types";

export function HeadCard(_: { run: Run; source: MapSource; head: string; onSelect: (head: string) => void }): JSX.Element {
  return <p>card</p>;
}
