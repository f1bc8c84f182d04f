/** The difference in one head's attention between two texts, over the words that correspond. */
import type { JSX } from "preact";
import { useCallback, useMemo } from "preact/hooks";
import { readableOn } from "../charts/colour";
import { shadeOf } from "../charts/colour-scale";
import { fit, visible, widthOf } from "../charts/labels";
import { ColourBar } from "../charts/legend";
import type { Point } from "../charts/plot";
import { Marks, Plot } from "../charts/plot";
import { kindOf } from "../data/heads";
import type { Position } from "../data/maps";
import { chosen } from "../data/maps";
import type { Differences, Pair } from "../data/server";
import { useMaps } from "../data/use-maps";
import { Frame } from "../ui/frame";
import { csvFile } from "../ui/save";
import type { Compared } from "./two-texts";
import { where } from "./words";

const FONT = 12, LARGEST = 30, LEGEND = 40, LONG = 60; // LONG: with more positions, the cells are too small
const WORDS = { level: "word", specials: "show" } as const;

interface Cell {
  value: number;
  first: number;
  second: number;
}

interface Matrix {
  rows: [string, string][];
  columns: [string, string][];
  cells: Cell[]; // row by row
}

/** The pairs of corresponding positions, with or without special tokens. */
function kept(pairs: readonly Pair[], first: readonly Position[], second: readonly Position[], specials: boolean): Pair[] {
  return pairs.filter(([a, b]) => first[a] && second[b] && (specials || !(first[a].special || second[b].special)));
}

/** The difference between the maps of a head in two texts; null until both maps have arrived. */
function useMatrix(compared: Compared, differences: Differences, head: string, specials: boolean): Matrix | null {
  const [first, second] = compared.data;
  const one = useMaps(compared.sources[0], first.text, [head]).get(head), two = useMaps(compared.sources[1], second.text, [head]).get(head);
  return useMemo(() => {
    const aligned = differences.aligned[kindOf(head) ?? first.sites[0]!.kind];
    if (!(one instanceof Float32Array) || !(two instanceof Float32Array) || !aligned) return null;
    const a = chosen(one, first.text, head, WORDS), b = chosen(two, second.text, head, WORDS);
    const rows = kept(aligned.rows, a.rows, b.rows, specials), columns = kept(aligned.columns, a.columns, b.columns, specials);
    const cells = rows.flatMap(([i, k]) =>
      columns.map(([j, l]): Cell => {
        const [x, y] = [a.weights[i * a.columns.length + j]!, b.weights[k * b.columns.length + l]!];
        return { value: x - y, first: x, second: y };
      }),
    );
    return {
      rows: rows.map(([i, k]) => [visible(a.rows[i]!), visible(b.rows[k]!)]),
      columns: columns.map(([j, l]) => [visible(a.columns[j]!), visible(b.columns[l]!)]),
      cells,
    };
  }, [one, two, head, specials, differences]);
}

const named = ([first, second]: [string, string]): string => (first === second ? first : `${first} / ${second}`);

export function DifferenceMap(props: { compared: Compared; differences: Differences; head: string; specials: boolean }): JSX.Element | null {
  const { compared, differences, head } = props;
  const matrix = useMatrix(compared, differences, head, props.specials);
  const row = differences.heads.find((other) => other.head === head);
  const shade = useMemo(() => shadeOf(matrix?.cells.map(({ value }) => value) ?? [], true), [matrix]);
  const draw = useCallback(
    (width: number, point: Point) => (matrix ? <Drawing {...{ matrix, shade, head, width, point }} /> : <svg width={300} height={20} />),
    [matrix, shade, head],
  );
  if (!matrix || !row) return null;
  const long = Math.max(matrix.rows.length, matrix.columns.length) > LONG;
  const csv = (): string =>
    csvFile(
      ["head", "row_in_first", "row_in_second", "column_in_first", "column_in_second", "first", "second", "difference"],
      matrix.cells.map(({ value, first, second }, at) => [head, ...matrix.rows[Math.floor(at / matrix.columns.length)]!, ...matrix.columns[at % matrix.columns.length]!, ...[first, second, value].map((number) => Number(number.toFixed(5)))]),
    );
  return (
    <Frame
      name={`difference-${head}-${compared.data[0].text.id}-${compared.data[1].text.id}`}
      title={`Head ${head}, first minus second`}
      caption={`Attention of head ${head} in the first text minus that in the second, between words that correspond. Rows attend to columns. Orange: more in the first text; violet: more in the second. Mean difference over words ${row.difference.toFixed(3)}; largest ${row.largest.toFixed(3)}, at ${where(row.words)}.`}
      signature={compared.data.map(({ signature }) => signature).join(" ")}
      brief
      csv={csv}
    >
      {long ? <p class="hs-note">The texts are too long to draw {matrix.rows.length} by {matrix.columns.length} differences; the CSV file has them.</p> : <Plot label={`differences of head ${head}`}>{draw}</Plot>}
    </Frame>
  );
}

function Drawing(props: { matrix: Matrix; shade: ReturnType<typeof shadeOf>; head: string; width: number; point: Point }): JSX.Element {
  const { matrix: { rows, columns, cells }, shade, width } = props;
  const label = (pairs: [string, string][], most: number): number => Math.ceil(Math.min(most, Math.max(...pairs.map((pair) => widthOf(named(pair), FONT))))) + 8;
  const x = label(rows, Math.min(140, width * 0.3)), y = label(columns, 120) + LEGEND;
  const side = Math.max(14, Math.min(LARGEST, (width - x - 6) / columns.length));
  const note = (at: number): string[] => {
    const { value, first, second } = cells[at]!;
    return [`${named(rows[Math.floor(at / columns.length)]!)} → ${named(columns[at % columns.length]!)}`, `first ${first.toFixed(3)}, second ${second.toFixed(3)}, difference ${value.toFixed(3).replace("-", "−")}`];
  };
  const total = Math.max(300, x + columns.length * side + 4);
  return (
    <svg width={total} height={y + rows.length * side + 4} viewBox={`0 0 ${total} ${y + rows.length * side + 4}`} role="group" aria-label={`differences of head ${props.head} between words`}>
      <ColourBar shade={shade} title="first − second" x={x} y={4} width={150} />
      <g font-size={FONT} aria-hidden="true">
        {rows.map((pair, i) => <text x={x - 5} y={y + (i + 0.5) * side + FONT * 0.35} text-anchor="end" font-weight={pair[0] === pair[1] ? undefined : 700} style="unicode-bidi:plaintext">{fit(named(pair), x - 6, FONT)}</text>)}
        {columns.map((pair, j) => {
          const at = x + (j + 0.5) * side + FONT * 0.35;
          return <text x={at} y={y - 5} transform={`rotate(-90 ${at} ${y - 5})`} font-weight={pair[0] === pair[1] ? undefined : 700} style="unicode-bidi:plaintext">{fit(named(pair), 120, FONT)}</text>;
        })}
      </g>
      <Marks
        first={0}
        has={(at) => at < cells.length}
        note={note}
        point={props.point}
        step={(at, right, down) => {
          const column = (at % columns.length) + right, next = at + right + down * columns.length;
          return column >= 0 && column < columns.length && next >= 0 && next < cells.length ? next : undefined;
        }}
      >
        {(current) =>
          cells.map(({ value }, at) => {
            const fill = shade.colour(value), [left, top] = [x + (at % columns.length) * side, y + Math.floor(at / columns.length) * side];
            return (
              <g key={at} class="hs-cell" data-at={at} tabindex={at === current ? 0 : -1} role="img" aria-label={note(at).join(", ")} transform={`translate(${left} ${top})`}>
                <rect class="hs-face" x={0.5} y={0.5} width={side - 1} height={side - 1} rx={1.5} fill={fill} />
                {side >= 26 && Math.abs(value) >= 0.1 && <text x={side / 2} y={side / 2 + 3.5} font-size={10} text-anchor="middle" style={{ fill: readableOn(fill) }}>{value.toFixed(1).replace("-", "−").replace("0.", ".")}</text>}
              </g>
            );
          })
        }
      </Marks>
    </svg>
  );
}
