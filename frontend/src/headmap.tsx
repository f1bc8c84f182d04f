import type { JSX } from "preact";
import type { Run } from "./types";

export function HeadMapView(_: { run: Run; selected: string | null; onSelect: (head: string) => void }): JSX.Element {
  return <p>map</p>;
}
