/** Influence between the words of a text as a heatmap, by measure and layer. */
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { allHeads } from "../data/heads";
import type { Grid } from "../data/maps";
import { chosen, meanOf, unpackInfluence } from "../data/maps";
import { show } from "../data/numbers";
import type { InfluenceData, MapSource, PackedInfluence, Text } from "../types";
import { Select } from "../ui/controls";
import { Frame } from "../ui/frame";
import type { Cell } from "../ui/save";
import { csvFile } from "../ui/save";
import { counted } from "./caption";
import type { View } from "./heatmap";
import { Heatmap, heatmapSvg, influence, whole } from "./heatmap";
import type { TextViewProps } from "./text-controls";
import { MarkingSelect } from "./text-controls";
import type { Shown } from "./text-view";

type Arrived = { measure: string; packed: PackedInfluence } | { measure: string; trouble: string } | null;

/** Influence by a measure; null until it has arrived. Late replies for another measure or text are dropped. */
function useInfluence(source: MapSource, text: Text, measure: string): Arrived {
  const [arrived, setArrived] = useState<Arrived>(null);
  useEffect(() => {
    let wanted = true;
    setArrived(null);
    const arrive = (result: Arrived): void => void (wanted && setArrived(result));
    if (!measure) return undefined;
    const asked = source.influence?.(text, measure) ?? Promise.reject(new Error("there is no influence here"));
    asked.then((packed) => arrive({ measure, packed }), (error: unknown) => arrive({ measure, trouble: String(error instanceof Error ? error.message : error) }));
    return () => {
      wanted = false;
    };
  }, [source, text, measure]);
  return arrived?.measure === measure ? arrived : null;
}

export function InfluenceView(props: TextViewProps & { influence: InfluenceData; chosen: Shown["influence"]; onChosen: (chosen: Shown["influence"]) => void }): JSX.Element {
  const { data, choice, marking, influence: offered } = props;
  const { text } = data;
  const first = allHeads(data.sites)[0]!;
  const layers = new Set(data.sites.filter(({ kind }) => kind === first.kind).map(({ layer }) => layer)).size;
  const measures = Object.keys(offered.measures);
  const measure = measures.includes(props.chosen.measure) ? props.chosen.measure : (measures[0] ?? "");
  const layer = /^[1-9]\d*$/.test(props.chosen.layer) && Number(props.chosen.layer) <= layers ? props.chosen.layer : "mean";
  const [near, setNear] = useState<View | null>(null);
  useEffect(() => setNear(null), [text, choice]);
  const arrived = useInfluence(props.source, text, measure);
  const packed = arrived && "packed" in arrived ? arrived.packed : null;
  const matrices = useMemo(() => (packed ? unpackInfluence(packed) : null), [packed]);
  const grid = useMemo((): Grid | null => (matrices ? chosen(layer === "mean" ? meanOf(matrices) : matrices[Number(layer) - 1]!, text, first.name, choice, "mean") : null), [matrices, layer, text, choice]);
  const which = layer === "mean" ? `mean over ${layers} layers` : `layer ${layer}`;
  const subject = grid && influence(grid, measure);
  const missing = Object.entries(offered.missing);
  return (
    <Frame
      name={`influence-${measure}-${layer}-${text.id}`}
      caption={grid && subject ? captionOf(grid, measure, offered.measures[measure] ?? "", which, choice, subject.over, packed?.note ?? "", marking.name) : "No measure yet."}
      signature={[data.signature, ...(packed ? [packed.settings] : [])].join("|")}
      csv={() => (grid ? rows(grid, measure, layer) : "")}
      svg={() => grid && subject && heatmapSvg(grid, subject, near ?? whole(grid), marking.marked)}
    >
      <div class="hs-text">
        <div class="hs-controls">
          {props.tabs}
          {measure && <Select label="measure" value={measure} options={measures.map((name) => [name, name] as const)} onChange={(measure) => props.onChosen({ measure, layer })} />}
          <Select label="layer" value={layer} options={[["mean", "mean"], ...Array.from({ length: layers }, (_, i) => [String(i + 1), String(i + 1)] as const)]} onChange={(layer) => props.onChosen({ measure, layer })} />
          {props.controls}
          <MarkingSelect marking={marking} label="in red" />
          <span role="status" class="hs-busy">{measure && !arrived && `computing ${measure} …`}</span>
        </div>
        {measure && <p class="hs-note">{measure}: {offered.measures[measure]}.</p>}
        {missing.length > 0 && <p class="hs-note">Not here: {missing.map(([name, why]) => `${name} (${why})`).join("; ")}.</p>}
        {arrived && "trouble" in arrived && <p class="hs-trouble" role="alert">{arrived.trouble}</p>}
        {grid && subject && <Heatmap grid={grid} subject={subject} marked={marking.marked} view={near ?? whole(grid)} onView={setNear} />}
      </div>
    </Frame>
  );
}

function captionOf(grid: Grid, measure: string, about: string, which: string, choice: TextViewProps["choice"], over: boolean, note: string, red: string): string {
  const parts = [`Influence by ${measure} (${about}), ${which}, between ${counted(grid.rows, choice.level)}`];
  if (choice.specials === "hide") parts.push("special tokens hidden");
  if (choice.specials === "renormalise") parts.push("special tokens hidden and rows renormalised to 1");
  if (red) parts.push(`in red: ${red}`);
  const top = over ? ` The scale ends at the highest value off the diagonal, ${show(influence(grid, measure).most)}.` : "";
  return `${parts.join("; ")}. Rows are influenced by columns.${top}${note ? ` ${note}.` : ""}`;
}

function rows(grid: Grid, measure: string, layer: string): string {
  const cells = grid.rows.flatMap((row, i) => grid.columns.map((column, j): Cell[] => [measure, layer, j + 1, column.text, i + 1, row.text, Number(grid.weights[i * grid.columns.length + j]!.toPrecision(6))]));
  return csvFile(["measure", "layer", "from_index", "from", "to_index", "to", "value"], cells);
}
