/** Captions of the views of a text: what is shown, how much of it, and what is left out. */
import type { Choice, Position } from "../data/maps";
import type { Kind, Text } from "../types";
import type { View } from "./heatmap";

interface Shown {
  text: Text;
  view: "lines" | "heatmap";
  kind: Kind | null; // null in a model with one kind of attention
  heads: string[];
  rows: Position[];
  columns: Position[];
  choice: Choice;
  threshold: number;
  top: number;
  lines: number; // number of lines drawn
  of: number; // number of lines before the limit
  highlight: string;
  pins: number;
  step?: string | undefined; // the selected step of a generated text
  near: View | null; // the visible part of a heatmap
}

const plural = (count: number, what: string): string => `${count} ${what}${count === 1 ? "" : "s"}`;

/** The number of positions, special tokens counted separately: `15 words and 2 special tokens`, `26 tokens (2 special)`. */
export function counted(positions: Position[], level: Choice["level"], side = ""): string {
  const special = positions.filter((position) => position.special).length;
  if (level === "token") return `${plural(positions.length, `${side}token`)}${special ? ` (${special} special)` : ""}`;
  return `${plural(positions.length - special, `${side}word`)}${special ? ` and ${plural(special, "special token")}` : ""}`;
}

export function captionOf(shown: Shown): string {
  const { rows, columns, choice, text } = shown;
  const { level } = choice;
  const heads = shown.heads.length ? `${shown.heads.length > 1 ? "heads" : "head"} ${shown.heads.join(", ")}` : "no head yet";
  const between = shown.kind === "cross" ? `from ${counted(rows, level, "target ")} to ${counted(columns, level, "source ")}` : `between ${counted(rows, level)}`;
  const parts = [`Attention of ${heads}, ${between}`];
  if (text.window) parts.push(`tokens ${text.window[0] + 1}–${text.window[0] + text.source.tokens.length} of ${text.window[1]}`);
  if (choice.specials === "hide") parts.push("special tokens hidden");
  if (choice.specials === "renormalise") parts.push("special tokens hidden and rows renormalised to 1");
  const own = rows.filter((position) => position.generated).length;
  if (own) parts.push(`${shown.view === "lines" ? "shaded" : "underlined"}: ${plural(own, level)} that the model wrote`);
  if (shown.step) parts.push(`${shown.step}, by the row of the ${level} before it`);
  if (shown.view === "lines" && !shown.step) {
    if (shown.threshold > 0) parts.push(`weights of at least ${shown.threshold.toFixed(2)}`);
    if (shown.top > 0) parts.push(shown.top === 1 ? `the strongest link of each ${level}` : `the ${shown.top} strongest links of each ${level}`);
    if (shown.lines < shown.of) parts.push(`the ${shown.lines.toLocaleString("en")} strongest of ${shown.of.toLocaleString("en")} links`);
  } else if (shown.view === "heatmap" && shown.near && (shown.near.rows < rows.length || shown.near.columns < columns.length)) {
    parts.push(`rows ${shown.near.row + 1}–${shown.near.row + shown.near.rows} and columns ${shown.near.column + 1}–${shown.near.column + shown.near.columns} in view`);
  }
  if (shown.highlight) parts.push(`${shown.view === "lines" && shown.heads.length > 1 ? "highlighted" : "in red"}: ${shown.highlight}`);
  if (shown.pins && shown.view === "lines") parts.push(`${shown.pins} pinned`);
  return `${parts.join("; ")}. ${shown.view === "lines" ? "The stronger a line, the higher the weight." : "Rows attend to columns."}`;
}
