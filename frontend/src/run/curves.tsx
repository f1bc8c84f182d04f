/** Quantities by layer: a line through the layer means with its interval, and one mark per head (Clark et al., Figures 2 to 4). */
import type { JSX } from "preact";
import { useCallback } from "preact/hooks";
import { SERIES } from "../charts/colour";
import type { Line, PanelData } from "../charts/layer-panels";
import { Panels } from "../charts/layer-panels";
import type { Point } from "../charts/plot";
import { Plot } from "../charts/plot";
import { allHeads } from "../data/heads";
import { withIntervals } from "../data/quantity";
import type { CurvesFigure, LayerCurve, Run } from "../types";
import { Frame } from "../ui/frame";
import type { Cell } from "../ui/save";
import { csvFile } from "../ui/save";

const UNKNOWN: Pick<LayerCurve, "layer" | "value" | "low" | "high" | "baseline"> = { layer: [], value: [], low: [], high: [], baseline: [] };

/** A figure of one or more panels, one below the other. */
export function Curves(props: { run: Run; figure: CurvesFigure; onSelect?: (head: string) => void }): JSX.Element {
  const { run, figure, onSelect } = props;
  const draw = useCallback((width: number, point: Point) => <Panels panels={panelsOf(run, figure)} width={width} point={point} onSelect={onSelect} />, [run, figure, onSelect]);
  const low = figure.panels.flatMap((panel) => panel.series.flatMap(({ quantity }) => curveOf(run, figure, panel.measure, quantity).low));
  return (
    <Frame name={figure.kind === "encoder" ? figure.name : `${figure.name}-${figure.kind}`} caption={`${figure.caption.replace(/\.?$/, ".")} n = ${figure.n}. Marks are heads, lines layer means${withIntervals(low)}.`} signature={run.signature} csv={() => rows(run, figure)}>
      <Plot label={figure.caption}>{draw}</Plot>
    </Frame>
  );
}

const curveOf = (run: Run, figure: CurvesFigure, measure: string, name: string) => run.layers.find((curve) => curve.measure === measure && curve.name === name && curve.kind === figure.kind) ?? UNKNOWN;

function panelsOf(run: Run, figure: CurvesFigure): PanelData[] {
  const heads = allHeads(run.sites);
  return figure.panels.map((panel) => {
    const lines = panel.series.map((series, i): Line => {
      const quantity = run.quantities.find((q) => q.measure === panel.measure && q.name === series.quantity);
      return {
        label: series.label,
        colour: SERIES[i % SERIES.length]!,
        symbol: i,
        ...curveOf(run, figure, panel.measure, series.quantity),
        heads: heads.flatMap((head, at) => {
          const value = quantity?.value[at] ?? null;
          return head.kind === figure.kind && value !== null ? [{ name: head.name, layer: head.layer, value, low: quantity?.low[at] ?? null, high: quantity?.high[at] ?? null }] : [];
        }),
      };
    });
    const first = panel.series[0] && curveOf(run, figure, panel.measure, panel.series[0].quantity);
    const baseline = panel.baseline !== null && first ? { label: panel.baseline, layer: first.layer, value: first.baseline } : null;
    return { title: panel.title, ylabel: panel.ylabel, limits: panel.limits, lines, baseline };
  });
}

function rows(run: Run, figure: CurvesFigure): string {
  const found = figure.panels.flatMap((panel) =>
    panel.series.flatMap(({ quantity }) => {
      const curve = curveOf(run, figure, panel.measure, quantity), of = run.quantities.find((q) => q.measure === panel.measure && q.name === quantity);
      const means = curve.layer.map((layer, i): Cell[] => ["layer mean", figure.kind, layer, null, panel.measure, quantity, curve.value[i] ?? null, curve.low[i] ?? null, curve.high[i] ?? null, curve.baseline[i] ?? null, null]);
      const heads = allHeads(run.sites).flatMap((head, at): Cell[][] =>
        head.kind === figure.kind ? [["head", head.kind, head.layer, head.head, panel.measure, quantity, ...(["value", "low", "high", "baseline", "n"] as const).map((column) => of?.[column][at] ?? null)]] : [],
      );
      return [...means, ...heads];
    }),
  );
  return csvFile(["what", "kind", "layer", "head", "measure", "quantity", "value", "low", "high", "baseline", "n"], found);
}
