/** The maps of one text: heads to choose, lines or a heatmap, and what to show of them. */
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { SERIES } from "./colour";
import { captionOf } from "./caption";
import type { View } from "./heatmap";
import { Heatmap, heatmapSvg, whole } from "./heatmap";
import type { Highlight } from "./highlight";
import { highlightKey, highlightOptions, wordPairs } from "./highlight";
import { allHeads, kindOf } from "./heads";
import { useMaps } from "./hooks";
import { Lines, linesSvg } from "./lines";
import type { Choice } from "./maps";
import { chosen, positions } from "./maps";
import { addHeads, HeadPicker } from "./picker";
import { mapsFile } from "./save";
import type { Layer, Place } from "./scene";
import { isMarked, linesOf } from "./scene";
import type { MapSource, TextData } from "./types";
import { Button, Frame, Select, Slider } from "./ui";

type Kind = "lines" | "heatmap";
const KINDS = [["lines", "lines"], ["heatmap", "heatmap"]] as const;
const LEVELS = [["token", "tokens"], ["word", "words"]] as const;
const SPECIALS = [["show", "show"], ["hide", "hide"], ["renormalise", "hide, renormalise"]] as const;
const TOPS = ["0", "1", "2", "3", "5", "10"].map((top): [string, string] => [top, top === "0" ? "all" : top]);

interface Amount {
  threshold: number;
  top: number;
}

const FAINT = 0.1; // a line of this weight can just be seen
const LEAST = [0.05, 0.04, 0.03, 0.02, 0.01];

/** How much to draw at first: everything of a sentence; of what is longer the strongest, but of every head as many links as there are words, however broad it is. */
function atFirst(rows: number, columns: number, layers: readonly Layer[]): Amount {
  if (Math.max(rows, columns) <= 40) return { threshold: 0, top: 0 };
  const passing = (weights: Float32Array, least: number): number => weights.reduce((count, weight) => count + Number(weight >= least), 0);
  return { threshold: LEAST.find((least) => layers.every(({ weights }) => passing(weights, least) >= rows)) ?? 0, top: 3 };
}

/**
 * The maps of one text. `compact` is for one example under a head: no other heads to choose, and the other controls folded away.
 * `highlight` is what is red at first.
 */
export function TextView(props: { data: TextData; source: MapSource; compact?: boolean; highlight?: Highlight; title?: string; onHeads?: (heads: string[]) => void }): JSX.Element {
  const { data, source } = props;
  const { text } = data;
  const first = highlightKey(props.highlight);
  const [heads, setHeads] = useState(() => addHeads([], data.heads.length ? data.heads : allHeads(data.sites).slice(0, 1).map((head) => head.name)).heads);
  const [view, setView] = useState<Kind>("lines");
  const [choice, setChoice] = useState<Choice>({ level: data.level ?? (first ? "word" : "token"), specials: data.specials ?? "show" });
  const [asked, setAmount] = useState<Amount | null>(null); // until someone asks for more or less, it follows the text and the heads
  const [highlight, setHighlight] = useState(first);
  const [pins, setPins] = useState<readonly Place[]>([]);
  const [alone, setAlone] = useState(heads[0] ?? ""); // the head of the heatmap
  const [near, setNear] = useState<View | null>(null);

  const head = heads[0] ?? "";
  const single = heads.includes(alone) ? alone : head;
  const { rows, columns } = useMemo(() => positions(text, head, choice), [text, kindOf(head), choice]);
  useEffect(() => {
    setPins([]);
    setNear(null);
  }, [rows, columns]);
  useEffect(() => {
    if (!pins.length) return undefined;
    const escape = (event: KeyboardEvent): void => void (event.key === "Escape" && setPins([]));
    document.addEventListener("keydown", escape);
    return () => document.removeEventListener("keydown", escape);
  }, [pins]);

  const arrived = useMaps(source, text, heads);
  const ready = heads.filter((name) => arrived.get(name) instanceof Float32Array);
  const layers = useMemo(
    () => ready.map((name): Layer => ({ head: name, colour: SERIES[heads.indexOf(name)]!, weights: chosen(arrived.get(name) as Float32Array, text, name, choice).weights })),
    [text, choice, heads.join(" "), ready.join(" ")],
  );
  const amount = useMemo(() => asked ?? atFirst(rows.length, columns.length, layers), [asked, rows, columns, layers]);
  const options = useMemo(() => highlightOptions(text, head, first), [text, head, first]);
  const marked = useMemo(() => wordPairs(text, head, options.some(([key]) => key === highlight) ? highlight : ""), [text, head, options, highlight]);
  const known = useMemo(() => pins.filter(({ side, at }) => at < (side === "row" ? rows : columns).length), [pins, rows, columns]);
  const { lines, of } = useMemo(() => linesOf(rows, columns, layers, { ...amount, pins: known, marked }), [rows, columns, layers, amount, known, marked]);
  const red = useMemo(() => {
    const words = { row: new Set<number>(), column: new Set<number>() };
    if (marked.size) rows.forEach((row, i) => columns.forEach((column, j) => isMarked(marked, row, column) && words.row.add(i) && words.column.add(j)));
    return words;
  }, [rows, columns, marked]);

  const pin = (place: Place): void =>
    setPins((now) => (now.some((other) => other.side === place.side && other.at === place.at) ? now.filter((other) => other.side !== place.side || other.at !== place.at) : [...now, place]));
  const troubles = heads.flatMap((name) => (typeof arrived.get(name) === "string" ? [`Head ${name}: ${arrived.get(name) as string}.`] : []));
  const waiting = heads.filter((name) => !arrived.has(name));
  const shownLayers = view === "lines" ? layers : layers.filter((layer) => layer.head === single);
  const scene = { rows, columns, layers, lines, pins: known, marked: red };
  const grid = useMemo(() => (shownLayers[0] ? { rows, columns, weights: shownLayers[0].weights } : null), [rows, columns, shownLayers[0]]);
  const strongest = useMemo(() => Math.max(0, ...layers.map((layer) => layer.weights.reduce((a, b) => Math.max(a, b), 0))), [layers]);
  const faint = !lines.length
    ? `No weight is as high as ${amount.threshold.toFixed(2)}: the highest is ${strongest.toFixed(3)}. Lower the least weight to see lines.`
    : strongest < FAINT ? `The attention is so broad that lines are hard to see: the highest weight is ${strongest.toFixed(3)}.` : "";

  const controls = (
    <>
      <Select label="level" value={choice.level} options={LEVELS} onChange={(level) => setChoice({ ...choice, level })} />
      <Select label="special tokens" value={choice.specials} options={SPECIALS} onChange={(specials) => setChoice({ ...choice, specials })} />
      {view === "lines" && (
        <>
          <Slider label="least weight" value={amount.threshold} min={0} max={1} step={0.01} text={amount.threshold.toFixed(2)} onChange={(threshold) => setAmount({ ...amount, threshold })} />
          <Select label="links per word" value={String(amount.top)} options={TOPS} onChange={(top) => setAmount({ ...amount, top: Number(top) })} />
        </>
      )}
      {options.length > 0 && <Select label={layers.length > 1 ? "highlight" : "in red"} value={marked.size ? highlight : ""} options={[["", "nothing"], ...options]} onChange={setHighlight} />}
    </>
  );
  return (
    <Frame
      name={`attention-${view === "lines" ? heads.join("_") : single}-${text.id}`}
      {...(props.title ? { title: props.title } : {})}
      caption={captionOf({ text, view, kind: kindOf(head), heads: shownLayers.map((layer) => layer.head), rows, columns, choice, ...amount, lines: lines.length, of, highlight: options.find(([key]) => key === highlight)?.[1] ?? "", pins: known.length, near })}
      signature={data.signature}
      brief={props.compact ?? false}
      csv={() => mapsFile(shownLayers.map(({ head: of, weights }) => ({ head: of, rows, columns, weights })))}
      svg={() => (view === "lines" ? linesSvg(scene) : grid && heatmapSvg(grid, near ?? whole(grid), marked))}
    >
      <div class="hs-text">
        {!props.compact && <HeadPicker sites={data.sites} heads={heads} onChange={(next) => { setHeads(next); props.onHeads?.(next); }} />}
        {data.why && heads.join(" ") === data.heads.join(" ") && <p class="hs-note">{heads.length > 1 ? "Heads" : "Head"} {heads.join(", ")} {heads.length > 1 ? "are" : "is"} shown first: {data.why.replace(/\.?$/, ".")}</p>}
        <div class="hs-controls">
          <span class="hs-choice" role="group" aria-label="view">
            {KINDS.map(([kind, name]) => <button type="button" aria-pressed={view === kind} onClick={() => setView(kind)}>{name}</button>)}
          </span>
          {view === "heatmap" && heads.length > 1 && <Select label="head" value={single} options={heads.map((name) => [name, name] as const)} onChange={setAlone} />}
          {props.compact ? <details class="hs-more"><summary>options</summary><div class="hs-controls">{controls}</div></details> : controls}
          {view === "lines" && <Button idle={!known.length} onClick={() => setPins([])}>unpin all</Button>}
          <span role="status" class="hs-busy">{waiting.length > 0 && `loading ${waiting.join(", ")} …`}</span>
        </div>
        {troubles.length > 0 && <p class="hs-trouble" role="alert">{troubles.join(" ")}</p>}
        {view === "lines" && layers.length > 0 && faint && <p class="hs-note">{faint}</p>}
        {view === "lines" && <Lines {...scene} hint={!props.compact} onPin={pin} />}
        {view === "heatmap" && grid && <Heatmap grid={grid} head={single} marked={marked} view={near ?? whole(grid)} onView={setNear} />}
      </div>
    </Frame>
  );
}
