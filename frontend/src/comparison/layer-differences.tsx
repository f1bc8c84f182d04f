/** Two runs by layer: both lines, and their difference with its interval. */
import type { JSX } from "preact";
import { useCallback, useState } from "preact/hooks";
import { SERIES } from "../charts/colour";
import type { Line, PanelData } from "../charts/layer-panels";
import { Panels } from "../charts/layer-panels";
import type { Point } from "../charts/plot";
import { Plot } from "../charts/plot";
import { first } from "../data/quantity";
import type { Comparison } from "../types";
import { Select } from "../ui/controls";
import { Frame } from "../ui/frame";
import { csvFile } from "../ui/save";
import { captionOf, signatures } from "./captions";

type Pair = Comparison["layers"][number];
const keyOf = (pair: Pair): string => `${pair.measure}/${pair.name}/${pair.kind}`;

/** The quantity shown initially: that of the grids if it has layer means, else the first one. */
function begin({ layers, quantities }: Comparison): string {
  const found = layers.find((pair) => `${pair.measure}/${pair.name}` === first(quantities)) ?? layers[0];
  return found ? keyOf(found) : "";
}

/** The layer means of one quantity. The reader selects it from the quantities that both runs have. */
export function CompareLayers({ data }: { data: Comparison }): JSX.Element | null {
  const [key, setKey] = useState(() => begin(data));
  const pair = data.layers.find((layers) => keyOf(layers) === key);
  const draw = useCallback((width: number, point: Point) => <Panels panels={pair ? panelsOf(pair, data) : []} width={width} point={point} />, [pair, data]);
  if (!pair) return null;
  const several = new Set(data.layers.map(({ kind }) => kind)).size > 1;
  const measures = [...new Set(data.layers.map(({ measure }) => measure))];
  const options = measures.map((group) => ({ group, options: data.layers.filter(({ measure }) => measure === group).map((layers) => [keyOf(layers), several ? `${layers.name} (${layers.kind})` : layers.name] as const) }));
  return (
    <Frame
      name={`compare-layers-${key}`}
      title="Layer by layer"
      caption={captionOf(data, `${pair.name}, means over the heads of a layer, n = ${pair.layer.length} layers.`)}
      signature={signatures(data)}
      brief
      csv={() => csvFile(["kind", "layer", "quantity", "a", "b", "difference", "low", "high"], pair.layer.map((layer, i) => [pair.kind, layer, pair.name, ...(["a", "b", "difference", "low", "high"] as const).map((column) => pair[column][i] ?? null)]))}
    >
      <div class="hs-controls"><Select label="quantity" value={key} options={options} onChange={setKey} /></div>
      <Plot label="layers of both runs">{draw}</Plot>
    </Frame>
  );
}

function panelsOf(pair: Pair, data: Comparison): PanelData[] {
  const none = pair.layer.map(() => null);
  const line = (label: string, number: number, value: (number | null)[], low = none as (number | null)[], high = none as (number | null)[]): Line => ({
    label, colour: SERIES[number]!, symbol: number, layer: pair.layer, value, low, high, heads: [],
  });
  return [
    { title: pair.name, ylabel: "Mean over heads", limits: null, baseline: null, lines: [line(`a: ${data.a.name}`, 0, pair.a), line(`b: ${data.b.name}`, 1, pair.b)] },
    { title: "Difference", ylabel: "b − a", limits: null, baseline: null, lines: [line("b − a", 2, pair.difference, pair.low, pair.high)] },
  ];
}
