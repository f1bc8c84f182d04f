/** All results of a run for one head. */
import type { JSX } from "preact";
import { useCallback, useMemo } from "preact/hooks";
import { SERIES } from "../charts/colour";
import type { Row } from "../charts/dot-rows";
import { DotRows } from "../charts/dot-rows";
import type { Point } from "../charts/plot";
import { Plot } from "../charts/plot";
import { inWords } from "../data/directions";
import type { Head } from "../data/heads";
import { allHeads } from "../data/heads";
import { digitsOf, present, show, signed, valueAndInterval } from "../data/numbers";
import { facts, lift, rank, ruleOf, titled, withIntervals } from "../data/quantity";
import type { MapSource, Quantity, Run } from "../types";
import { Button } from "../ui/controls";
import { Frame } from "../ui/frame";
import type { Cell } from "../ui/save";
import { csvFile } from "../ui/save";
import { Examples } from "./examples";
import { bestLabels, isContest, sentence } from "./head-summary";
import { Labels } from "./head-types";

const LABELS = 8; // most labels under "Best at"

/** The card of a head: a summary in one sentence, labels, examples, quantities, best labels, and similar heads. */
export function HeadCard(props: { run: Run; source: MapSource; head: string; onSelect: (head: string) => void }): JSX.Element {
  const { run, onSelect } = props;
  const heads = useMemo(() => allHeads(run.sites), [run]);
  const at = heads.findIndex(({ name }) => name === props.head);
  const head = heads[at];
  if (!head) return <section class="hs-card"><p class="hs-trouble">This run has no head {props.head}.</p></section>;
  const said = sentence(run, at), known = run.quantities.some(({ value }) => (value[at] ?? null) !== null);
  const step = (by: number): JSX.Element => {
    const other = heads[at + by];
    return <Button idle={!other} onClick={() => other && onSelect(other.name)} label={`${by < 0 ? "previous" : "next"} head${other ? `, ${other.name}` : ""}`}>{by < 0 ? "‹" : ""} {other?.name ?? "–"} {by > 0 ? "›" : ""}</Button>;
  };
  return (
    <section class="hs-card" tabIndex={-1} aria-label={`head ${head.name}`}>
      <header class="hs-card-head">
        <h3>Head {head.name} <small>{place(run, head)}</small></h3>
        <nav aria-label="other heads">{step(-1)}{step(1)}</nav>
      </header>
      <p class="hs-said">{said || (known ? "" : "The run has no number for this head.")}</p>
      <Labels run={run} at={at} />
      <Examples run={run} source={props.source} head={head.name} />
      <h4>In numbers</h4>
      <div class="hs-columns">
        <Quantities run={run} at={at} head={head} />
        <div>
          <BestAt run={run} at={at} head={head} />
          <Nearest run={run} at={at} heads={heads} onSelect={onSelect} />
        </div>
      </div>
    </section>
  );
}

/** The position of a head in the model. */
function place(run: Run, head: Head): string {
  const layers = run.sites.filter(({ kind }) => kind === head.kind).length;
  return `${head.kind} attention, layer ${head.layer} of ${layers}${head.group === null ? "" : `, key-value group ${head.group}`}`;
}

/** The quantities with one value per head, of all measures. Each row shows this head among all heads. */
function Quantities({ run, at, head }: { run: Run; at: number; head: Head }): JSX.Element | null {
  const shown = useMemo(() => run.quantities.filter((quantity) => !isContest(quantity) && (quantity.value[at] ?? null) !== null), [run, at]);
  const based = shown.some((quantity) => (quantity.baseline[at] ?? null) !== null);
  const draw = useCallback(
    (width: number, point: Point) => (
      <DotRows
        rows={shown.map((quantity, i) => quantityRow(run, quantity, at, quantity.measure !== shown[i - 1]?.measure))}
        domain={[0, 1]} axis={null} width={width} label={`quantities of head ${head.name}`} point={point}
        entries={[{ label: "this head", colour: SERIES[0]!, symbol: 0 }, ...(based ? [{ label: "baseline", colour: SERIES[1]!, symbol: 3 }] : []), { label: "all heads", colour: "var(--hs-faint)", tick: true }]}
      />
    ),
    [shown, at, head],
  );
  if (!shown.length) return null;
  return (
    <Frame name={`head-${head.name}-quantities`} title="Among all heads" caption={`Head ${head.name}${withIntervals(shown.map(({ low }) => low[at] ?? null))}, its baseline where there is one, and its rank; n = ${shown.reduce((most, quantity) => Math.max(most, quantity.n[at] ?? 0), 0).toLocaleString("en")}.`} signature={run.signature} brief csv={() => rows(run.quantities, at, head)}>
      <Plot label={`quantities of head ${head.name}`}>{draw}</Plot>
    </Frame>
  );
}

function quantityRow(run: Run, quantity: Quantity, at: number, first: boolean): Row {
  const value = quantity.value[at] ?? null, baseline = quantity.baseline[at] ?? null, placed = rank(quantity, at);
  const all = present([...quantity.value, ...quantity.baseline]);
  const ends: [number, number] = [all.reduce((a, b) => Math.min(a, b), 0), all.reduce((a, b) => Math.max(a, b), quantity.share ? 1 : 0) || 1];
  return {
    label: quantity.name,
    ...(first ? { section: quantity.measure } : {}),
    domain: ends,
    dots: [
      { value, low: quantity.low[at] ?? null, high: quantity.high[at] ?? null, colour: SERIES[0]!, symbol: 0 },
      ...(baseline === null ? [] : [{ value: baseline, low: null, high: null, colour: SERIES[1]!, symbol: 3 }]),
    ],
    rug: quantity.value,
    words: [{ text: valueAndInterval(value, quantity.low[at], quantity.high[at], digitsOf(quantity.value)) }, { text: placed ? `  rank ${placed.place}` : "" }],
    note: [titled(quantity), ...facts(run, quantity, at), ...(placed ? [`rank ${placed.place} of ${placed.of}`] : [])],
  };
}

/** The labels for which the head is furthest above the rule. */
function BestAt({ run, at, head }: { run: Run; at: number; head: Head }): JSX.Element | null {
  const labels = useMemo(() => bestLabels(run, at), [run, at]);
  const above = labels.filter((quantity) => lift(quantity, at)! > 0), shown = above.slice(0, LABELS);
  const draw = useCallback(
    (width: number, point: Point) => (
      <DotRows
        rows={shown.map((quantity) => labelRow(run, quantity, at))}
        domain={[0, 1]} axis="accuracy" width={width} label={`what head ${head.name} is best at`} point={point}
        entries={[{ label: "this head", colour: SERIES[0]!, symbol: 0 }, { label: [...new Set(shown.map((quantity) => ruleOf(run, quantity)))].join(" / "), colour: SERIES[1]!, symbol: 3 }]}
      />
    ),
    [labels, at, head],
  );
  if (!labels.length) return null;
  if (!shown.length) return <div><h3 class="hs-title">Best at</h3><p class="hs-about">For no label above the rule.</p></div>;
  const sizes = shown.map((quantity) => quantity.n[at] ?? 0);
  const which = above.length > shown.length ? `The ${shown.length} labels for which head ${head.name} is furthest above the rule, of ${above.length} for which it is above it and ${labels.length} in all` : `The ${shown.length} of ${labels.length} labels for which head ${head.name} is above the rule`;
  return (
    <Frame
      name={`head-${head.name}-labels`}
      title="Best at"
      caption={`${which}, each in its better direction${withIntervals(shown.map(({ low }) => low[at] ?? null))}; n = ${Math.min(...sizes).toLocaleString("en")} to ${Math.max(...sizes).toLocaleString("en")}. Chosen and scored on the same documents.`}
      signature={run.signature}
      brief
      csv={() => rows(labels, at, head)}
    >
      <Plot label={`what head ${head.name} is best at`}>{draw}</Plot>
    </Frame>
  );
}

function labelRow(run: Run, quantity: Quantity, at: number): Row {
  return {
    label: quantity.label,
    extra: inWords(quantity.direction),
    dots: [
      { value: quantity.value[at] ?? null, low: quantity.low[at] ?? null, high: quantity.high[at] ?? null, colour: SERIES[0]!, symbol: 0 },
      { value: quantity.baseline[at] ?? null, low: null, high: null, colour: SERIES[1]!, symbol: 3 },
    ],
    words: [{ text: valueAndInterval(quantity.value[at], quantity.low[at], quantity.high[at]) }, { text: `  ${signed(lift(quantity, at))}` }],
    note: [`${quantity.label}, ${inWords(quantity.direction)}`, ...facts(run, quantity, at)],
  };
}

/** The heads with the most similar attention. */
function Nearest({ run, at, heads, onSelect }: { run: Run; at: number; heads: Head[]; onSelect: (head: string) => void }): JSX.Element | null {
  const near = run.map?.neighbours[at] ?? [];
  if (!run.map || !near.length) return null;
  return (
    <div class="hs-near">
      <h4>Attends most like it</h4>
      <ol>
        {near.map(([other, distance]) => (
          <li>
            <button type="button" onClick={() => heads[other] && onSelect(heads[other].name)}>{heads[other]?.name}</button> <span>{show(distance, 3)}{run.map?.behaviour[other] && `, ${run.map.behaviour[other]}`}</span>
          </li>
        ))}
      </ol>
      <p class="hs-about">Distance: {run.map.about}.</p>
    </div>
  );
}

function rows(quantities: readonly Quantity[], at: number, head: Head): string {
  const lines = quantities.map((quantity): Cell[] => [
    head.name, quantity.measure, quantity.name, quantity.direction, ...(["value", "low", "high", "baseline", "n"] as const).map((column) => quantity[column][at] ?? null), rank(quantity, at)?.place ?? null,
  ]);
  return csvFile(["head", "measure", "quantity", "direction", "value", "low", "high", "baseline", "n", "rank"], lines);
}
