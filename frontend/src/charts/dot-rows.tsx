/** Rows of values with their intervals: a label on the left, dots on a line, text on the right. */
import { scaleLinear } from "d3-scale";
import type { JSX } from "preact";
import { present } from "../data/numbers";
import { BottomAxis } from "./axes";
import { fit, widthOf } from "./labels";
import type { Entry } from "./legend";
import { entriesHeight, EntryList } from "./legend";
import type { Point } from "./plot";
import { Marks } from "./plot";
import { outline } from "./symbols";

export interface Dot {
  value: number | null;
  low: number | null;
  high: number | null;
  colour: string;
  symbol: number;
}

/** A part of the text on the right. A part with a `head` is a link that selects the head. */
export interface Word {
  text: string;
  head?: string;
}

export interface Row {
  label: string;
  extra?: string; // in a faint colour after the label
  section?: string; // a heading above the row
  domain?: [number, number]; // the scale of this row, with labelled ends; by default the common scale
  dots: Dot[];
  tick?: number | null; // a short faint line at this value
  rug?: (number | null)[]; // the values of all heads, as short faint lines
  words: Word[];
  note: string[];
}

const FONT = 11.5, SMALL = 10, WORDS = 11; // font sizes of labels, of the faint text after them, of words
const tidy = (value: number): string => String(Number(value.toPrecision(2))).replace("-", "−");
const wordsWidth = (words: readonly Word[]): number => words.reduce((sum, word) => sum + widthOf(word.text, WORDS), 0);
const nameWidth = (row: Row): number => widthOf(row.label, FONT) + (row.extra ? 6 + widthOf(row.extra, SMALL) : 0);

/**
 * The rows as one drawing, with a legend above and the common axis below. On a narrow screen the dots are on a separate
 * line, and so are words that do not fit beside the label.
 */
export function DotRows(props: {
  rows: Row[];
  domain: [number, number];
  axis: string | null; // null for no axis
  entries: Entry[];
  width: number;
  label: string;
  point: Point;
  onSelect?: (head: string) => void;
}): JSX.Element {
  const { rows, axis, onSelect } = props;
  const width = Math.max(300, Math.min(props.width, 920));
  const names = Math.min(width * 0.4, Math.max(...rows.map((row) => nameWidth(row) + 20), 60));
  const texts = Math.max(...rows.map((row) => wordsWidth(row.words) + 14), 40);
  const narrow = width < 540 || width - names - texts < 180;
  // Room for the numbers at the ends of the rows' scales.
  const end = (side: 0 | 1): number => Math.max(0, ...rows.map((row) => (row.domain ? tidy(row.domain[side]).length * 5 + 8 : 0)));
  const left = (narrow ? 12 : names) + end(0), right = narrow ? width - 14 - end(1) : Math.max(left + 120, width - texts - end(1));
  const top = entriesHeight(props.entries, width) + 6;
  const below = (row: Row): boolean => narrow && nameWidth(row) + wordsWidth(row.words) + 16 > width; // words below the label
  let y = top;
  const places = rows.map((row) => {
    if (row.section) y += 22;
    const place = { top: y, high: narrow ? (below(row) ? 52 : 38) : 22 };
    y += place.high;
    return place;
  });
  const common = scaleLinear(props.domain, [left, right]);
  const total = y + (axis === null ? 4 : 36);
  const full = narrow ? width : Math.max(width, right + end(1) + texts);
  const choices = onSelect ? rows.flatMap((row, i) => row.words.flatMap(({ head }) => (head ? [{ head, row: i }] : []))) : [];
  const first = (row: number): number => choices.findIndex((choice) => choice.row === row);
  const rowOf = (at: number): number => (at < rows.length ? at : choices[at - rows.length]!.row);
  // Up and down move between rows. Right moves to the heads named in a row, left moves back.
  const step = (at: number, across: number, down: number): number | undefined => {
    if (down) return rows[rowOf(at) + down] ? rowOf(at) + down : undefined;
    const next = at < rows.length ? (across > 0 ? first(at) : -1) : at - rows.length + across;
    return choices[next]?.row === rowOf(at) ? rows.length + next : rowOf(at);
  };
  const choose = (at: number, key: boolean): void => {
    const choice = at >= rows.length ? choices[at - rows.length] : key ? choices[first(at)] : undefined;
    if (choice) onSelect?.(choice.head);
  };
  return (
    <svg width={full} height={total} viewBox={`0 0 ${full} ${total}`} role="group" aria-label={props.label}>
      <EntryList entries={props.entries} x={0} y={0} width={width} />
      {axis !== null && <BottomAxis scale={common} top={top} y={y} label={axis} />}
      <Marks first={0} has={(at) => at < rows.length + choices.length} note={(at) => rows[rowOf(at)]!.note} point={props.point} step={step} onSelect={choose}>
        {(current) =>
          rows.map((row, i) => {
            const { top: start, high } = places[i]!, scale = row.domain ? scaleLinear(row.domain, [left, right]) : common;
            const line = narrow ? start + high - 14 : start + high / 2, words = narrow ? start + 12 : line + 3.8;
            const under = below(row), room = width - (under || !narrow ? 0 : nameWidth(row) + 12);
            return (
              <>
                {row.section && <text x={0} y={start - 5} font-size={11} font-weight={600}>{row.section}</text>}
                <g class="hs-row" data-at={i} tabindex={i === current ? 0 : -1} role="img" aria-label={row.note.join(", ")}>
                  <rect class="hs-row-face" x={0} y={start} width={full} height={high} fill="transparent" />
                  <text x={narrow ? 0 : 6} y={words} font-size={FONT}>
                    {fit(row.label, narrow ? width : names - 10, FONT)}
                    {row.extra && <tspan dx={6} font-size={SMALL} style={{ fill: "var(--hs-faint)" }}>{fit(row.extra, (narrow ? width : names - 10) - widthOf(row.label, FONT) - 6, SMALL)}</tspan>}
                  </text>
                  <Line row={row} scale={scale} y={line} own={row.domain !== undefined} />
                </g>
                <Words
                  words={narrow ? fitted(row.words, room) : row.words} x={under ? 0 : narrow ? width : right + 10 + end(1)} y={under ? words + 14 : words} end={narrow && !under}
                  at={onSelect && first(i) >= 0 ? rows.length + first(i) : null} current={current}
                />
              </>
            );
          })
        }
      </Marks>
    </svg>
  );
}

/** Words at most `room` pixels wide. If they are wider, the last word is shortened, unless it names a head. */
function fitted(words: Word[], room: number): Word[] {
  const last = words.at(-1);
  if (!last || last.head || wordsWidth(words) <= room) return words;
  return [...words.slice(0, -1), { text: fit(last.text, Math.max(12, room - wordsWidth(words.slice(0, -1))), WORDS) }];
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

/** The words beside a row. Heads among them can be selected; as marks they are numbered from `at`. */
function Words(props: { words: Word[]; x: number; y: number; end: boolean; at: number | null; current: number }): JSX.Element {
  let next = props.at;
  return (
    <text x={props.x} y={props.y} font-size={WORDS} text-anchor={props.end ? "end" : "start"} style={{ fill: "var(--hs-faint)", whiteSpace: "pre" }} xml:space="preserve">
      {props.words.map(({ text, head }) => {
        if (!head || next === null) return <tspan>{text}</tspan>;
        const at = next++;
        return <tspan class="hs-link" data-at={at} role="button" tabindex={at === props.current ? 0 : -1} aria-label={`head ${head}`} style={{ fill: "var(--hs-accent)", textDecoration: "underline" }}>{text}</tspan>;
      })}
    </text>
  );
}
