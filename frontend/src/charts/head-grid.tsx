/** The grid of all heads: one board per kind of attention, or one board in ranked order. */
import type { JSX } from "preact";
import type { Site } from "../types";
import type { Shade } from "./colour-scale";
import type { Board, Look, Placed, Size } from "./head-cells";
import { byLayer, Cells, inOrder } from "./head-cells";
import { ColourBar } from "./legend";
import type { Point } from "./plot";

export type Item = Omit<Placed, "row" | "column">;

const LEFT = 36, TOP = 46, SIDES = 36;

/** The heads and how to draw them. */
export interface Drawn {
  sites: Site[];
  heads: Item[];
  ranked: Item[] | null; // the heads in ranked order; null for the order of the model
  pictures: boolean;
  shade: Shade;
  legend: string;
  look: (at: number) => Look;
  note: (at: number) => string[];
  selected: string | null;
  onSelect: (head: string) => void;
}

/** The grid fills the width, but its cells keep a readable minimum size. */
export function HeadGrid(props: Drawn & { width: number; point: Point }): JSX.Element {
  const { heads, ranked, width } = props;
  const size = cellSize(props.sites, width, props.pictures, ranked !== null);
  const kinds = [...new Set(props.sites.map(({ kind }) => kind))];
  const boards: { board: Board; title: string; x: number; y: number }[] = [];
  let y = TOP;
  if (ranked) {
    const board = inOrder(ranked, Math.max(1, Math.floor((Math.max(width, 320) - 4) / size.width)), size);
    boards.push({ board, title: "", x: 2, y });
    y += Math.max(24, board.height);
  } else {
    for (const kind of kinds) {
      const board = byLayer(heads.filter(({ head }) => head.kind === kind), size);
      boards.push({ board, title: kinds.length > 1 ? kind : "", x: LEFT, y: y + SIDES });
      y += board.height + SIDES + 12;
    }
  }
  const total = Math.max(300, ...boards.map(({ board, x }) => board.width + x + 2));
  return (
    <svg width={total} height={y + 4} viewBox={`0 0 ${total} ${y + 4}`} role="group" aria-label="heads">
      <ColourBar shade={props.shade} title={props.legend} x={ranked ? 10 : LEFT} y={8} width={150} />
      {boards.map(({ board, title, x, y: top }) => (
        <>
          {!ranked && <text x={x} y={top - 22} font-size={11} style={{ fill: "var(--hs-faint)" }}><tspan font-weight={600} style={{ fill: "var(--hs-ink)" }}>{title && `${title} `}</tspan>head</text>}
          {!ranked && <text x={x - 6} y={top - 6} font-size={11} text-anchor="end" style={{ fill: "var(--hs-faint)" }}>layer</text>}
          <Cells board={board} size={size} x={x} y={top} look={props.look} note={props.note} point={props.point} selected={props.selected} onSelect={props.onSelect} />
        </>
      ))}
      {ranked?.length === 0 && <text x={10} y={TOP + 14} font-size={12}>No head passes the filter.</text>}
    </svg>
  );
}

function cellSize(sites: readonly Site[], width: number, pictures: boolean, ranked: boolean): Size {
  const most = Math.max(...sites.map(({ heads }) => heads));
  const gaps = Math.max(...sites.map(({ heads, kv_heads }) => (kv_heads < heads ? kv_heads * 5 : 0)));
  const fit = (width - LEFT - 4 - gaps) / most;
  const [least, largest] = pictures ? [40, 72] : [ranked ? 42 : 26, 60];
  const side = Math.max(least, Math.min(largest, fit));
  if (pictures) return { width: side, height: side + (ranked ? 13 : 0) };
  return { width: side, height: ranked ? 34 : Math.max(22, Math.min(28, side * 0.8)) };
}
