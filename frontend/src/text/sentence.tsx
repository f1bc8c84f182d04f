/** One sentence with the attention of one head as arcs: annotated links in red on one side, other links on the other side. */
import type { JSX } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import { LIGHT } from "../charts/colour";
import { widthOf } from "../charts/labels";
import { useWidth } from "../ui/hooks";
import { opacityOf, widthOfLine } from "./line-layout";

/** A link from the attending word to the attended word. */
export type Arc = [from: number, to: number, weight: number, annotated: boolean];

export interface SentenceData {
  words: string[];
  links: Arc[];
}

interface Placed {
  at: number; // position of the word's centre along the sentence
  span: number; // width of the word
}

const SIZES = [29, 26, 23, 21, 19, 17], GAP = 0.32, ROW = 30, NARROW = 560, COLUMN = 26;
const SERIF = LIGHT["--hs-serif"]!;

/**
 * A sentence in one line if it fits, else in a column on a narrow screen. For long texts and for cards, only the words
 * around the strongest annotated link are shown.
 */
export function Sentence({ data, small }: { data: SentenceData; small: boolean }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const room = useWidth(box);
  const whole = SIZES.find((size) => lengthOf(data.words, size) <= room - 8) ?? 0;
  const column = !small && !whole && room < NARROW && data.words.length <= COLUMN;
  const font = small ? 17 : whole || 21;
  const shown = useMemo(() => (room && !column && (small || !whole) ? around(data, room, font) : data), [data, room, column, font, whole, small]);
  return <div ref={box} class="hs-sentence">{room > 0 && (column ? <InColumn data={shown} room={room} /> : <InLine data={shown} font={font} room={room} small={small} />)}</div>;
}

const wide = (word: string, size: number, bold = true): number => widthOf(word, size, SERIF, bold ? 700 : 400);
const lengthOf = (words: readonly string[], size: number): number => words.reduce((sum, word) => sum + wide(word, size), 0) + (words.length - 1) * size * GAP;

/** The words that fit into the room, around the strongest annotated link or else the strongest link. */
function around({ words, links }: SentenceData, room: number, size: number): SentenceData {
  const annotated = links.filter(([, , , is]) => is);
  const fits = (arcs: Arc[]): Arc[] => arcs.filter(([a, b]) => lengthOf(words.slice(Math.min(a, b), Math.max(a, b) + 1), size) <= room - 8);
  const pool = fits(annotated).length ? fits(annotated) : fits(links);
  const best = pool.reduce<Arc | null>((a, b) => (!a || b[2] > a[2] ? b : a), null);
  let [low, high] = best ? [Math.min(best[0], best[1]), Math.max(best[0], best[1])] : [0, 0];
  for (let grown = true; grown; ) {
    grown = false;
    for (const [l, h] of [[low, high + 1], [low - 1, high]] as const) {
      if (l < 0 || h >= words.length || lengthOf(words.slice(l, h + 1), size) > room - 8) continue;
      [low, high, grown] = [l, h, true];
    }
  }
  const inside = (at: number): boolean => at >= low && at <= high;
  return { words: words.slice(low, high + 1), links: links.filter(([a, b]) => inside(a) && inside(b)).map(([a, b, weight, is]) => [a - low, b - low, weight, is]) };
}

function InLine({ data, font, room, small }: { data: SentenceData; font: number; room: number; small: boolean }): JSX.Element {
  const [word, setWord] = useState<number | null>(null);
  const bold = ends(data);
  let x = 4;
  const placed = data.words.map((text, i): Placed => {
    const span = wide(text, font, bold.has(i));
    const place = { at: x + span / 2, span };
    x += span + font * GAP;
    return place;
  });
  const tall = (arcs: readonly Arc[]): number => arcs.reduce((most, [a, b]) => Math.max(most, rise(Math.abs(placed[a]!.at - placed[b]!.at), small)), 0);
  const split = parted(data, small);
  const top = (small ? 6 : 12) + tall(split.above), base = top + font, below = tall(split.below);
  const height = base + font * 0.4 + (below ? below + 10 : 4);
  return (
    <svg width={room} height={height} viewBox={`0 0 ${room} ${height}`} role="img" aria-label={spoken(data)}>
      <Arcs arcs={split.below} word={word} path={(a, b) => bow(placed[a]!.at, placed[b]!.at, base + font * 0.42, rise(Math.abs(placed[a]!.at - placed[b]!.at), small))} />
      <Arcs arcs={split.above} word={word} path={(a, b) => bow(placed[a]!.at, placed[b]!.at, top - 4, -rise(Math.abs(placed[a]!.at - placed[b]!.at), small))} arrow />
      {data.words.map((text, i) => <Word key={i} text={text} x={placed[i]!.at} y={base - font * 0.12} font={font} anchor="middle" mark={bold.get(i)} faded={word !== null && !near(data, word, i)} onPoint={(on) => setWord(on ? i : null)} />)}
    </svg>
  );
}

function InColumn({ data, room }: { data: SentenceData; room: number }): JSX.Element {
  const [word, setWord] = useState<number | null>(null);
  const bold = ends(data), font = 19, side = Math.min(96, room * 0.26);
  const widest = data.words.reduce((most, text) => Math.max(most, wide(text, font)), 0);
  const y = (i: number): number => (i + 0.5) * ROW, height = data.words.length * ROW + 4;
  const split = parted(data, false);
  const reach = (a: number, b: number, most: number): number => Math.min(most, 16 + Math.abs(a - b) * 9);
  return (
    <svg width={room} height={height} viewBox={`0 0 ${room} ${height}`} role="img" aria-label={spoken(data)}>
      <Arcs arcs={split.below} word={word} path={(a, b) => bulge(y(a), y(b), side - 6, -reach(a, b, side - 10))} />
      <Arcs arcs={split.above} word={word} path={(a, b) => bulge(y(a), y(b), side + widest + 8, reach(a, b, room - side - widest - 16))} arrow />
      {data.words.map((text, i) => <Word key={i} text={text} x={side} y={y(i) + font * 0.33} font={font} anchor="start" mark={bold.get(i)} faded={word !== null && !near(data, word, i)} onPoint={(on) => setWord(on ? i : null)} />)}
    </svg>
  );
}

/** Annotated links on one side, other links on the other side. Without annotated links, all are on the first side. Cards have one side. */
function parted({ links }: SentenceData, small: boolean): { above: Arc[]; below: Arc[] } {
  const annotated = links.filter(([, , , is]) => is), others = links.filter(([, , , is]) => !is);
  if (!annotated.length) return { above: others, below: [] };
  return { above: annotated, below: small ? [] : others };
}

/** The words of annotated links: attending words are "from", attended words "to". */
function ends({ links }: SentenceData): Map<number, "from" | "to"> {
  const annotated = links.filter(([, , , is]) => is);
  return new Map([...annotated.map(([, to]) => [to, "to"] as const), ...annotated.map(([from]) => [from, "from"] as const)]);
}

const near = ({ links }: SentenceData, word: number, other: number): boolean => word === other || links.some(([a, b]) => (a === word && b === other) || (b === word && a === other));

const rise = (distance: number, small: boolean): number => (small ? Math.min(58, 14 + distance * 0.3) : Math.min(104, 16 + distance * 0.24));
const bow = (from: number, to: number, y: number, height: number): string => `M${from.toFixed(1)},${y}C${from.toFixed(1)},${(y + height * 1.3).toFixed(1)} ${to.toFixed(1)},${(y + height * 1.3).toFixed(1)} ${to.toFixed(1)},${y}`;
const bulge = (from: number, to: number, x: number, width: number): string => `M${x.toFixed(1)},${from}C${(x + width * 1.3).toFixed(1)},${from} ${(x + width * 1.3).toFixed(1)},${to} ${x.toFixed(1)},${to}`;

function Arcs({ arcs, word, path, arrow = false }: { arcs: readonly Arc[]; word: number | null; path: (from: number, to: number) => string; arrow?: boolean }): JSX.Element {
  return (
    <g fill="none" stroke-linecap="round">
      {[...arcs].sort((a, b) => a[2] - b[2]).map(([from, to, weight, annotated]) => (
        <path
          d={path(from, to)} stroke={annotated ? "var(--hs-red)" : "var(--hs-s1)"} stroke-width={annotated ? 1.4 + 2.4 * weight : widthOfLine(weight, false)}
          stroke-opacity={(word !== null && word !== from && word !== to ? 0.12 : annotated ? Math.max(0.6, opacityOf(weight)) : opacityOf(weight)).toFixed(2)}
        />
      ))}
      {arrow && arcs.map(([from, to, , annotated]) => <Tip path={path(from, to)} annotated={annotated} faded={word !== null && word !== from && word !== to} />)}
    </g>
  );
}

/** A dot at the end of a link, at the attended word. */
function Tip({ path, annotated, faded }: { path: string; annotated: boolean; faded: boolean }): JSX.Element {
  const [x, y] = path.split(/[ ]/).at(-1)!.split(",");
  return <circle cx={x} cy={y} r={annotated ? 3.4 : 2.4} stroke="none" fill={annotated ? "var(--hs-red)" : "var(--hs-s1)"} opacity={faded ? 0.15 : 1} />;
}

function Word(props: { text: string; x: number; y: number; font: number; anchor: "middle" | "start"; mark: "from" | "to" | undefined; faded: boolean; onPoint: (on: boolean) => void }): JSX.Element {
  return (
    <text
      x={props.x} y={props.y} font-size={props.font} text-anchor={props.anchor} opacity={props.faded ? 0.45 : 1} font-weight={props.mark ? 700 : undefined}
      style={`font-family:var(--hs-serif);unicode-bidi:plaintext${props.mark === "from" ? ";fill:var(--hs-red)" : ""}`}
      onPointerEnter={() => props.onPoint(true)} onPointerLeave={() => props.onPoint(false)}
    >
      {props.text}
    </text>
  );
}

/** A description of the picture for screen readers. */
function spoken({ words, links }: SentenceData): string {
  const annotated = links.filter(([, , , is]) => is), told = annotated.length ? annotated : [...links].sort((a, b) => b[2] - a[2]).slice(0, 6);
  return `${words.join(" ")} Links: ${told.map(([from, to, weight]) => `${words[from]} to ${words[to]}, ${weight.toFixed(2)}`).join("; ")}`;
}
