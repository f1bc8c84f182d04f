/** The attention of selected heads on a text: lines between words, or a heatmap of one head. */
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { SERIES } from "../charts/colour";
import { kindOf } from "../data/heads";
import { chosen, positions } from "../data/maps";
import { useMaps } from "../data/use-maps";
import { Button, Select, Slider } from "../ui/controls";
import { Frame } from "../ui/frame";
import { mapsFile } from "../ui/save";
import { captionOf } from "./caption";
import { HeadPicker } from "./head-picker";
import type { View } from "./heatmap";
import { attention, Heatmap, heatmapSvg, whole } from "./heatmap";
import { markedWords } from "./highlight";
import type { Layer, Place } from "./line-layout";
import { linesOf, SEEN } from "./line-layout";
import { Lines, linesSvg } from "./lines";
import { stepName, Steps, stepsOf } from "./steps";
import type { TextViewProps } from "./text-controls";
import { MarkingSelect } from "./text-controls";

const TOPS = ["0", "1", "2", "3", "5", "10"].map((top): [string, string] => [top, top === "0" ? "all" : top]);

interface Amount {
  threshold: number;
  top: number;
}

const FAINT = 0.1; // lines of lower weights are hard to see
const LEAST = [SEEN, 0.04, 0.03, 0.02, 0.01];

/**
 * The initial amount. The threshold is the highest of `LEAST` at which each head has at least as many links as there are
 * rows, or 0. For long texts only the three strongest links of each row are drawn.
 */
function atFirst(rows: number, columns: number, layers: readonly Layer[]): Amount {
  const top = Math.max(rows, columns) <= 40 ? 0 : 3;
  const passing = (weights: Float32Array, least: number): number => weights.reduce((count, weight) => count + Number(weight >= least), 0);
  return { threshold: LEAST.find((least) => layers.every(({ weights }) => passing(weights, least) >= rows)) ?? 0, top };
}

/** Lines or a heatmap of the selected heads. `compact` is for an example of one head: the head is fixed, other controls are folded. */
export function Attention(props: TextViewProps & { view: "lines" | "heatmap"; compact: boolean; title?: string | undefined }): JSX.Element {
  const { data, source, heads, view, choice, marking } = props;
  const { text } = data;
  const [asked, setAmount] = useState<Amount | null>(null); // null until the reader changes the amount
  const [pins, setPins] = useState<readonly Place[]>([]);
  const [alone, setAlone] = useState(heads[0] ?? ""); // the head in the heatmap
  const [near, setNear] = useState<View | null>(null);
  const [at, setAt] = useState(data.step ?? 0); // the selected step of a generated text; 0 for all steps

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
  const { marked } = marking;
  const steps = useMemo(() => stepsOf(rows, choice, text), [rows, choice, text]);
  const step = steps[at - 1];
  const known = useMemo(() => {
    const own = step ? [{ side: "row", at: step.row } as const] : [];
    return [...own, ...pins.filter((pin) => pin.at < (pin.side === "row" ? rows : columns).length && !(step && pin.side === "row" && pin.at === step.row))];
  }, [pins, rows, columns, step]);
  const { lines, of } = useMemo(() => {
    const all = linesOf(rows, columns, layers, { ...amount, pins: known, marked });
    return step ? { lines: all.lines.filter((line) => line.strong), of: 0 } : all; // only the step's row, pinned words, marked pairs
  }, [rows, columns, layers, amount, known, marked, step]);
  const red = useMemo(() => markedWords(marked, rows, columns), [rows, columns, marked]);

  const pin = (place: Place): void =>
    setPins((now) => (now.some((other) => other.side === place.side && other.at === place.at) ? now.filter((other) => other.side !== place.side || other.at !== place.at) : [...now, place]));
  const troubles = heads.flatMap((name) => (typeof arrived.get(name) === "string" ? [`Head ${name}: ${arrived.get(name) as string}.`] : []));
  const waiting = heads.filter((name) => !arrived.has(name));
  const shownLayers = view === "lines" ? layers : layers.filter((layer) => layer.head === single);
  const scene = { rows, columns, layers, lines, pins: known, marked: red, pairs: marked, step };
  const grid = useMemo(() => (shownLayers[0] ? { rows, columns, weights: shownLayers[0].weights } : null), [rows, columns, shownLayers[0]]);
  const strongest = useMemo(() => Math.max(0, ...layers.map((layer) => layer.weights.reduce((a, b) => Math.max(a, b), 0))), [layers]);
  const faint = step ? "" : !lines.length
    ? `No weight is as high as ${amount.threshold.toFixed(2)}: the highest is ${strongest.toFixed(3)}. Lower the least weight to see lines.`
    : strongest < FAINT ? `The attention is so broad that lines are hard to see: the highest weight is ${strongest.toFixed(3)}.` : "";

  const controls = (
    <>
      {props.controls}
      {view === "lines" && !step && (
        <>
          <Slider label="least weight" value={amount.threshold} min={0} max={1} step={0.01} text={amount.threshold.toFixed(2)} onChange={(threshold) => setAmount({ ...amount, threshold })} />
          <Select label="links per word" value={String(amount.top)} options={TOPS} onChange={(top) => setAmount({ ...amount, top: Number(top) })} />
        </>
      )}
      <MarkingSelect marking={marking} label={layers.length > 1 ? "highlight" : "in red"} />
    </>
  );
  return (
    <Frame
      name={`attention-${view === "lines" ? heads.join("_") : single}-${text.id}`}
      {...(props.title ? { title: props.title } : {})}
      caption={captionOf({ text, view, kind: kindOf(head), heads: shownLayers.map((layer) => layer.head), rows, columns, choice, ...amount, lines: lines.length, of, highlight: marking.name, pins: known.length - Number(step !== undefined), near, step: step && stepName(step, rows) })}
      signature={data.signature}
      brief={props.compact}
      csv={() => mapsFile(shownLayers.map(({ head: of, weights }) => ({ head: of, rows, columns, weights })))}
      svg={() => (view === "lines" ? linesSvg(scene) : grid && heatmapSvg(grid, attention(grid, single), near ?? whole(grid), marked, step?.row))}
    >
      <div class="hs-text">
        {!props.compact && <HeadPicker sites={data.sites} heads={heads} onChange={props.onHeads} />}
        {data.why && heads.join(" ") === data.heads.join(" ") && <p class="hs-note">{heads.length > 1 ? "Heads" : "Head"} {heads.join(", ")} {heads.length > 1 ? "are" : "is"} shown first: {data.why.replace(/\.?$/, ".")}</p>}
        <div class="hs-controls">
          {props.tabs}
          {view === "heatmap" && heads.length > 1 && <Select label="head" value={single} options={heads.map((name) => [name, name] as const)} onChange={setAlone} />}
          {props.compact ? <details class="hs-more"><summary>options</summary><div class="hs-controls">{controls}</div></details> : controls}
          {view === "lines" && <Button idle={!pins.length} onClick={() => setPins([])}>unpin all</Button>}
          <span role="status" class="hs-busy">{waiting.length > 0 && `loading ${waiting.join(", ")} …`}</span>
        </div>
        <Steps steps={steps} rows={rows} value={at} onChange={setAt} />
        {troubles.length > 0 && <p class="hs-trouble" role="alert">{troubles.join(" ")}</p>}
        {view === "lines" && layers.length > 0 && faint && <p class="hs-note">{faint}</p>}
        {view === "lines" && <Lines {...scene} hint onPin={pin} />}
        {view === "heatmap" && grid && <Heatmap grid={grid} subject={attention(grid, single)} marked={marked} view={near ?? whole(grid)} onView={setNear} row={step?.row} />}
      </div>
    </Frame>
  );
}
