/** The best heads of two runs, label by label. */
import type { JSX } from "preact";
import { useCallback, useState } from "preact/hooks";
import { SERIES } from "../charts/colour";
import type { Row } from "../charts/dot-rows";
import { DotRows } from "../charts/dot-rows";
import type { Point } from "../charts/plot";
import { Plot } from "../charts/plot";
import { excludesZero, present, show, signedInterval } from "../data/numbers";
import type { Comparison } from "../types";
import { Switch } from "../ui/controls";
import { Frame } from "../ui/frame";
import { csvFile } from "../ui/save";
import { captionOf, signatures } from "./captions";

type Pair = Comparison["best"][number];

/** One row per label: the difference of the two runs' best heads with its interval. */
export function BestDifferences({ data }: { data: Comparison }): JSX.Element | null {
  const measures = [...new Set(data.best.map(({ measure }) => measure))];
  const [measure, setMeasure] = useState(measures[0] ?? "");
  const pairs = data.best.filter((pair) => pair.measure === measure);
  const kinds = new Set(pairs.map(({ kind }) => kind)).size;
  const bound = Math.max(0.05, ...present(pairs.flatMap(({ low, high, difference }) => [low, high, difference])).map(Math.abs));
  const draw = useCallback(
    (width: number, point: Point) => (
      <DotRows
        rows={pairs.map((pair) => rowOf(pair, kinds > 1))} domain={[-bound, bound]} axis="accuracy of b − accuracy of a" width={width} label="differences of best heads" point={point}
        entries={[{ label: "interval excludes 0", colour: SERIES[0]!, symbol: 0 }, { label: "does not", colour: "var(--hs-faint)", symbol: 0 }]}
      />
    ),
    [data, measure],
  );
  if (!pairs.length) return null;
  const most = Math.max(...pairs.flatMap(({ n }) => n));
  return (
    <Frame
      name={`compare-best-${measure}`}
      title="Best heads"
      caption={captionOf(data, `Accuracy of each label's best head in ${measure}, n up to ${most.toLocaleString("en")}.`)}
      signature={signatures(data)}
      brief
      csv={() => csvFile(["measure", "kind", "label", "a_head", "a", "b_head", "b", "difference", "low", "high", "n_a", "n_b"], data.best.map((pair) => [pair.measure, pair.kind, pair.label, pair.a_head, pair.a, pair.b_head, pair.b, pair.difference, pair.low, pair.high, ...pair.n]))}
    >
      {measures.length > 1 && <div class="hs-controls"><Switch label="measure" value={measure} options={measures.map((name) => [name, name] as const)} onChange={setMeasure} /></div>}
      <Plot label="differences of best heads">{draw}</Plot>
    </Frame>
  );
}

function rowOf(pair: Pair, several: boolean): Row {
  const sure = excludesZero(pair.low, pair.high);
  const side = (head: string, value: number | null): string => `${head || "–"} ${show(value)}`;
  return {
    label: pair.label,
    extra: `${several ? `${pair.kind} ` : ""}${pair.n[0] === pair.n[1] ? pair.n[0].toLocaleString("en") : pair.n.map((n) => n.toLocaleString("en")).join(" / ")}`,
    dots: [{ value: pair.difference, low: pair.low, high: pair.high, colour: sure ? SERIES[0]! : "var(--hs-faint)", symbol: 0 }],
    words: [{ text: `a ${side(pair.a_head, pair.a)}   b ${side(pair.b_head, pair.b)}` }],
    note: [pair.label, `a: ${side(pair.a_head, pair.a)}`, `b: ${side(pair.b_head, pair.b)}`, `difference ${signedInterval(pair.difference, pair.low, pair.high)}`],
  };
}
