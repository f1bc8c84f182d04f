/** Heads as points. The distances between points approximate those between their attention (Clark et al., Figure 6). */
import { scaleLinear } from "d3-scale";
import type { JSX } from "preact";
import { useCallback, useMemo, useState } from "preact/hooks";
import { sequential, SERIES } from "../charts/colour";
import type { Shade } from "../charts/colour-scale";
import type { Entry } from "../charts/legend";
import { ColourBar, entriesHeight, EntryList } from "../charts/legend";
import type { Point } from "../charts/plot";
import { Marks, Plot } from "../charts/plot";
import { outline } from "../charts/symbols";
import type { Head } from "../data/heads";
import { allHeads } from "../data/heads";
import { show } from "../data/numbers";
import type { HeadMap, Run } from "../types";
import { Switch } from "../ui/controls";
import { Frame } from "../ui/frame";
import { csvFile } from "../ui/save";

type Colour = "layer" | "behaviour";
const KINDS = ["encoder", "decoder", "cross"];
const PAD = 24, TALL = 500;

/** The map of a run's heads. `onSelect` is called with the selected head. */
export function HeadMapView(props: { run: Run; selected: string | null; onSelect: (head: string) => void }): JSX.Element | null {
  const { run, selected, onSelect } = props;
  const { map } = run;
  const heads = useMemo(() => allHeads(run.sites), [run]);
  const labelled = map?.behaviour.some(Boolean) ?? false;
  const [colour, setColour] = useState<Colour>(labelled ? "behaviour" : "layer");
  const draw = useCallback(
    (width: number, point: Point) => (map ? <Scatter map={map} heads={heads} colour={colour} selected={selected} onSelect={onSelect} width={width} point={point} /> : <svg />),
    [map, heads, colour, selected, onSelect],
  );
  if (!map) return null;
  const csv = (): string =>
    csvFile(
      ["head", "x", "y", "behaviour", "nearest", "distance"],
      heads.map((head, at) => [head.name, map.x[at] ?? null, map.y[at] ?? null, map.behaviour[at] ?? "", heads[map.neighbours[at]?.[0]?.[0] ?? -1]?.name ?? "", map.neighbours[at]?.[0]?.[1] ?? null]),
    );
  return (
    <Frame name="head-map" caption={`Heads that attend alike are close: ${map.about}, laid out in two dimensions with stress ${show(map.stress)}; n = ${placed(map).length} heads.`} signature={run.signature} csv={csv}>
      {labelled && (
        <div class="hs-controls">
          <Switch label="colour" value={colour} options={[["behaviour", "by behaviour"], ["layer", "by layer"]]} onChange={setColour} />
        </div>
      )}
      <Plot label="map of heads">{draw}</Plot>
    </Frame>
  );
}

/** The heads that have coordinates. */
const placed = (map: HeadMap): { at: number; x: number; y: number }[] =>
  map.x.flatMap((x, at) => {
    const y = map.y[at] ?? null;
    return x === null || y === null ? [] : [{ at, x, y }];
  });

function Scatter(props: { map: HeadMap; heads: Head[]; colour: Colour; selected: string | null; onSelect: (head: string) => void; width: number; point: Point }): JSX.Element {
  const { map, heads, colour, selected } = props;
  const points = placed(map);
  const width = Math.max(300, Math.min(props.width, 720));
  const behaviours = frequent(points.map(({ at }) => map.behaviour[at] ?? ""));
  const layers = Math.max(...points.map(({ at }) => heads[at]!.layer));
  const shade: Shade = { low: 1, high: Math.max(2, layers), ticks: [...new Set([1, Math.round((layers + 1) / 2), layers])], colour: (layer) => sequential((layer - 1) / Math.max(1, layers - 1)) };
  const kinds = KINDS.filter((kind) => points.some(({ at }) => heads[at]!.kind === kind));
  const entries = colour === "behaviour" ? behaviourEntries(points.map(({ at }) => map.behaviour[at] ?? ""), behaviours) : kinds.length > 1 ? kinds.map((label, symbol): Entry => ({ label, symbol, colour: "var(--hs-faint)" })) : [];
  const top = entriesHeight(entries, width) + (colour === "layer" ? 36 : 0) + 4;
  // The scale is the same in both directions, so that distances on the page are proportional to distances in the map.
  const spread = (values: number[]): [number, number] => [Math.min(...values), Math.max(...values)];
  const [left, right] = spread(points.map((point) => point.x)), [low, high] = spread(points.map((point) => point.y));
  const unit = Math.min((width - 2 * PAD) / Math.max(right - left, 1e-9), TALL / Math.max(high - low, 1e-9));
  const height = (high - low) * unit + 2 * PAD;
  const x = scaleLinear([left, left + 1], [width / 2 - ((right - left) * unit) / 2, width / 2 - ((right - left) * unit) / 2 + unit]);
  const y = scaleLinear([high, high - 1], [top + PAD, top + PAD + unit]);
  const note = (at: number): string[] => [
    `head ${heads[at]!.name}`,
    ...[map.labels?.[at] || map.behaviour[at] || ""].filter(Boolean),
    ...(map.neighbours[at]?.length ? [`nearest ${map.neighbours[at].slice(0, 3).map(([other, distance]) => `${heads[other]?.name} (${show(distance)})`).join(", ")}`] : []),
  ];
  const step = (at: number, right: number, down: number): number | undefined => {
    if (right) return points[points.findIndex((point) => point.at === at) + right]?.at;
    const here = heads[at]!;
    return points.find(({ at: other }) => heads[other]!.kind === here.kind && heads[other]!.head === here.head && heads[other]!.layer === here.layer + down)?.at;
  };
  const look = (at: number): { d: string; fill: string; opacity: number } => {
    const behaviour = behaviours.indexOf(map.behaviour[at] ?? "");
    if (colour === "layer") return { d: outline(KINDS.indexOf(heads[at]!.kind), 9.5), fill: shade.colour(heads[at]!.layer), opacity: 1 };
    return behaviour < 0 ? { d: outline(0, 6), fill: "var(--hs-faint)", opacity: 0.55 } : { d: outline(behaviour, 10), fill: SERIES[behaviour % SERIES.length]!, opacity: 1 };
  };
  const chosen = points.find(({ at }) => heads[at]!.name === selected);
  return (
    <svg width={width} height={top + height} viewBox={`0 0 ${width} ${top + height}`} role="group" aria-label="map of heads">
      {colour === "layer" && <ColourBar shade={shade} title="layer" x={8} y={8} width={150} format={String} />}
      <EntryList entries={entries} x={0} y={colour === "layer" ? 34 : 0} width={width} />
      <rect x={0.5} y={top + 0.5} width={width - 1} height={height - 1} fill="none" stroke="var(--hs-line)" rx={4} />
      <Marks first={(chosen ?? points[0])?.at ?? 0} has={(at) => points.some((point) => point.at === at)} note={note} step={step} point={props.point} onSelect={(at) => props.onSelect(heads[at]!.name)}>
        {(current) =>
          points.map((point) => {
            const { at } = point, { d, fill, opacity } = look(at);
            return (
              <g class="hs-point" data-at={at} tabindex={at === current ? 0 : -1} role="button" aria-pressed={point === chosen} aria-label={note(at).join(", ")} transform={`translate(${x(point.x).toFixed(1)} ${y(point.y).toFixed(1)})`}>
                <circle r={9} fill="transparent" />
                <path d={d} fill={fill} opacity={opacity} stroke={colour === "layer" ? "var(--hs-ink)" : "var(--hs-paper)"} stroke-width={0.6} />
                {point === chosen && <circle class="hs-ring" r={9} fill="none" stroke="var(--hs-ink)" stroke-width={1.8} />}
              </g>
            );
          })
        }
      </Marks>
      {chosen && <Label name={heads[chosen.at]!.name} x={x(chosen.x)} y={y(chosen.y)} width={width} />}
    </svg>
  );
}

function Label({ name, x, y, width }: { name: string; x: number; y: number; width: number }): JSX.Element {
  const end = x > width - 70;
  return <text x={end ? x - 13 : x + 13} y={y + 4} font-size={12} font-weight={700} text-anchor={end ? "end" : "start"} stroke="var(--hs-paper)" stroke-width={3} paint-order="stroke" pointer-events="none">{name}</text>;
}

/** The labels of the heads, most frequent first. */
function frequent(all: string[]): string[] {
  const count = (label: string): number => all.filter((other) => other === label).length;
  return [...new Set(all.filter(Boolean))].sort((a, b) => count(b) - count(a) || a.localeCompare(b));
}

function behaviourEntries(all: string[], behaviours: string[]): Entry[] {
  const count = (label: string): number => all.filter((behaviour) => behaviour === label).length;
  return [...behaviours.map((label, i): Entry => ({ label: `${label} (${count(label)})`, symbol: i, colour: SERIES[i % SERIES.length]! })), ...(count("") ? [{ label: `none of these (${count("")})`, symbol: 0, colour: "var(--hs-faint)" }] : [])];
}
