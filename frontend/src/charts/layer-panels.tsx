/** Panels of lines by layer, one below the other, with the same layer axis. */
import { scaleLinear } from "d3-scale";
import { area, line } from "d3-shape";
import type { JSX } from "preact";
import { digitsOf, present, show, valueAndInterval } from "../data/numbers";
import { LayerAxis, LeftAxis } from "./axes";
import { widthOf, wrap } from "./labels";
import type { Entry } from "./legend";
import { entriesHeight, EntryList } from "./legend";
import type { Point } from "./plot";
import { Marks } from "./plot";
import { outline } from "./symbols";

type Values = (number | null)[];

export interface Line {
  label: string;
  colour: string;
  symbol: number;
  layer: number[];
  value: Values;
  low: Values;
  high: Values;
  heads: { name: string; layer: number; value: number; low: number | null; high: number | null }[];
}

export interface PanelData {
  title: string;
  ylabel: string;
  limits: [number, number] | null;
  lines: Line[];
  baseline: { label: string; layer: number[]; value: Values } | null;
}

const LEFT = 58, RIGHT = 10, HEIGHT = 190, TITLE = 12.5;

/** All panels as one drawing, at most 760 pixels wide. */
export function Panels(props: { panels: PanelData[]; width: number; point: Point; onSelect?: ((head: string) => void) | undefined }): JSX.Element {
  const width = Math.max(300, Math.min(props.width, 760));
  const layers = [...new Set(props.panels.flatMap((panel) => panel.lines.flatMap((l) => [...l.layer, ...l.heads.map(({ layer }) => layer)])))].sort((a, b) => a - b);
  const x = scaleLinear([(layers[0] ?? 1) - 0.5, (layers.at(-1) ?? 1) + 0.5], [LEFT, width - RIGHT]);
  let y = 0;
  const placed = props.panels.map((panel) => {
    // A title wider than the panel starts at the left edge of the drawing.
    const entries = entriesOf(panel), start = widthOf(panel.title, TITLE, undefined, 600) > width - LEFT - 4 ? 2 : LEFT;
    const title = wrap(panel.title, width - start - 4, TITLE, 600), below = y + 14 + (title.length - 1) * 16;
    const top = below + 8 + entriesHeight(entries, width - LEFT) + 6;
    const place = { panel, entries, title, start, y: y + 14, below, top };
    y = top + HEIGHT + 26;
    return place;
  });
  return (
    <svg width={width} height={y + 14} viewBox={`0 0 ${width} ${y + 14}`} role="group" aria-label="curves by layer">
      {placed.map(({ panel, entries, title, start, y, below, top }, i) => (
        <g>
          <text y={y} font-size={TITLE} font-weight={600}>{title.map((words, j) => <tspan x={start} dy={j ? 16 : 0}>{words}</tspan>)}</text>
          <EntryList entries={entries} x={LEFT} y={below + 8} width={width - LEFT} />
          <Panel panel={panel} layers={layers} x={x} top={top} width={width - LEFT - RIGHT} last={i === placed.length - 1} point={props.point} onSelect={props.onSelect} />
        </g>
      ))}
    </svg>
  );
}

const entriesOf = (panel: PanelData): Entry[] => [
  ...panel.lines.map(({ label, colour, symbol }): Entry => ({ label, colour, symbol, line: "solid" })),
  ...(panel.baseline ? [{ label: panel.baseline.label, colour: "var(--hs-faint)", line: "dashed" } as const] : []),
];

function domain(panel: PanelData): [number, number] {
  if (panel.limits) return panel.limits;
  const all = present([...panel.lines.flatMap((l) => [...l.value, ...l.low, ...l.high, ...l.heads.map(({ value }) => value)]), ...(panel.baseline?.value ?? [])]);
  const low = all.reduce((a, b) => Math.min(a, b), 0), high = all.reduce((a, b) => Math.max(a, b), 0);
  return low === high ? [0, 1] : [low < 0 ? low * 1.05 : 0, high * 1.05];
}

/**
 * One panel. Left and right keys move along the layer means of a line; up and down keys move through all marks of a
 * layer. Heads can be selected.
 */
function Panel(props: { panel: PanelData; layers: number[]; x: ReturnType<typeof scaleLinear<number, number>>; top: number; width: number; last: boolean; point: Point; onSelect?: ((head: string) => void) | undefined }): JSX.Element {
  const { panel, layers, x, top, onSelect } = props;
  const scale = scaleLinear(domain(panel), [top + HEIGHT, top + 2]);
  const y = panel.limits ? scale : scale.nice(5);
  const means = panel.lines.flatMap((l) => l.layer.flatMap((layer, i) => (l.value[i] === null || l.value[i] === undefined ? [] : [{ line: l, layer, value: l.value[i]!, low: l.low[i] ?? null, high: l.high[i] ?? null }])));
  const marks = panel.lines.flatMap((l, i) => l.heads.map((head) => ({ line: l, head, x: x(head.layer + (i - (panel.lines.length - 1) / 2) * 0.12) })));
  const places = [...means, ...marks.map(({ line: of, head }) => ({ line: of, layer: head.layer, value: head.value }))];
  const digits = digitsOf(places.map(({ value }) => value));
  const note = (at: number): string[] => {
    const mean = means[at];
    if (mean) return [`${mean.line.label}, layer ${mean.layer}`, `${mean.line.heads.length ? "mean " : ""}${valueAndInterval(mean.value, mean.low, mean.high, digits)}`, ...even(mean.layer)];
    const { line: of, head } = marks[at - means.length]!;
    return [`${of.label}, head ${head.name}`, valueAndInterval(head.value, head.low, head.high, digits), ...even(head.layer)];
  };
  const even = (layer: number): string[] => {
    const at = panel.baseline?.layer.indexOf(layer) ?? -1;
    return panel.baseline && at >= 0 ? [`${panel.baseline.label} ${show(panel.baseline.value[at], digits)}`] : [];
  };
  const step = (at: number, right: number, down: number): number | undefined => {
    const here = places[at]!;
    if (right) {
      const found = means.findIndex((mean) => mean.line === here.line && mean.layer === here.layer + right);
      return found < 0 ? undefined : found;
    }
    const column = places.map((place, i) => ({ ...place, at: i })).filter(({ layer }) => layer === here.layer).sort((a, b) => b.value - a.value || a.at - b.at);
    return column[column.findIndex((place) => place.at === at) + down]?.at;
  };
  const known = (values: Values) => (i: number) => values[i] !== null && values[i] !== undefined;
  return (
    <>
      <LeftAxis scale={y} x={LEFT} width={props.width} label={panel.ylabel} />
      <LayerAxis layers={layers} scale={x} y={top + HEIGHT} label={props.last} />
      {panel.lines.map((l) => {
        const numbers = l.layer.map((_, i) => i);
        const band = area<number>((i) => x(l.layer[i]!), (i) => y(l.low[i]!), (i) => y(l.high[i]!)).defined((i) => known(l.low)(i) && known(l.high)(i));
        const path = line<number>((i) => x(l.layer[i]!), (i) => y(l.value[i]!)).defined(known(l.value));
        return (
          <>
            <path d={band(numbers) ?? ""} fill={l.colour} opacity={0.2} />
            <path d={path(numbers) ?? ""} fill="none" stroke={l.colour} stroke-width={1.8} stroke-linejoin="round" />
          </>
        );
      })}
      {panel.baseline && (
        <path
          d={line<number>((i) => x(panel.baseline!.layer[i]!), (i) => y(panel.baseline!.value[i]!)).defined(known(panel.baseline.value))(panel.baseline.layer.map((_, i) => i)) ?? ""}
          fill="none" stroke="var(--hs-faint)" stroke-dasharray="4 3" stroke-width={1.2}
        />
      )}
      <Marks first={0} has={(at) => at < places.length} note={note} step={step} point={props.point} onSelect={onSelect && ((at) => marks[at - means.length] && onSelect(marks[at - means.length]!.head.name))}>
        {(current) => (
          <>
            {marks.map(({ line: of, head, x: middle }, i) => {
              const at = means.length + i;
              return <path class={onSelect ? "hs-dot hs-choosable" : "hs-dot"} data-at={at} tabindex={at === current ? 0 : -1} role={onSelect ? "button" : "img"} aria-label={note(at).join(", ")} d={outline(of.symbol, 5)} transform={`translate(${middle.toFixed(1)} ${y(head.value).toFixed(1)})`} fill={of.colour} opacity={0.55} />;
            })}
            {means.map(({ line: of, layer, value }, at) => (
              <path class="hs-dot" data-at={at} tabindex={at === current ? 0 : -1} role="img" aria-label={note(at).join(", ")} d={outline(of.symbol, 7.5)} transform={`translate(${x(layer).toFixed(1)} ${y(value).toFixed(1)})`} fill={of.colour} stroke="var(--hs-paper)" stroke-width={1.2} />
            ))}
          </>
        )}
      </Marks>
    </>
  );
}
