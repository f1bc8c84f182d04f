/** Colours: the palette of the static figures, in light and dark. Views use `var(--hs-ink)`; saved files contain the light value. */
import tokens from "../../../src/headscope/views/tokens.css";

/** Okabe and Ito's palette without yellow, which is invisible on white. The last colour, black, is the ink colour of the theme. */
export const SERIES = ["--hs-s1", "--hs-s2", "--hs-s3", "--hs-s4", "--hs-s5", "--hs-s6", "--hs-ink"].map((name) => `var(${name})`);

/** The properties of the design system with their light and dark values, from tokens.css, which views/tokens.py reads too. */
const properties = [...tokens.matchAll(/^\s*(--hs-[a-z0-9-]+):\s*(.+);$/gm)].map(([, name, value]) => [name!, value!, /^light-dark\((.+), (.+)\)$/.exec(value!)] as const);

export const LIGHT: Record<string, string> = Object.fromEntries(properties.map(([name, value, pair]) => [name, pair?.[1] ?? value]));
export const DARK: Record<string, string> = Object.fromEntries(properties.flatMap(([name, , pair]) => (pair ? [[name, pair[2]!]] : [])));

/** The properties as a style sheet. The system selects light or dark; `data-theme` overrides it. */
export function themeSheet(): string {
  const list = (values: Record<string, string>) => Object.entries(values).map(([name, value]) => `${name}:${value}`).join(";");
  const colours = Object.fromEntries(Object.keys(DARK).map((name) => [name, LIGHT[name]!]));
  return (
    `.hs{color-scheme:light dark;${list(LIGHT)}}` +
    `@media(prefers-color-scheme:dark){.hs{${list(DARK)}}}` +
    `[data-theme=light] .hs,.hs[data-theme=light]{color-scheme:light;${list(colours)}}` +
    `[data-theme=dark] .hs,.hs[data-theme=dark]{color-scheme:dark;${list(DARK)}}`
  );
}

/** The colour of lines in thumbnails, visible on light and dark backgrounds. */
export const LINE = "52,148,212";

type Rgb = [number, number, number];
// Cividis at equal steps: a colour map for readers with and without colour blindness.
const CIVIDIS: Rgb[] = [[0, 34, 78], [26, 56, 111], [67, 78, 108], [102, 101, 112], [132, 125, 120], [165, 151, 114], [202, 179, 97], [235, 206, 70], [254, 232, 56]];
// Purple for negative values, white for 0, orange for positive values.
const DIVERGING: Rgb[] = [[84, 39, 136], [153, 142, 195], [216, 218, 235], [247, 247, 247], [254, 224, 182], [241, 163, 64], [179, 88, 6]];

function along(steps: Rgb[], t: number): Rgb {
  const at = Math.max(0, Math.min(1, t)) * (steps.length - 1);
  const low = Math.floor(at), part = at - low;
  const a = steps[low]!, b = steps[Math.min(low + 1, steps.length - 1)]!;
  return [0, 1, 2].map((i) => Math.round(a[i]! + (b[i]! - a[i]!) * part)) as Rgb;
}

const css = (c: Rgb): string => `rgb(${c.join(",")})`;

/** The colour of a value from 0 to 1 on the sequential scale. */
export const sequential = (t: number): string => css(along(CIVIDIS, t));
export const sequentialRgb = (t: number): Rgb => along(CIVIDIS, t);

/** The colour of a value from -1 to 1 on the diverging scale. */
export const diverging = (t: number): string => css(along(DIVERGING, (t + 1) / 2));

/** Black or white, whichever is readable on a colour in the format of `sequential` and `diverging`. */
export function readableOn(colour: string): string {
  const parts = (colour.match(/[\d.]+/g) ?? []).map((part) => Number(part) / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
  const light = 0.2126 * (parts[0] ?? 1) + 0.7152 * (parts[1] ?? 1) + 0.0722 * (parts[2] ?? 1);
  return light > 0.18 ? "#000000" : "#ffffff";
}
