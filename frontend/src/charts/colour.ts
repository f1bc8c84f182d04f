/** Colours: the same palette as the static figures, in light and dark. Views say `var(--hs-ink)`; saving writes the light value. */

/** Okabe and Ito's palette without its yellow, which vanishes on white; the last, black, follows the ink. */
export const SERIES = ["--hs-s1", "--hs-s2", "--hs-s3", "--hs-s4", "--hs-s5", "--hs-s6", "--hs-ink"].map((name) => `var(${name})`);

export const LIGHT: Record<string, string> = {
  "--hs-ink": "#1b1f24",
  "--hs-paper": "#ffffff",
  "--hs-soft": "#f3f5f8",
  "--hs-line": "#d5dae1",
  "--hs-faint": "#5b6470",
  "--hs-accent": "#0072b2",
  "--hs-red": "#c8321e",
  "--hs-s1": "#0072B2",
  "--hs-s2": "#D55E00",
  "--hs-s3": "#009E73",
  "--hs-s4": "#CC79A7",
  "--hs-s5": "#56B4E9",
  "--hs-s6": "#E69F00",
};

export const DARK: Record<string, string> = {
  "--hs-ink": "#e6e9ee",
  "--hs-paper": "#14171b",
  "--hs-soft": "#1e2329",
  "--hs-line": "#363d47",
  "--hs-faint": "#9aa4b1",
  "--hs-accent": "#6cbcf0",
  "--hs-red": "#ff7a66",
  "--hs-s1": "#4aa3df",
  "--hs-s2": "#f08a45",
  "--hs-s3": "#2fc79a",
  "--hs-s4": "#e0a3c6",
  "--hs-s5": "#8fd0f7",
  "--hs-s6": "#f2bd4d",
};

/** A custom property's colours as a style sheet: light, dark by the system, and either one where a page says so. */
export function themeSheet(): string {
  const list = (colours: Record<string, string>) => Object.entries(colours).map(([name, value]) => `${name}:${value}`).join(";");
  return (
    `.hs{color-scheme:light dark;${list(LIGHT)}}` +
    `@media(prefers-color-scheme:dark){.hs{${list(DARK)}}}` +
    `[data-theme=light] .hs,.hs[data-theme=light]{color-scheme:light;${list(LIGHT)}}` +
    `[data-theme=dark] .hs,.hs[data-theme=dark]{color-scheme:dark;${list(DARK)}}`
  );
}

/** The colour of lines in thumbnails, which can be seen on light and dark. */
export const LINE = "52,148,212";

type Rgb = [number, number, number];
// Cividis, which colour-blind readers see as others do, at even steps.
const CIVIDIS: Rgb[] = [[0, 34, 78], [26, 56, 111], [67, 78, 108], [102, 101, 112], [132, 125, 120], [165, 151, 114], [202, 179, 97], [235, 206, 70], [254, 232, 56]];
// Purple to orange through white: below and above.
const DIVERGING: Rgb[] = [[84, 39, 136], [153, 142, 195], [216, 218, 235], [247, 247, 247], [254, 224, 182], [241, 163, 64], [179, 88, 6]];

function along(steps: Rgb[], t: number): Rgb {
  const at = Math.max(0, Math.min(1, t)) * (steps.length - 1);
  const low = Math.floor(at), part = at - low;
  const a = steps[low]!, b = steps[Math.min(low + 1, steps.length - 1)]!;
  return [0, 1, 2].map((i) => Math.round(a[i]! + (b[i]! - a[i]!) * part)) as Rgb;
}

const css = (c: Rgb): string => `rgb(${c.join(",")})`;

/** 0 to 1 as a colour of the sequential scale. */
export const sequential = (t: number): string => css(along(CIVIDIS, t));
export const sequentialRgb = (t: number): Rgb => along(CIVIDIS, t);

/** -1 to 1 as a colour of the diverging scale. */
export const diverging = (t: number): string => css(along(DIVERGING, (t + 1) / 2));

/** Black or white, whichever can be read on a colour as `sequential` and `diverging` write it. */
export function readableOn(colour: string): string {
  const parts = (colour.match(/[\d.]+/g) ?? []).map((part) => Number(part) / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
  const light = 0.2126 * (parts[0] ?? 1) + 0.7152 * (parts[1] ?? 1) + 0.0722 * (parts[2] ?? 1);
  return light > 0.18 ? "#000000" : "#ffffff";
}
