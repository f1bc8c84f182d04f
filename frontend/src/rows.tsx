/** Rows of values with their intervals: a name at the left, dots on a line, words at the right. */
import { scaleLinear } from "d3-scale";
import type { JSX } from "preact";
import { BottomAxis } from "./axes";
import type { Entry } from "./legend";
import { entriesHeight, EntryList } from "./legend";
import type { Point } from "./plot";
import { Marks } from "./plot";
import { present } from "./shade";
import { outline } from "./symbols";

export interface Dot {
  value: number | null;
  low: number | null;
  high: number | null;
  colour: string;
  symbol: number;
}

/** A piece of the words at the right; one with a `head` can be chosen. */
export interface Word {
  text: string;
  head?: string;
}

export interface Row {
  label: string;
  extra?: string; // faint, after the label
  section?: string; // a heading above the row
  domain?: [number, number]; // its own, written at its ends, in place of the common one
  dots: Dot[];
  tick?: number | null; // a faint stroke
  rug?: (number | null)[]; // where all heads are
  words: Word[];
  note: string[];
}

const CHARACTER = 5.9; // at font size 11, on average
const tidy = (value: number): string => String(Number(value.toPrecision(2))).replace("-", "−");
const length = (words: readonly Word[]): number => words.reduce((sum, word) => sum + word.text.length, 0);

/** The rows as one drawing, with a legend above and the common axis below. Where it is narrow the dots get a line of their own. */
export function DotRows(props: {
  rows: Row[];
  domain: [number, number];
  axis: string | null; // null: no axis
  entries: Entry[];
  width: number;
  label: string;
  point: Point;
  onSelect?: (head: string) => void;
}): JSX.Element {
  const { rows, axis } = props;
  const width = Math.max(300, Math.min(props.width, 920)), narrow = width < 540;
  const names = Math.min(width * 0.34, Math.max(...rows.map((row) => (row.label.length + (row.extra?.length ?? 0)) * 6.8 + 20), 60));
  const texts = Math.max(...rows.map((row) => length(row.words) * CHARACTER + 12), 40);
  const end = (side: 0 | 1): number => Math.max(0, ...rows.map((row) => (row.domain ? tidy(row.domain[side]).length * 5 + 8 : 0))); // room for the numbers at the ends of rows' own scales
  const left = (narrow ? 4 : names) + end(0), right = narrow ? width - 6 - end(1) : Math.max(left + 120, width - texts - end(1));
  const high = narrow ? 38 : 22;
  const top = entriesHeight(props.entries, width) + 6;
  let y = top;
  const tops = rows.map((row) => {
    if (row.section) y += 22;
    const at = y;
    y += high;
    return at;
  });
  const common = scaleLinear(props.domain, [left, right]);
  const total = y + (axis === null ? 4 : 36);
  const full = narrow ? width : Math.max(width, right + end(1) + texts);
  return (
    <svg width={full} height={total} viewBox={`0 0 ${full} ${total}`} role="group" aria-label={props.label}>
      <EntryList entries={props.entries} x={0} y={0} width={width} />
      {axis !== null && <BottomAxis scale={common} top={top} y={y} label={axis} />}
      <Marks first={0} has={(at) => at < rows.length} note={(at) => rows[at]!.note} point={props.point} step={(at, _, down) => (rows[at + down] ? at + down : undefined)}>
        {(current) =>
          rows.map((row, i) => {
            const scale = row.domain ? scaleLinear(row.domain, [left, right]) : common;
            const line = tops[i]! + high / 2 + (narrow ? 5 : 0), words = narrow ? tops[i]! + 12 : line + 3.8;
            return (
              <>
                {row.section && <text x={0} y={tops[i]! - 5} font-size={11} font-weight={600}>{row.section}</text>}
                <g class="hs-row" data-at={i} tabindex={i === current ? 0 : -1} role="img" aria-label={row.note.join(", ")}>
                  <rect class="hs-row-face" x={0} y={tops[i]} width={full} height={high} fill="transparent" />
                  <text x={narrow ? 0 : 6} y={words} font-size={11.5}>
                    {row.label}
                    {row.extra && <tspan dx={6} font-size={10} style={{ fill: "var(--hs-faint)" }}>{row.extra}</tspan>}
                  </text>
                  <Line row={row} scale={scale} y={line} own={row.domain !== undefined} />
                </g>
                <Words words={row.words} x={narrow ? width : right + 10 + end(1)} y={words} end={narrow} {...(props.onSelect ? { onSelect: props.onSelect } : {})} />
              </>
            );
          })
        }
      </Marks>
    </svg>
  );
}

function Line({ row, scale, y, own }: { row: Row; scale: (value: number) => number; y: number; own: boolean }): JSX.Element {
  const [low, high] = own ? row.domain! : [0, 0];
  const shift = row.dots.length > 1 ? 3 : 0;
  return (
    <>
      {row.rug && <path d={present(row.rug).map((value) => `M${scale(value).toFixed(1)} ${y - 3.5}v7`).join("")} stroke="var(--hs-faint)" stroke-width={0.6} opacity={0.4} />}
      {own && <line x1={scale(low)} x2={scale(high)} y1={y} y2={y} stroke="var(--hs-line)" />}
      {own && <text x={scale(low) - 5} y={y + 3} font-size={9} text-anchor="end" style={{ fill: "var(--hs-faint)" }}>{tidy(low)}</text>}
      {own && <text x={scale(high) + 5} y={y + 3} font-size={9} style={{ fill: "var(--hs-faint)" }}>{tidy(high)}</text>}
      {row.tick !== null && row.tick !== undefined && <line x1={scale(row.tick)} x2={scale(row.tick)} y1={y - shift - 5} y2={y - shift + 5} stroke="var(--hs-faint)" stroke-width={1.5} />}
      {row.dots.map((dot, i) => {
        if (dot.value === null) return null;
        const at = y + (i === 0 ? -shift : shift);
        return (
          <>
            {dot.low !== null && dot.high !== null && <line x1={scale(dot.low)} x2={scale(dot.high)} y1={at} y2={at} stroke={dot.colour} stroke-width={1.8} opacity={0.65} />}
            <path d={outline(dot.symbol, 7)} transform={`translate(${scale(dot.value)} ${at})`} fill={dot.colour} />
          </>
        );
      })}
    </>
  );
}

function Words(props: { words: Word[]; x: number; y: number; end: boolean; onSelect?: (head: string) => void }): JSX.Element {
  const { onSelect } = props;
  return (
    <text x={props.x} y={props.y} font-size={11} text-anchor={props.end ? "end" : "start"} style={{ fill: "var(--hs-faint)", whiteSpace: "pre" }} xml:space="preserve">
      {props.words.map(({ text, head }) =>
        head && onSelect ? (
          <tspan
            class="hs-link"
            role="button"
            tabindex={0}
            aria-label={`head ${head}`}
            style={{ fill: "var(--hs-accent)", textDecoration: "underline", cursor: "pointer" }}
            onClick={() => onSelect(head)}
            onKeyDown={(event) => {
              if (event.key !== "Enter" && event.key !== " ") return;
              event.preventDefault();
              event.stopPropagation();
              onSelect(head);
            }}
          >
            {text}
          </tspan>
        ) : (
          <tspan>{text}</tspan>
        ),
      )}
    </text>
  );
}
