import type { JSX } from "preact";
import type { Comparison } from "./types";

export function Compare(_: { data: Comparison }): JSX.Element {
  return <p>compare</p>;
}
