import type { JSX } from "preact";
import type { Contest, Run } from "./types";

export function ContestFigure(_: { run: Run; contest: Contest; onSelect: (head: string) => void }): JSX.Element {
  return <p>contest</p>;
}
