/** Heads as cells of a board: one row per layer, or in ranked order. */
import type { JSX } from "preact";
import type { Head } from "../data/heads";
import { readableOn } from "./colour";
import { widthOf } from "./labels";
import type { Point } from "./plot";
import { Marks } from "./plot";

export interface Placed {
  head: Head;
  at: number; // index in arrays over heads
  row: number;
  column: number;
}

/** Cells with their positions, and the labels of rows and columns (none in a ranking). */
export interface Board {
  cells: Placed[];
  rows: string[];
  columns: string[];
  width: number;
  height: number;
  x: (cell: Placed) => number;
}

export interface Size {
  width: number;
  height: number;
}

export interface Look {
  fill: string | null; // null for no value
  text?: string;
  image?: string | undefined;
  smooth?: boolean; // interpolate the image instead of showing single pixels
  name?: boolean; // whether to show the name of the head
  dim?: boolean;
  strong?: boolean;
}

const GAP = 5; // pixels between groups of heads that share keys and values

/** A board with one row per layer. Heads that share keys and values are adjacent. */
export function byLayer(heads: readonly Omit<Placed, "row" | "column">[], size: Size): Board {
  const layers = [...new Set(heads.map(({ head }) => head.layer))].sort((a, b) => a - b);
  const columns = Math.max(0, ...heads.map(({ head }) => head.head));
  const groups = Math.max(1, ...heads.map(({ head }) => head.group ?? 1));
  return {
    cells: heads.map((cell) => ({ ...cell, row: layers.indexOf(cell.head.layer), column: cell.head.head - 1 })),
    rows: layers.map(String),
    columns: Array.from({ length: columns }, (_, i) => String(i + 1)),
    width: columns * size.width + (groups - 1) * GAP,
    height: layers.length * size.height,
    x: (cell) => cell.column * size.width + ((cell.head.group ?? 1) - 1) * GAP,
  };
}

/** A board with the heads in the given order, `columns` per row. */
export function inOrder(heads: readonly Omit<Placed, "row" | "column">[], columns: number, size: Size): Board {
  return {
    cells: heads.map((cell, i) => ({ ...cell, row: Math.floor(i / columns), column: i % columns })),
    rows: [],
    columns: [],
    width: columns * size.width,
    height: Math.ceil(heads.length / columns) * size.height,
    x: (cell) => cell.column * size.width,
  };
}

/** A board with the labels of layers and heads, which need 26 pixels on the left and 18 at the top. */
export function Cells(props: {
  board: Board;
  size: Size;
  x: number;
  y: number;
  look: (at: number) => Look;
  note: (at: number) => string[];
  point: Point;
  selected?: string | null;
  onSelect?: ((head: string) => void) | undefined;
}): JSX.Element {
  const { board, size, look, note } = props;
  const { cells } = board;
  const chosen = cells.find(({ head }) => head.name === props.selected);
  const find = (row: number, column: number): Placed | undefined => cells.find((cell) => cell.row === row && cell.column === column);
  const faint = { fill: "var(--hs-faint)" };
  const undefinedFor = cells.length > 0 && cells.every(({ at }) => look(at).fill === null && look(at).image === undefined) ? cells[0]!.head.kind : "";
  return (
    <g transform={`translate(${props.x} ${props.y})`}>
      <g aria-hidden="true" font-size={10}>
        {board.rows.map((name, i) => <text x={-6} y={(i + 0.5) * size.height + 3.5} text-anchor="end" style={faint}>{name}</text>)}
        {board.columns.map((name, i) => {
          const cell = cells.find(({ column }) => column === i);
          return cell && <text x={board.x(cell) + size.width / 2} y={-6} text-anchor="middle" style={faint}>{name}</text>;
        })}
      </g>
      <Marks
        first={(chosen ?? cells[0])?.at ?? 0}
        has={(at) => cells.some((cell) => cell.at === at)}
        note={note}
        point={props.point}
        step={(at, right, down) => {
          const here = cells.findIndex((cell) => cell.at === at), cell = cells[here]!;
          return (find(cell.row + down, cell.column + right) ?? (right ? cells[here + right] : undefined))?.at;
        }}
        onSelect={(at) => props.onSelect?.(cells.find((cell) => cell.at === at)!.head.name)}
      >
        {(current) =>
          cells.map((cell) => (
            <g
              key={cell.at}
              class="hs-cell"
              data-at={cell.at}
              tabindex={cell.at === current ? 0 : -1}
              role={props.onSelect ? "button" : "img"}
              aria-pressed={props.onSelect ? cell === chosen : undefined}
              aria-label={note(cell.at).join(", ")}
              transform={`translate(${board.x(cell)} ${cell.row * size.height})`}
            >
              <Face look={look(cell.at)} size={size} name={cell.head.name} />
              {cell === chosen && <rect x={1.5} y={1.5} width={size.width - 3} height={size.height - 3} fill="none" stroke="var(--hs-paper)" stroke-width={4.5} rx={3} />}
              {cell === chosen && <rect x={1} y={1} width={size.width - 2} height={size.height - 2} fill="none" stroke="var(--hs-ink)" stroke-width={2.2} rx={3} />}
            </g>
          ))
        }
      </Marks>
      {undefinedFor && <Missing text={`not defined for ${undefinedFor} attention`} y={Math.min(board.height / 2, 40)} />}
    </g>
  );
}

/** The message over a board without values. */
function Missing({ text, y }: { text: string; y: number }): JSX.Element {
  return (
    <g pointer-events="none">
      <rect x={4} y={y - 11} width={widthOf(text, 12) + 14} height={22} rx={3} fill="var(--hs-paper)" />
      <text x={11} y={y + 4} font-size={12}>{text}</text>
    </g>
  );
}

function Face({ look, size, name }: { look: Look; size: Size; name: string }): JSX.Element {
  const { width, height } = size;
  const fill = look.fill ?? "var(--hs-soft)";
  const ink = look.fill && !look.dim ? readableOn(look.fill) : "var(--hs-faint)";
  const middle = height / 2 + 3.5, font = Math.min(11.5, width / 2.9);
  const room = look.image !== undefined && look.name ? 13 : 0; // room for the name below the image
  return (
    <>
      <rect class="hs-face" x={0.75} y={0.75} width={width - 1.5} height={height - 1.5} rx={2} fill={fill} opacity={look.dim ? 0.15 : 1} />
      {look.image && <image href={look.image} x={1.5} y={1.5} width={width - 3} height={height - 3 - room} preserveAspectRatio="none" opacity={look.dim ? 0.15 : 1} style={look.smooth ? undefined : { imageRendering: "pixelated" }} />}
      {look.name && <text x={width / 2} y={room ? height - 4 : height / 2 - 3} font-size={Math.min(9.5, (width - 4) / (name.length * 0.56))} text-anchor="middle" style={{ fill: room ? "var(--hs-ink)" : ink }}>{name}</text>}
      {look.text && !look.dim && (
        <text x={width / 2} y={look.name ? middle + 6 : middle} font-size={font} font-weight={look.strong ? 700 : 400} text-anchor="middle" style={{ fill: ink }}>{look.text}</text>
      )}
      {look.strong && !look.dim && !look.text && <circle cx={width - 5} cy={5} r={2} fill={ink} />}
    </>
  );
}
