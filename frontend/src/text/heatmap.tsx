/** The map of one head as a heatmap that can be zoomed and moved. Rows attend to columns. */
import type { JSX } from "preact";
import { render } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { sequential, sequentialRgb } from "../charts/colour";
import { fit, visible, widthOf } from "../charts/labels";
import type { Grid, Position } from "../data/maps";
import { show } from "../data/numbers";
import { Button } from "../ui/controls";
import { useWidth } from "../ui/hooks";
import { isMarked, markedWords } from "./highlight";

/** The visible cells: the first row and column, and the numbers of rows and columns. */
export interface View {
  row: number;
  column: number;
  rows: number;
  columns: number;
}

interface Plot {
  x: number; // position of the cells in pixels
  y: number;
  width: number; // size of all visible cells in pixels
  height: number;
}

const FONT = 11.5, LEGEND = 34;

/** The subject of a heatmap: names of its columns and rows, the unit of its values, and the value of the last colour. */
export interface Subject {
  name: string;
  corner: [columns: string, rows: string];
  unit: string;
  most: number;
  over: boolean; // whether some values are higher than `most`
}

const highest = (values: Float32Array): number => values.reduce((most, value) => Math.max(most, value), 0);

/** The subject of a head's map. */
export const attention = (grid: Grid, head: string): Subject => ({ name: `head ${head}`, corner: ["attended to →", "attending ↓"], unit: "weight", most: highest(grid.weights) || 1, over: false });

const FAR = 1.5; // a diagonal more than 1.5 times as high as the rest does not set the scale, as in the static figures

/** The subject of a measure of influence. If the diagonal is far above the rest, it does not set the scale. */
export function influence(grid: Grid, measure: string): Subject {
  const most = highest(grid.weights), apart = highest(grid.weights.filter((_, at) => Math.floor(at / grid.columns.length) !== at % grid.columns.length));
  const over = apart > 0 && most > FAR * apart;
  return { name: measure, corner: ["influence of →", "on ↓"], unit: measure, most: (over ? apart : most) || 1, over };
}

/** The view of the whole map. */
export const whole = (grid: Grid): View => ({ row: 0, column: 0, rows: grid.rows.length, columns: grid.columns.length });

const clamp = (value: number, low: number, high: number): number => Math.max(low, Math.min(high, value));

/** A view zoomed by `factor`. The given cell keeps its place on the screen. */
function zoomed(view: View, grid: Grid, factor: number, [row, column]: [number, number]): View {
  const rows = clamp(Math.round(view.rows / factor), Math.min(3, grid.rows.length), grid.rows.length);
  const columns = clamp(Math.round(view.columns / factor), Math.min(3, grid.columns.length), grid.columns.length);
  const keep = (at: number, first: number, old: number, now: number): number => Math.round(at - ((at - first) / old) * now);
  return moved({ row: keep(row, view.row, view.rows, rows), column: keep(column, view.column, view.columns, columns), rows, columns }, grid, 0, 0);
}

const moved = (view: View, grid: Grid, down: number, right: number): View => ({
  ...view,
  row: clamp(view.row + down, 0, grid.rows.length - view.rows),
  column: clamp(view.column + right, 0, grid.columns.length - view.columns),
});

function plotOf(grid: Grid, subject: Subject, room: number): Plot {
  const widest = (positions: Position[], most: number, least: number): number => Math.ceil(Math.max(least, Math.min(most, positions.reduce((wide, position) => Math.max(wide, widthOf(visible(position), FONT)), 20)))) + 8;
  const x = widest(grid.rows, room * 0.28, widthOf(subject.corner[0], 10)), y = widest(grid.columns, 110, 26);
  const cell = Math.min(30, (room - x - 8) / grid.columns.length, 640 / grid.rows.length);
  return { x, y, width: Math.max(60, cell * grid.columns.length), height: Math.max(60, cell * grid.rows.length) };
}

/** The visible cells as an image with one pixel per cell. */
function raster(grid: Grid, view: View, most: number): HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  canvas.width = view.columns;
  canvas.height = view.rows;
  const pen = canvas.getContext("2d")!, pixels = pen.createImageData(view.columns, view.rows);
  const steps = Array.from({ length: 256 }, (_, i) => sequentialRgb(i / 255));
  for (let i = 0, at = 0; i < view.rows; i++) {
    for (let j = 0; j < view.columns; j++, at += 4) {
      const weight = grid.weights[(view.row + i) * grid.columns.length + view.column + j]!;
      const [r, g, b] = steps[Math.round(clamp(weight / most, 0, 1) * 255)]!;
      pixels.data[at] = r;
      pixels.data[at + 1] = g;
      pixels.data[at + 2] = b;
      pixels.data[at + 3] = 255;
    }
  }
  pen.putImageData(pixels, 0, 0);
  return canvas;
}

/** The view as a separate SVG element with the cells as an image, for saving. */
export function heatmapSvg(grid: Grid, subject: Subject, view: View, marked: ReadonlySet<number>, row?: number): SVGSVGElement | null {
  const holder = document.createElement("div");
  render(<Drawing grid={grid} subject={subject} view={view} plot={plotOf(grid, subject, 720)} marked={marked} image={raster(grid, view, subject.most).toDataURL("image/png")} cell={null} row={row} />, holder);
  return holder.querySelector("svg");
}

export function Heatmap(props: { grid: Grid; subject: Subject; marked: ReadonlySet<number>; view: View; onView: (view: View) => void; row?: number | undefined }): JSX.Element {
  const { grid, subject, view, onView } = props;
  const body = useRef<HTMLDivElement>(null), canvas = useRef<HTMLCanvasElement>(null), cells = useRef<HTMLDivElement>(null);
  const room = useWidth(body);
  const plot = useMemo(() => plotOf(grid, subject, clamp(room - 4, 260, 720)), [grid, room]);
  const [cell, setCell] = useState<[number, number] | null>(null);
  const dragged = useRef<{ x: number; y: number; view: View } | null>(null);
  const centre: [number, number] = [view.row + view.rows / 2, view.column + view.columns / 2];
  const zoom = (factor: number, at = centre): void => onView(zoomed(view, grid, factor, at));
  const inView = view.rows < grid.rows.length || view.columns < grid.columns.length;

  useLayoutEffect(() => {
    const element = canvas.current!, pen = element.getContext("2d")!, scale = devicePixelRatio || 1;
    element.width = Math.round(plot.width * scale);
    element.height = Math.round(plot.height * scale);
    pen.imageSmoothingEnabled = view.columns > element.width || view.rows > element.height;
    pen.drawImage(raster(grid, view, subject.most), 0, 0, element.width, element.height);
  }, [grid, view, plot, subject.most]);

  const cellAt = (event: MouseEvent): [number, number] => {
    const box = cells.current!.getBoundingClientRect();
    const row = view.row + Math.floor(((event.clientY - box.top) / box.height) * view.rows);
    const column = view.column + Math.floor(((event.clientX - box.left) / box.width) * view.columns);
    return [clamp(row, 0, grid.rows.length - 1), clamp(column, 0, grid.columns.length - 1)];
  };
  // Preact's wheel listeners are passive in some browsers, but this listener must prevent zooming of the page.
  useEffect(() => {
    const wheel = (event: WheelEvent): void => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      zoom(event.deltaY < 0 ? 1.25 : 0.8, cellAt(event));
    };
    const element = cells.current!;
    element.addEventListener("wheel", wheel, { passive: false });
    return () => element.removeEventListener("wheel", wheel);
  });
  const onKeyDown = (event: KeyboardEvent): void => {
    const steps: Record<string, [number, number]> = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    const step = steps[event.key];
    if (step) {
      const [row, column] = cell ?? [view.row, view.column];
      const next: [number, number] = cell ? [clamp(row + step[0], 0, grid.rows.length - 1), clamp(column + step[1], 0, grid.columns.length - 1)] : [row, column];
      const past = (at: number, first: number, count: number): number => (at < first ? at - first : at >= first + count ? at - first - count + 1 : 0);
      setCell(next);
      onView(moved(view, grid, past(next[0], view.row, view.rows), past(next[1], view.column, view.columns)));
    } else if (event.key === "+" || event.key === "=") zoom(1.5, cell ?? centre);
    else if (event.key === "-") zoom(1 / 1.5, cell ?? centre);
    else if (event.key === "0") onView(whole(grid));
    else return;
    event.preventDefault();
  };
  const onPointerDown = (event: PointerEvent): void => {
    if (!inView || event.button !== 0) return;
    dragged.current = { x: event.clientX, y: event.clientY, view };
    cells.current!.setPointerCapture(event.pointerId);
  };
  const onPointerMove = (event: PointerEvent): void => {
    const from = dragged.current;
    if (!from) return setCell(cellAt(event));
    const right = ((from.x - event.clientX) / plot.width) * view.columns, down = ((from.y - event.clientY) / plot.height) * view.rows;
    onView(moved(from.view, grid, Math.round(down), Math.round(right)));
  };
  const word = (position: Position | undefined): JSX.Element => <bdi>{fit(visible(position ?? { text: "" }), 220, 14)}</bdi>;
  return (
    <div ref={body}>
      <div class="hs-controls">
        <span role="group" aria-label="zoom" class="hs-zoom">
          <button type="button" onClick={() => zoom(1.5)} aria-label="zoom in">+</button>
          <Button idle={!inView} onClick={() => zoom(1 / 1.5)} label="zoom out">−</Button>
          <Button idle={!inView} onClick={() => onView(whole(grid))}>whole map</Button>
        </span>
        <span class="hs-readout" aria-live="polite">
          {cell ? <>{word(grid.rows[cell[0]])} → {word(grid.columns[cell[1]])}: {show(grid.weights[cell[0] * grid.columns.length + cell[1]], 3)}</> : <span class="hs-quiet">Point at a cell. Keys: arrows, +, −, 0; Ctrl and the wheel zoom; drag moves.</span>}
        </span>
      </div>
      <div class="hs-heatmap" style={{ width: `${plot.x + plot.width + 8}px` }}>
        <canvas ref={canvas} aria-hidden="true" style={{ left: `${plot.x}px`, top: `${plot.y}px`, width: `${plot.width}px`, height: `${plot.height}px` }} />
        <Drawing grid={grid} subject={subject} view={view} plot={plot} marked={props.marked} image={null} cell={cell} row={props.row} />
        <div
          ref={cells} class="hs-cells" tabIndex={0} role="application" aria-label={`heatmap of ${subject.name}; arrows move from cell to cell, plus and minus zoom, 0 shows all`}
          style={{ left: `${plot.x}px`, top: `${plot.y}px`, width: `${plot.width}px`, height: `${plot.height}px`, cursor: inView ? "grab" : "crosshair", touchAction: inView ? "none" : "pan-y" }}
          onKeyDown={onKeyDown} onPointerDown={onPointerDown} onPointerMove={onPointerMove}
          onPointerUp={() => (dragged.current = null)} onPointerCancel={() => (dragged.current = null)} onPointerLeave={() => !dragged.current && setCell(null)}
        />
      </div>
    </div>
  );
}

/** Labels, marked cells and the scale; with `image`, also the cells. */
function Drawing(props: { grid: Grid; subject: Subject; view: View; plot: Plot; marked: ReadonlySet<number>; image: string | null; cell: [number, number] | null; row?: number | undefined }): JSX.Element {
  const { grid, subject, view, plot, cell } = props;
  const high = plot.height / view.rows, wide = plot.width / view.columns;
  const around = useMemo(() => {
    const every = { row: Math.ceil((FONT + 1) / high), column: Math.ceil((FONT + 1) / wide) };
    const red = markedWords(props.marked, grid.rows, grid.columns);
    const label = (position: Position, x: number, y: number, room: number, turned: boolean, named: boolean): JSX.Element => {
      const full = visible(position), text = fit(full, room, FONT);
      return (
        <text x={x} y={y} text-anchor={turned ? "start" : "end"} transform={turned ? `rotate(-90 ${x} ${y})` : undefined} font-weight={named ? 700 : undefined} style={`unicode-bidi:plaintext${named ? ";fill:var(--hs-red)" : position.special ? ";fill:var(--hs-faint)" : ""}${position.generated ? ";text-decoration:underline" : ""}`}>
          {text}
          {text !== full && <title>{full}</title>}
        </text>
      );
    };
    const shown = <T,>(items: T[], first: number, count: number): T[] => items.slice(first, first + count);
    const rows = shown(grid.rows, view.row, view.rows), columns = shown(grid.columns, view.column, view.columns);
    const marks = props.marked.size ? rows.flatMap((row, i) => columns.flatMap((column, j) => (isMarked(props.marked, row, column) ? [<rect x={plot.x + j * wide} y={plot.y + i * high} width={wide} height={high} />] : []))) : [];
    return (
      <>
        <g font-size={FONT}>
          {rows.map((row, i) => i % every.row === 0 && label(row, plot.x - 5, plot.y + (i + 0.5) * high + FONT * 0.35, plot.x - 6, false, red.row.has(view.row + i)))}
          {columns.map((column, j) => j % every.column === 0 && label(column, plot.x + (j + 0.5) * wide + FONT * 0.35, plot.y - 5, plot.y - 6, true, red.column.has(view.column + j)))}
        </g>
        <g fill="none" stroke="var(--hs-red)" stroke-width={2}>{marks}</g>
      </>
    );
  }, [grid, view, plot, props.marked]);
  const low = plot.y + plot.height, bar = Math.min(160, Math.max(24, plot.width - (subject.over ? 108 : 48)));
  const faint = { fill: "var(--hs-faint)" };
  return (
    <svg viewBox={`0 0 ${plot.x + plot.width + 8} ${low + LEGEND}`} width={plot.x + plot.width + 8} height={low + LEGEND} role="img" aria-label="heatmap with its words and scale">
      {props.image && <image href={props.image} x={plot.x} y={plot.y} width={plot.width} height={plot.height} preserveAspectRatio="none" style="image-rendering:pixelated" />}
      {around}
      {props.row !== undefined && props.row >= view.row && props.row < view.row + view.rows && (
        <rect class="hs-step-row" x={plot.x - 1} y={plot.y + (props.row - view.row) * high - 1} width={plot.width + 2} height={high + 2} fill="none" stroke="var(--hs-red)" stroke-width={2} />
      )}
      {cell && cell[0] >= view.row && cell[0] < view.row + view.rows && cell[1] >= view.column && cell[1] < view.column + view.columns && (
        <g fill="none" stroke-width={1.5}>
          {["#ffffff", "#000000"].map((colour, ring) => <rect x={plot.x + (cell[1] - view.column) * wide - 1 - 1.5 * ring} y={plot.y + (cell[0] - view.row) * high - 1 - 1.5 * ring} width={wide + 2 + 3 * ring} height={high + 2 + 3 * ring} stroke={colour} />)}
        </g>
      )}
      <g font-size={10} text-anchor="end">
        {subject.corner.map((words, i) => <text x={plot.x - 5} y={plot.y - 21 + i * 12} style={faint}>{words}</text>)}
      </g>
      <g font-size={11}>
        <text x={plot.x - 5} y={low + 24} text-anchor="end" style={faint}>{subject.unit}</text>
        <text x={plot.x} y={low + 24}>0</text>
        {Array.from({ length: 32 }, (_, i) => <rect x={plot.x + 12 + (i * bar) / 32} y={low + 14} width={bar / 32 + 0.5} height={11} fill={sequential(i / 31)} />)}
        <text x={plot.x + bar + 18} y={low + 24}>{show(subject.most)}{subject.over && " and more"}</text>
      </g>
    </svg>
  );
}
