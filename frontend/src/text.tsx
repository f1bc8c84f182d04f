import type { JSX } from "preact";
import type { MapSource, TextData } from "./types";

export function TextView(_: { data: TextData; source: MapSource }): JSX.Element {
  return <p>text</p>;
}
