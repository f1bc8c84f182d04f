/** Saving a view: a self-contained SVG, a PNG made from it, and a CSV file of its numbers. */
import { LIGHT } from "../charts/colour";
import { wrap } from "../charts/labels";

const FONT = 10, STEP = 13; // font size and line height of captions
const NARROWEST = 320; // pixels; the least width for a caption

const escape = (text: string): string => text.replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]!);

/** An SVG element as a file: light colours instead of custom properties, a white background, and the caption as text below. */
export function svgFile(svg: SVGSVGElement, caption: string): string {
  const box = svg.viewBox.baseVal;
  const height = box.height || svg.clientHeight, width = Math.max(NARROWEST, box.width || svg.clientWidth);
  const inner = new XMLSerializer().serializeToString(svg).replace(/^<svg[^>]*>/, "").replace(/<\/svg>$/, "");
  const lines = wrap(caption, (width - 8) * 0.95, FONT); // other fonts may be wider
  const text = lines.map((line, i) => `<text x="${box.x + 4}" y="${box.y + height + 16 + i * STEP}" font-size="${FONT}" fill="${LIGHT["--hs-faint"]}">${escape(line)}</text>`).join("");
  const total = height + 14 + lines.length * STEP;
  const file =
    `<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="${width}" height="${total}" viewBox="${box.x} ${box.y} ${width} ${total}" font-family="${escape(LIGHT["--hs-sans"]!)}">` +
    `<rect x="${box.x}" y="${box.y}" width="${width}" height="${total}" fill="#ffffff"/>${inner}${text}</svg>\n`;
  // Replace only inside tags, because a word of the text may look like a colour.
  return file.replace(/<[^>]*>/g, (tag) => tag.replace(/var\((--hs-[a-z0-9-]+)\)/g, (whole, name: string) => LIGHT[name] ?? whole).replace(/currentColor/g, LIGHT["--hs-ink"]!));
}

/** An SVG file as a PNG at twice the size, on white. */
export async function pngFile(svg: string): Promise<Blob> {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = image.width * 2;
  canvas.height = image.height * 2;
  const context = canvas.getContext("2d")!;
  context.scale(2, 2);
  context.drawImage(image, 0, 0);
  return await new Promise((done, fail) => canvas.toBlob((blob) => (blob ? done(blob) : fail(new Error("the picture cannot be made"))), "image/png"));
}

export type Cell = string | number | null;

/** Rows as CSV. Text with a comma, a quote or a line break is quoted; text that starts a formula is escaped (`+1+A1`, but not `+1`). */
export function csvFile(header: string[], rows: Iterable<Cell[]>): string {
  const cell = (value: Cell): string => {
    if (value === null) return "";
    if (typeof value === "number") return Number.isFinite(value) ? String(value) : "";
    const safe = /^[=@\t\r]|^[+-](?![\d.][\w.,%]*$)/.test(value) ? `'${value}` : value;
    return /[",\n\r]/.test(safe) ? `"${safe.replace(/"/g, '""')}"` : safe;
  };
  return [header, ...rows].map((row) => row.map(cell).join(",")).join("\n") + "\n";
}

/** Maps as CSV, with the same columns in all views. Positions are counted from 1. */
export function mapsFile(maps: Iterable<{ head: string; rows: readonly { text: string }[]; columns: readonly { text: string }[]; weights: Float32Array }>): string {
  function* lines(): Iterable<Cell[]> {
    for (const { head, rows, columns, weights } of maps)
      for (const [i, row] of rows.entries())
        for (const [j, column] of columns.entries()) yield [head, i + 1, row.text, j + 1, column.text, Number(weights[i * columns.length + j]!.toFixed(5))];
  }
  return csvFile(["head", "from_index", "from", "to_index", "to", "weight"], lines());
}

export function download(name: string, content: string | Blob, type = "text/plain"): void {
  const url = URL.createObjectURL(typeof content === "string" ? new Blob([content], { type: `${type};charset=utf-8` }) : content);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
