import type { JSX } from "preact";
import type { CurvesFigure, Run } from "./types";

export function Curves(_: { run: Run; figure: CurvesFigure }): JSX.Element {
  return <p>curves</p>;
}
