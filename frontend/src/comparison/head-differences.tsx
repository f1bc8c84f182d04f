/** Two runs by head: a grid per run, a grid of their differences, and a table of the largest differences. */
import type { JSX } from "preact";
import { useCallback, useMemo, useState } from "preact/hooks";
import type { Shade } from "../charts/colour-scale";
import { shadeOf } from "../charts/colour-scale";
import type { Board, Size } from "../charts/head-cells";
import { byLayer, Cells } from "../charts/head-cells";
import { ColourBar } from "../charts/legend";
import type { Point } from "../charts/plot";
import { Plot } from "../charts/plot";
import type { Head } from "../data/heads";
import { allHeads } from "../data/heads";
import { digitsOf, excludesZero, powerOf, short, show, signedInterval, timesPower } from "../data/numbers";
import { first, grouped, keyOf, titled } from "../data/quantity";
import type { Comparison, Site } from "../types";
import { Select } from "../ui/controls";
import { Frame } from "../ui/frame";
import { csvFile } from "../ui/save";
import { captionOf, signatures } from "./captions";

type Pair = Comparison["quantities"][number];
const LISTED = 10;

/** The grids of one quantity. The reader selects it from the quantities that both runs have. */
export function CompareHeads({ data, sites }: { data: Comparison; sites: Site[] }): JSX.Element | null {
  const heads = useMemo(() => allHeads(sites), [sites]);
  const [key, setKey] = useState(() => first(data.quantities));
  const pair = data.quantities.find((quantity) => keyOf(quantity) === key);
  const draw = useCallback((width: number, point: Point) => (pair ? <Three pair={pair} heads={heads} names={[data.a.name, data.b.name]} width={width} point={point} /> : <svg />), [pair, heads, data]);
  if (!pair) return <p class="hs-about">The runs have no quantity of heads in common.</p>;
  const apart = heads.filter((_, at) => excludesZero(pair.low[at], pair.high[at])).length;
  return (
    <Frame
      name={`compare-${key}`}
      title="Head by head"
      caption={captionOf(data, `${titled(pair)}; n = ${heads.length} heads; bold are the ${apart} whose interval excludes 0.`)}
      signature={signatures(data)}
      brief
      csv={() => csvFile(["head", "quantity", "a", "b", "difference", "low", "high"], heads.map((head, at) => [head.name, pair.name, ...(["a", "b", "difference", "low", "high"] as const).map((column) => pair[column][at] ?? null)]))}
    >
      <div class="hs-controls">
        <Select label="quantity" value={key} options={grouped(data.quantities)} onChange={setKey} />
        {pair.about && <span class="hs-faint">{titled(pair)}</span>}
      </div>
      <Plot label="heads of both runs">{draw}</Plot>
      <Largest pair={pair} heads={heads} />
    </Frame>
  );
}

/** The two runs on one colour scale and their difference on another, side by side if there is room. */
function Three({ pair, heads, names, width, point }: { pair: Pair; heads: Head[]; names: [string, string]; width: number; point: Point }): JSX.Element {
  const kinds = [...new Set(heads.map(({ kind }) => kind))];
  const most = Math.max(...heads.map(({ head }) => head));
  const beside = width >= 3 * (most * 22 + 40);
  const side = Math.max(22, Math.min(34, ((beside ? width / 3 : width) - 44) / most));
  const size: Size = { width: side, height: Math.max(20, side * 0.8) };
  const both = shadeOf([...pair.a, ...pair.b]), apart = shadeOf(pair.difference, true);
  const digits = digitsOf([...pair.a, ...pair.b]);
  const items = heads.map((head, at) => ({ head, at }));
  const boards = kinds.map((kind) => byLayer(items.filter(({ head }) => head.kind === kind), size));
  const high = 58 + boards.reduce((sum, board) => sum + board.height + 40, 0);
  const broad = Math.max(...boards.map((board) => board.width)) + 44;
  const note = (at: number): string[] => [`head ${heads[at]!.name}`, `a ${show(pair.a[at], digits)}, b ${show(pair.b[at], digits)}`, `difference ${signedInterval(pair.difference[at], pair.low[at], pair.high[at], digits)}`];
  const thirds: [string, (number | null)[], Shade, boolean][] = [[`a: ${names[0]}`, pair.a, both, false], [`b: ${names[1]}`, pair.b, both, false], ["b − a", pair.difference, apart, true]];
  const [total, tall] = beside ? [broad * 3, high] : [broad, high * 3];
  return (
    <svg width={total} height={tall} viewBox={`0 0 ${total} ${tall}`} role="group" aria-label="heads of both runs">
      {thirds.map(([title, values, shade, marked], i) => (
        <g transform={`translate(${beside ? i * broad : 0} ${beside ? 0 : i * high})`}>
          <text x={28} y={14} font-size={12} font-weight={600}>{title}</text>
          <ColourBar shade={shade} title={timesPower(powerOf(values))} x={28} y={22} width={Math.min(150, broad - 60)} />
          <Stack boards={boards} kinds={kinds} size={size} values={values} shade={shade} note={note} point={point} marks={marked ? (at) => excludesZero(pair.low[at], pair.high[at]) : () => false} />
        </g>
      ))}
    </svg>
  );
}

function Stack(props: { boards: Board[]; kinds: string[]; size: Size; values: (number | null)[]; shade: Shade; note: (at: number) => string[]; point: Point; marks: (at: number) => boolean }): JSX.Element {
  let y = 52;
  return (
    <>
      {props.boards.map((board, i) => {
        const top = y + 26;
        y += board.height + 40;
        const power = powerOf(props.values);
        const look = (at: number) => {
          const value = props.values[at] ?? null;
          return { fill: value === null ? null : props.shade.colour(value), text: value === null ? "" : short(value * 10 ** power), strong: props.marks(at) };
        };
        return (
          <>
            {props.kinds.length > 1 && <text x={28} y={top - 18} font-size={10.5} font-weight={600}>{props.kinds[i]}</text>}
            <Cells board={board} size={props.size} x={28} y={top} look={look} note={props.note} point={props.point} />
          </>
        );
      })}
    </>
  );
}

function Largest({ pair, heads }: { pair: Pair; heads: Head[] }): JSX.Element {
  const digits = digitsOf([...pair.a, ...pair.b]);
  const size = (at: number): number => Math.abs(pair.difference[at] ?? 0);
  const order = heads.map((_, at) => at).filter((at) => pair.difference[at]).sort((x, y) => size(y) - size(x)).slice(0, LISTED);
  if (!order.length) return <p class="hs-about">No head differs.</p>;
  return (
    <div class="hs-scroll" tabIndex={0} role="group" aria-label="largest differences">
      <table class="hs-largest">
        <caption>Largest differences</caption>
        <thead><tr><th scope="col">head</th><th scope="col">a</th><th scope="col">b</th><th scope="col">b − a [95% interval]</th></tr></thead>
        <tbody>
          {order.map((at) => (
            <tr class={excludesZero(pair.low[at], pair.high[at]) ? "hs-differs" : ""}>
              <td>{heads[at]!.name}</td><td>{show(pair.a[at], digits)}</td><td>{show(pair.b[at], digits)}</td><td>{signedInterval(pair.difference[at], pair.low[at], pair.high[at], digits)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
