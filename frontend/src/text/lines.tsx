/** Attention as lines between two columns of words: attending words on the left, attended words on the right. */
import type { JSX } from "preact";
import { render } from "preact";
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { fit, visible } from "../charts/labels";
import type { Entry } from "../charts/legend";
import { entriesHeight, EntryList } from "../charts/legend";
import type { Position } from "../data/maps";
import { useWidth } from "../ui/hooks";
import type { Watch } from "./isolated-word";
import { Isolated, Readout, useIsolation } from "./isolated-word";
import { LineCanvas } from "./line-canvas";
import type { Layout, Place, Scene, SideName } from "./line-layout";
import { ends, layoutOf, middle, PAD, strokeOf } from "./line-layout";
import type { Step } from "./steps";

const ON_CANVAS = 2_000; // lines; a larger number is drawn on a canvas, not as SVG elements

/** The picture of lines with its interaction. */
export function Lines(props: Scene & { hint: boolean; onPin: (place: Place) => void }): JSX.Element {
  const { rows, columns, layers, lines } = props;
  const body = useRef<HTMLDivElement>(null);
  const picture = useRef<HTMLDivElement>(null);
  const room = useWidth(body);
  const layout = useMemo(() => layoutOf(rows, columns, layers.length, Math.max(280, (room || 800) - 2)), [rows, columns, layers.length, room]);
  const painted = lines.length > ON_CANVAS;
  const [isolate, watch] = useIsolation(picture);
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    if (!props.step || !box.current) return;
    const y = middle(layout, props.step.row), { scrollTop, clientHeight } = box.current;
    if (y < scrollTop + layout.step || y > scrollTop + clientHeight - 2 * layout.step) box.current.scrollTop = y - clientHeight / 2;
  }, [props.step, layout]);

  const placeAt = (event: MouseEvent): Place | null => {
    const box = picture.current!.getBoundingClientRect();
    const x = event.clientX - box.left, at = Math.floor((event.clientY - box.top - layout.top) / layout.step);
    const side = x < layout.left + PAD ? "row" : x > layout.right - PAD ? "column" : null;
    return side && at >= 0 && at < (side === "row" ? rows : columns).length ? { side, at } : null;
  };
  const focusOn = (side: SideName, at: number): void => {
    const words = picture.current!.querySelectorAll<SVGElement>(`[data-side=${side}] [role=option]`);
    const word = words[Math.max(0, Math.min(words.length - 1, at))];
    for (const other of picture.current!.querySelectorAll(`[data-side=${side}] [tabindex="0"]`)) other.setAttribute("tabindex", "-1");
    word?.setAttribute("tabindex", "0");
    word?.focus();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const place = placeOf(event.target);
    if (!place) return;
    const { side, at } = place;
    const moves: Record<string, () => void> = {
      ArrowDown: () => focusOn(side, at + 1), ArrowUp: () => focusOn(side, at - 1),
      PageDown: () => focusOn(side, at + 10), PageUp: () => focusOn(side, at - 10),
      Home: () => focusOn(side, 0), End: () => focusOn(side, Infinity),
      ArrowLeft: () => focusOn("row", at), ArrowRight: () => focusOn("column", at),
      Enter: () => props.onPin(place), " ": () => props.onPin(place),
    };
    if (!(event.key in moves)) return;
    moves[event.key]!();
    event.preventDefault();
  };
  // Tab reaches one word per column; arrow keys move from there.
  useLayoutEffect(() => {
    for (const column of picture.current?.querySelectorAll("[data-side]") ?? [])
      if (!column.querySelector('[tabindex="0"]')) column.querySelector("[role=option]")?.setAttribute("tabindex", "0");
  });
  return (
    <div ref={body}>
      <Readout {...props} watch={watch} />
      <div ref={box} class="hs-lines">
        <div
          ref={picture}
          class="hs-lines-picture"
          style={{ width: `${layout.width}px`, height: `${layout.height}px` }}
          onPointerMove={(event) => isolate(placeAt(event))}
          onPointerLeave={() => isolate(null)}
          onFocusIn={(event) => event.target instanceof Element && event.target.matches(":focus-visible") && isolate(placeOf(event.target))}
          onFocusOut={() => isolate(null)}
          onClick={(event) => {
            const place = placeAt(event);
            if (place) props.onPin(place);
          }}
          onKeyDown={onKeyDown}
        >
          {room > 0 && painted && <LineCanvas layout={layout} layers={layers} lines={lines} />}
          {room > 0 && <LinesPicture {...props} lines={painted ? [] : lines} layout={layout} watch={watch} />}
        </div>
      </div>
    </div>
  );
}

/** The picture as a separate SVG element with all lines, for saving. It has a legend of the heads, which are chips on the page. */
export function linesSvg(scene: Scene): SVGSVGElement | null {
  const holder = document.createElement("div");
  render(<LinesPicture {...scene} layout={layoutOf(scene.rows, scene.columns, scene.layers.length, 680)} legend />, holder);
  return holder.querySelector("svg");
}

const placeOf = (target: EventTarget | null): Place | null => {
  if (!(target instanceof SVGElement) || target.dataset["at"] === undefined) return null;
  return { side: target.parentElement!.dataset["side"] as SideName, at: Number(target.dataset["at"]) };
};

function LinesPicture(props: Scene & { layout: Layout; watch?: Watch; legend?: boolean }): JSX.Element {
  const { layout, lines, layers, pins, marked } = props;
  const emphasis = lines.length > 0 && lines.at(-1)!.strong;
  const drawn = useMemo(
    () =>
      lines.map((line) => {
        const [x1, y1, x2, y2] = ends(layout, line, layers.length);
        const stroke = strokeOf(line, layers, emphasis);
        return <line x1={x1} y1={y1} x2={x2} y2={y2} stroke={stroke.colour} stroke-opacity={stroke.opacity.toFixed(3)} stroke-width={stroke.width} />;
      }),
    [layout, lines, layers],
  );
  const { step } = props;
  const words = useMemo(
    () => (["row", "column"] as const).map((side) => <Words side={side} positions={side === "row" ? props.rows : props.columns} layout={layout} red={marked[side]} pins={pins} step={step} />),
    [layout, props.rows, props.columns, pins, marked, step],
  );
  const entries = props.legend && layers.length > 1 ? layers.map(({ head, colour }): Entry => ({ label: `head ${head}`, colour, line: "solid" })) : [];
  const above = entries.length ? entriesHeight(entries, layout.width - 8) + 8 : 0;
  return (
    <svg viewBox={`0 ${-above} ${layout.width} ${layout.height + above}`} width={layout.width} height={layout.height + above} role="group" aria-label="attention between words">
      <EntryList entries={entries} x={8} y={4 - above} width={layout.width - 8} />
      <Shade rows={props.rows} layout={layout} />
      <g class="hs-links" stroke-linecap="round">{drawn}</g>
      <Isolated {...props} />
      {words}
    </svg>
  );
}

/** A background behind the words that the model generated, on both sides. */
function Shade({ rows, layout }: { rows: Position[]; layout: Layout }): JSX.Element | null {
  const first = rows.findIndex((position) => position.generated);
  if (first < 0) return null;
  const y = middle(layout, first) - layout.step / 2, height = (rows.length - first) * layout.step;
  return (
    <g class="hs-generated" fill="var(--hs-s3)" fill-opacity={0.14}>
      <rect x={0} y={y} width={layout.left + 3} height={height} rx={3} />
      <rect x={layout.right - 3} y={y} width={layout.width - layout.right + 3} height={height} rx={3} />
    </g>
  );
}

function Words({ side, positions, layout, red, pins, step }: { side: SideName; positions: Position[]; layout: Layout; red: ReadonlySet<number>; pins: readonly Place[]; step: Step | undefined }): JSX.Element {
  const left = side === "row";
  const x = left ? layout.left : layout.right, anchor = left ? "end" : "start";
  const pinned = new Set(pins.filter((pin) => pin.side === side).map((pin) => pin.at));
  return (
    <>
      <text class="hs-quiet" x={x} y={12} font-size={11} text-anchor={anchor} style={{ fill: "var(--hs-faint)" }}>{left ? "attending" : "attended to"}</text>
      <g data-side={side} role="listbox" aria-multiselectable={true} aria-label={left ? "words that attend" : "words attended to"} font-size={layout.font} text-anchor={anchor}>
        {positions.map((position, at) => {
          const label = layout.labels[side][at]!, full = visible(position);
          const fill = red.has(at) ? "var(--hs-red)" : pinned.has(at) ? "var(--hs-accent)" : position.special ? "var(--hs-faint)" : undefined;
          return (
            <text
              class="hs-word" role="option" aria-selected={pinned.has(at)} tabindex={-1} data-at={at}
              x={x} y={middle(layout, at) + layout.font * 0.35} font-weight={red.has(at) || pinned.has(at) ? 700 : undefined}
              style={`unicode-bidi:plaintext${fill ? `;fill:${fill}` : ""}${left && at === step?.chosen ? ";text-decoration:underline" : ""}`}
              opacity={step && at > (left ? step.chosen : step.row) ? 0.45 : undefined}
            >
              {position.original === undefined ? label : <Unknown label={label} original={position.original} x={x} font={layout.font} />}
              {label !== full && <title>{full}</title>}
            </text>
          );
        })}
      </g>
    </>
  );
}

/** The token for an unknown word, with the word below it. */
const Unknown = ({ label, original, x, font }: { label: string; original: string; x: number; font: number }): JSX.Element => (
  <>
    <tspan x={x} dy={-font * 0.26} font-size={font * 0.8}>{label}</tspan>
    <tspan class="hs-original" x={x} dy={font * 0.74} font-size={font * 0.74} font-style="italic">{fit(visible({ text: original }), 110, font * 0.74)}</tspan>
  </>
);
