/** All heads of a model: one number per head, or its map on a text. */
import type { JSX } from "preact";
import { useCallback, useEffect, useMemo, useState } from "preact/hooks";
import { shadeOf, WEIGHTS } from "../charts/colour-scale";
import type { Look } from "../charts/head-cells";
import { HeadGrid } from "../charts/head-grid";
import type { Point } from "../charts/plot";
import { Plot } from "../charts/plot";
import { thumbnail, usePictures } from "../charts/thumbnails";
import { inWords } from "../data/directions";
import { allHeads, sidesOf } from "../data/heads";
import { powerOf, short, timesPower } from "../data/numbers";
import { plainText } from "../data/plain-text";
import { emptied, facts, grouped, keyOf, lift, ruleOf, sampleSize, titled } from "../data/quantity";
import { useAllMaps } from "../data/use-maps";
import type { MapSource, Quantity, Run, Text } from "../types";
import { Select } from "../ui/controls";
import { Frame } from "../ui/frame";
import type { Cell } from "../ui/save";
import { csvFile, mapsFile } from "../ui/save";
import { GridControls } from "./grid-controls";
import { filterWords, passing } from "./grid-filter";
import type { GridState } from "./grid-state";

/** All heads by layer or in the order of a quantity. `onSelect` is called with the selected head, `onState` with the new state. */
export function ModelGrid(props: { run: Run; source: MapSource; selected: string | null; onSelect: (head: string) => void; start: GridState; onState: (state: GridState) => void }): JSX.Element {
  const { run, source, selected, onSelect } = props;
  const heads = useMemo(() => allHeads(run.sites).map((head, at) => ({ head, at })), [run]);
  const names = useMemo(() => heads.map(({ head }) => head.name), [heads]);
  const [state, setState] = useState(props.start);
  useEffect(() => setState(props.start), [props.start]); // the address changed
  const { quantity: key, slice: part } = state;
  const change = (part: Partial<GridState>): void => {
    const next = { ...state, ...part };
    setState(next);
    props.onState(next);
  };
  const slice = run.slices?.values.find(({ name }) => name === part);
  const quantity = useMemo(() => {
    const all = run.quantities.find((q) => keyOf(q) === key);
    return slice && all ? (slice.quantities.find((q) => keyOf(q) === key) ?? emptied(all)) : all;
  }, [run, key, slice]);
  const pictures = run.stacks.length > 0 && (state.mode === "map" || !quantity);
  const text = pictures ? (run.texts[run.stacks[state.text]?.text ?? -1] ?? null) : null;
  const maps = useAllMaps(source, text, names);
  const picture = useCallback((weights: Float32Array, head: string): string => {
    const { queries, keys } = sidesOf(text!, head);
    return thumbnail(weights, queries.tokens.length, keys.tokens.length);
  }, [text]);
  const drawn = usePictures(maps.weights, picture);
  const above = state.scale === "above" && !pictures;

  const { shown, passes, ranked } = useMemo(() => {
    const shown = heads.map(({ at }) => (quantity ? (above ? lift(quantity, at) : (quantity.value[at] ?? null)) : null));
    const passes = passing(heads, quantity, shown, state);
    const size = (at: number): number => shown[at] ?? -Infinity;
    const ranked = state.order === "value" ? heads.filter(({ at }) => passes[at]).sort((a, b) => (size(b.at) === size(a.at) ? 0 : size(b.at) - size(a.at))) : null;
    return { shown, passes, ranked };
  }, [heads, quantity, state, above]);

  const draw = useCallback(
    (width: number, point: Point) => {
      const shade = pictures ? WEIGHTS : shadeOf(shown, above), power = powerOf(shown);
      const look = (at: number): Look => {
        const value = shown[at] ?? null;
        const common = { dim: !passes[at], name: ranked !== null };
        if (pictures) return { ...common, fill: null, image: drawn.get(names[at]!) ?? "" };
        return { ...common, fill: value === null ? null : shade.colour(value), text: value === null ? "" : short(value * 10 ** power) };
      };
      const note = (at: number): string[] => [`head ${names[at]}`, ...(quantity ? facts(run, quantity, at) : [])];
      const legend = pictures ? "weight" : quantity ? `${inWords(quantity.name)}${above ? ` − ${ruleOf(run, quantity)}` : ""}${power ? `; numbers${timesPower(power)}` : ""}` : "";
      return <HeadGrid {...{ sites: run.sites, heads, ranked, pictures, shade, legend, look, note, selected, onSelect, width, point }} />;
    },
    [run, shown, passes, ranked, drawn, pictures, selected, onSelect],
  );

  const filter = filterWords(run, heads, passes, quantity, state, above);
  const what = pictures
    ? `Attention of every head of ${run.model} on one text (n = 1): one row per query, one column per key, coloured by the square root of the weight.`
    : `Every head of ${run.model}${slice ? ` on documents of ${run.slices!.by} ${slice.name}` : ""}${quantity ? `, ${titled(quantity)}; ${sampleSize(run, quantity)}.${above ? ` Colours show how far heads are above ${ruleOf(run, quantity)}.` : ""}` : "."}`;
  return (
    <Frame
      name={pictures ? "head-maps" : `heads-${key}${slice ? `-${slice.name}` : ""}`}
      title="All heads"
      caption={filter ? `${what} ${filter[0]!.toUpperCase()}${filter.slice(1)}.` : what}
      signature={slice && !pictures ? slice.signature : run.signature}
      csv={() => (text ? mapRows(maps.weights, text) : numberRows(run, quantity, passes, part))}
    >
      <div class="hs-controls">
        {quantity && <Select label="quantity" value={key} options={grouped(run.quantities)} onChange={(quantity) => change({ quantity, least: null })} />}
        {quantity && run.slices && !pictures && (
          <Select label={run.slices.by} value={part} options={sliceOptions(run)} onChange={(slice) => change({ slice, least: null })} />
        )}
        <GridControls run={run} heads={heads} quantity={quantity} shown={shown} state={state} onChange={change} />
      </div>
      {quantity && (
        <p class="hs-about">
          {titled(quantity)}
          {slice && !pictures && ` · ${run.slices!.by} ${slice.name}, ${sampleSize(run, quantity)}`}
          {filter && ` · ${filter}`}
        </p>
      )}
      {text && <p class="hs-about hs-sample">“{plainText(text)}”</p>}
      {maps.trouble && <p class="hs-trouble" role="alert">{maps.trouble}</p>}
      <Plot label="all heads">{draw}</Plot>
    </Frame>
  );
}

/** The options for all documents and for each slice, with their numbers of documents. */
function sliceOptions(run: Run): [string, string][] {
  const counted = (name: string, n: number): string => `${name} (${n.toLocaleString("en")} document${n === 1 ? "" : "s"})`;
  return [["", counted("all", run.counts.documents ?? 0)], ...run.slices!.values.map(({ name, documents }): [string, string] => [name, counted(name, documents)])];
}

function numberRows(run: Run, quantity: Quantity | undefined, passes: boolean[], slice: string): string {
  const rows = allHeads(run.sites).map(({ kind, layer, head }, at): Cell[] => [
    ...(run.slices ? [slice || "all"] : []), kind, layer, head, quantity?.measure ?? "", quantity?.name ?? "", ...(["value", "low", "high", "n", "baseline"] as const).map((column) => quantity?.[column][at] ?? null), String(passes[at]),
  ]);
  return csvFile([...(run.slices ? [run.slices.by] : []), "kind", "layer", "head", "measure", "quantity", "value", "low", "high", "n", "baseline", "passes"], rows);
}

function mapRows(maps: Map<string, Float32Array>, text: Text): string {
  const words = (tokens: string[]): { text: string }[] => tokens.map((token) => ({ text: token }));
  return mapsFile([...maps].map(([head, weights]) => ({ head, rows: words(sidesOf(text, head).queries.tokens), columns: words(sidesOf(text, head).keys.tokens), weights })));
}
