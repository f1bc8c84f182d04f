/** Text labels: invisible characters are replaced by symbols, and long text is shortened to the room. */
import { LIGHT } from "./colour";

// Blank text, control characters, and characters that XML does not allow.
const BLANK = /^\s*$/;
const CONTROL = /[\u0000-\u001f\u007f]/g;
const BROKEN = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]|[\ufffe\uffff]/g;

/** A token with symbols for blanks, control characters and lone surrogates. With `blank`, its first character stands for a blank. */
export function visible({ text, blank }: { text: string; blank?: boolean }): string {
  const shown = (blank ? `␣${text.slice(1)}` : text).replace(CONTROL, (c) => (c === "\u007f" ? "␡" : String.fromCharCode(0x2400 + c.charCodeAt(0)))).replace(BROKEN, "\ufffd");
  return BLANK.test(shown) ? "␣".repeat(Math.max(1, shown.length)) : shown;
}

const segmenter = "Segmenter" in Intl ? new Intl.Segmenter() : null; // missing in older versions of Firefox
let pen: CanvasRenderingContext2D | null = null;
const widths = new Map<string, number>();

/** The width of a text in pixels at a font size, in the font of the views or in another font. */
export function widthOf(text: string, size: number, font = LIGHT["--hs-sans"]!, weight = 400): number {
  pen ??= document.createElement("canvas").getContext("2d");
  const key = font === LIGHT["--hs-sans"] && weight === 400 ? text : `${weight} ${font}/${text}`;
  let width = widths.get(key); // at a font size of 100 pixels
  if (width === undefined) {
    if (pen) pen.font = `${weight} 100px ${font}`;
    width = pen ? pen.measureText(text).width : text.length * 60;
    if (widths.size > 20_000) widths.clear();
    widths.set(key, width);
  }
  return (width * size) / 100;
}

/** A text at most `room` pixels wide, shortened with an ellipsis if necessary. */
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

/** A text in lines at most `room` pixels wide, broken after blanks and after the `|` of signatures. */
export function wrap(text: string, room: number, size: number, weight = 400): string[] {
  const lines: string[] = [""];
  for (const part of text.split(/(?<=[ |])/)) {
    const last = lines.length - 1;
    if (lines[last] && widthOf(lines[last]! + part, size, undefined, weight) > room) lines.push(part);
    else lines[last] += part;
  }
  return lines;
}
