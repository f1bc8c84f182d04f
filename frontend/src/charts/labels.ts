/** Words as labels: every one visible, none wider than its room. */
import { LIGHT } from "./colour";

// What no one can see, and what no XML file may hold.
const BLANK = /^\s*$/;
const CONTROL = /[\u0000-\u001f\u007f]/g;
const BROKEN = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]|[\ufffe\uffff]/g;

/** A token with signs in place of what cannot be seen: blanks, control characters, halves of characters. With `blank` its first sign stands for one. */
export function visible({ text, blank }: { text: string; blank?: boolean }): string {
  const shown = (blank ? `␣${text.slice(1)}` : text).replace(CONTROL, (c) => (c === "\u007f" ? "␡" : String.fromCharCode(0x2400 + c.charCodeAt(0)))).replace(BROKEN, "\ufffd");
  return BLANK.test(shown) ? "␣".repeat(Math.max(1, shown.length)) : shown;
}

const segmenter = "Segmenter" in Intl ? new Intl.Segmenter() : null; // older Firefox has none
let pen: CanvasRenderingContext2D | null = null;
const widths = new Map<string, number>();

/** How many pixels wide a text is at a font size, in the views' font or another. */
export function widthOf(text: string, size: number, font = LIGHT["--hs-sans"]!, weight = 400): number {
  pen ??= document.createElement("canvas").getContext("2d");
  const key = font === LIGHT["--hs-sans"] && weight === 400 ? text : `${weight} ${font}/${text}`;
  let width = widths.get(key); // at 100 pixels
  if (width === undefined) {
    if (pen) pen.font = `${weight} 100px ${font}`;
    width = pen ? pen.measureText(text).width : text.length * 60;
    if (widths.size > 20_000) widths.clear();
    widths.set(key, width);
  }
  return (width * size) / 100;
}

/** A text that takes at most `room` pixels, with an ellipsis for what does not fit. */
export function fit(text: string, room: number, size: number): string {
  if (widthOf(text, size) <= room) return text;
  const letters = segmenter ? Array.from(segmenter.segment(text), (part) => part.segment) : Array.from(text);
  let low = 0, high = letters.length;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (widthOf(`${letters.slice(0, middle).join("")}…`, size) <= room) low = middle;
    else high = middle - 1;
  }
  return `${letters.slice(0, low).join("")}…`;
}

/** A text in lines of at most `room` pixels, parted after blanks and the bars of signatures. */
export function wrap(text: string, room: number, size: number, weight = 400): string[] {
  const lines: string[] = [""];
  for (const part of text.split(/(?<=[ |])/)) {
    const last = lines.length - 1;
    if (lines[last] && widthOf(lines[last]! + part, size, undefined, weight) > room) lines.push(part);
    else lines[last] += part;
  }
  return lines;
}
