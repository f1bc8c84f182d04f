/** The links of one isolated word: as lines with weights, and as text. */
import type { JSX, RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { fit, visible, widthOf } from "../charts/labels";
import type { Position } from "../data/maps";
import { show } from "../data/numbers";
import { isMarked } from "./highlight";
import type { Layout, Line, Place, Scene } from "./line-layout";
import { ends, linksAt, middle, opacityOf, samePlace, strokeOf } from "./line-layout";

export type Watch = (listener: (place: Place | null) => void) => () => void;

/** Functions that isolate a word and observe the isolated word. The picture may have a thousand words, so it is not redrawn. */
export function useIsolation(picture: RefObject<HTMLDivElement | null>): [isolate: (place: Place | null) => void, watch: Watch] {
  const state = useRef<{ place: Place | null; listeners: Set<(place: Place | null) => void> }>({ place: null, listeners: new Set() });
  const { listeners } = state.current;
  const isolate = (place: Place | null): void => {
    if (samePlace(place, state.current.place)) return;
    state.current.place = place;
    picture.current?.toggleAttribute("data-isolated", place !== null);
    for (const listener of listeners) listener(place);
  };
  const watch: Watch = (listener) => {
    listeners.add(listener);
    return () => void listeners.delete(listener);
  };
  return [isolate, watch];
}

/** The isolated word, or else the only pinned word. The lines of a pinned word are already `drawn` in the picture. */
function useWatched(watch: Watch | undefined, scene: Scene): { place: Place | null; drawn: boolean } {
  const [place, setPlace] = useState<Place | null>(null);
  useEffect(() => watch?.(setPlace), []);
  const known = place && place.at < (place.side === "row" ? scene.rows : scene.columns).length ? place : null;
  return { place: known ?? (scene.pins.length === 1 ? scene.pins[0]! : null), drawn: !known };
}

/** The links of the isolated word, or of the only pinned word, with weights beside the words at their other ends. */
export function Isolated(props: Scene & { layout: Layout; watch?: Watch }): JSX.Element | null {
  const { place, drawn } = useWatched(props.watch, props);
  if (!place) return null;
  const { layout, layers, rows, columns } = props;
  const pinned = props.pins.some((pin) => samePlace(pin, place));
  const left = place.side === "row";
  // One path per set of links that look alike, because 512 elements are too slow.
  const strokes = new Map<string, { colour: string; opacity: string; path: string }>();
  const printed = new Map<number, { weight: number; layer: number }[]>();
  layers.forEach((of, layer) => {
    for (const { other, weight } of linksAt(of, rows.length, columns.length, place)) {
      const row = left ? place.at : other, column = left ? other : place.at;
      const line: Line = { row, column, weight, layer, strong: true, marked: isMarked(props.pairs, rows[row]!, columns[column]!) };
      const [x1, y1, x2, y2] = ends(layout, line, layers.length);
      const opacity = opacityOf(weight).toFixed(2), { colour } = strokeOf(line, layers, true), key = `${colour} ${layer} ${opacity}`;
      const path = `${strokes.get(key)?.path ?? ""}M${x1},${y1}L${x2},${y2}`;
      strokes.set(key, { colour, opacity, path });
      printed.set(other, [...(printed.get(other) ?? []), { weight, layer }]);
    }
  });
  const start = left ? layout.width - layout.slots * layout.slot : 0; // left edge of the weights
  const own = widthOf(layout.labels[place.side][place.at]!, layout.font) * (pinned ? 1.12 : 1) + 8; // bold text is wider
  return (
    <g>
      <rect x={left ? layout.left + 4 - own : layout.right - 4} y={middle(layout, place.at) - layout.step / 2} width={own} height={layout.step} rx={3} fill="var(--hs-soft)" stroke="var(--hs-line)" />
      <g class="hs-isolated" stroke-width={2.6} fill="none" stroke-linecap="round">
        {!drawn && [...strokes.values()].map(({ colour, opacity, path }) => <path d={path} stroke={colour} stroke-opacity={opacity} />)}
      </g>
      <g class="hs-weights" font-size={11} text-anchor="end">
        {[...printed].map(([other, list]) =>
          list.sort((a, b) => b.weight - a.weight).slice(0, layout.slots).map(({ weight, layer }, rank) => {
            const slot = layers.length > layout.slots ? rank : layer; // one column per head if there is room, else in order of weight
            const x = start + (slot + 1) * layout.slot - 4, y = middle(layout, other);
            return (
              <>
                {layers.length > 1 && <circle cx={x - 29.5} cy={y} r={3} fill={layers[layer]!.colour} />}
                <text x={x} y={y + 4}>{show(weight)}</text>
              </>
            );
          }),
        )}
      </g>
    </g>
  );
}

/** The isolated word and its strongest links, as text. */
export function Readout(props: Scene & { watch: Watch; hint: boolean }): JSX.Element {
  const { place } = useWatched(props.watch, props);
  const { rows, columns, layers } = props;
  const name = (position: Position | undefined): JSX.Element => <bdi>{fit(visible(position ?? { text: "" }), 220, 14)}</bdi>;
  return (
    <p class="hs-readout" aria-live="polite">
      {!place && props.hint && <span class="hs-quiet">Point at a word, or move to it with Tab and the arrow keys, to see its links alone. Click or Enter pins it.</span>}
      {place && (
        <>
          <b>{name((place.side === "row" ? rows : columns)[place.at])}</b> {place.side === "row" ? "attends to" : "is attended to by"}{" "}
          {layers.map((layer, i) => {
            const found = linksAt(layer, rows.length, columns.length, place).slice(0, layers.length > 1 ? 2 : 5);
            return (
              <>
                {i > 0 && "; "}
                {layers.length > 1 && `(${layer.head}) `}
                {found.length ? found.map(({ other, weight }, j) => <>{j > 0 && ", "}{name((place.side === "row" ? columns : rows)[other])} {show(weight)}</>) : "no word by 0.01 or more"}
              </>
            );
          })}
        </>
      )}
    </p>
  );
}
