/** Legends. They are part of the SVG, so they are saved with it. */
import type { JSX } from "preact";
import type { Shade } from "./colour-scale";
import { widthOf } from "./labels";
import { outline } from "./symbols";

const STEPS = 40;

/**
 * Every tick, or every second, third and so on, so that the labels do not overlap. A tick at 0 is kept.
 * `wide` returns the width of a tick's label in units of the scale.
 */
function thinned(ticks: number[], wide: (tick: number) => number): number[] {
  const origin = Math.max(0, ticks.indexOf(0));
  const apart = (kept: number[]): boolean => kept.every((tick, i) => i === 0 || tick - kept[i - 1]! > 0.65 * (wide(tick) + wide(kept[i - 1]!)));
  const every = (step: number): number[] => ticks.filter((_, i) => (i - origin) % step === 0);
  return every(ticks.findIndex((_, i) => apart(every(i + 1))) + 1 || 1);
}

/** A colour bar, 34 pixels high, with numbers below and `title` on the right. */
export function ColourBar(props: { shade: Shade; title: string; x: number; y: number; width: number; ticks?: number[]; format?: (value: number) => string }): JSX.Element {
  const { shade, x, y, width } = props;
  const span = shade.high - shade.low;
  const format = props.format ?? ((value: number) => String(Number(value.toFixed(4))).replace("-", "−"));
  return (
    <g aria-hidden="true">
      {Array.from({ length: STEPS }, (_, i) => (
        <rect x={x + (i * width) / STEPS} y={y} width={width / STEPS + 0.5} height={9} fill={shade.colour(shade.low + ((i + 0.5) / STEPS) * span)} />
      ))}
      {thinned(props.ticks ?? shade.ticks, (tick) => (widthOf(format(tick), 10) * span) / width).map((tick) => {
        const at = x + ((tick - shade.low) / span) * width;
        return (
          <>
            <line x1={at} x2={at} y1={y + 9} y2={y + 12} stroke="var(--hs-faint)" />
            <text x={at} y={y + 22} font-size={10} text-anchor="middle" style={{ fill: "var(--hs-faint)" }}>{format(tick)}</text>
          </>
        );
      })}
      <text x={x + width + 14} y={y + 9} font-size={11}>{props.title}</text>
    </g>
  );
}

export interface Entry {
  label: string;
  colour: string;
  symbol?: number; // number of the mark
  line?: "solid" | "dashed"; // a line instead of the mark or through it
  tick?: boolean; // a short vertical line
}

const wide = (entry: Entry): number => 30 + entry.label.length * 6.2;

/** The positions of entries side by side, wrapped at `width`. Each line is 16 pixels high. */
export function layEntries(entries: readonly Entry[], width: number): { entry: Entry; x: number; line: number }[] {
  let x = 0, line = 0;
  return entries.map((entry) => {
    if (x > 0 && x + wide(entry) > width) [x, line] = [0, line + 1];
    const placed = { entry, x, line };
    x += wide(entry);
    return placed;
  });
}

/** The height of `EntryList`. */
export const entriesHeight = (entries: readonly Entry[], width: number): number => ((layEntries(entries, width).at(-1)?.line ?? -1) + 1) * 16;

/** Marks and lines with their labels. */
export function EntryList(props: { entries: readonly Entry[]; x: number; y: number; width: number }): JSX.Element {
  return (
    <g>
      {layEntries(props.entries, props.width).map(({ entry, x, line }) => (
        <g transform={`translate(${props.x + x} ${props.y + line * 16 + 8})`}>
          {entry.line && <line x1={0} x2={16} y1={0} y2={0} stroke={entry.colour} stroke-width={1.6} stroke-dasharray={entry.line === "dashed" ? "4 3" : undefined} />}
          {entry.symbol !== undefined && <path d={outline(entry.symbol, 7)} transform="translate(8 0)" fill={entry.colour} />}
          {entry.tick && <line x1={8} x2={8} y1={-5} y2={5} stroke={entry.colour} stroke-width={1.5} />}
          <text x={21} y={4} font-size={11}>{entry.label}</text>
        </g>
      ))}
    </g>
  );
}
