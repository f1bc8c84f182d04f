/** The tree of heads. The closest heads are joined first, and a cut divides the tree into groups. */
import { scaleLinear } from "d3-scale";
import type { JSX } from "preact";
import { useCallback, useMemo } from "preact/hooks";
import { SERIES } from "../charts/colour";
import { fit, widthOf } from "../charts/labels";
import type { Point } from "../charts/plot";
import { Marks, Plot } from "../charts/plot";
import type { Head } from "../data/heads";
import { allHeads } from "../data/heads";
import { show } from "../data/numbers";
import type { HeadMap, HeadTree, Run } from "../types";
import { Frame } from "../ui/frame";
import { csvFile } from "../ui/save";

const ROW = 13, FONT = 10.5, TOP = 22, BOTTOM = 40, NAMES = 150; // pixels; NAMES is the maximum width of the names

/** The tree of a run's heads. `onSelect` is called with the selected head. */
export function HeadTreeView(props: { run: Run; selected: string | null; onSelect: (head: string) => void }): JSX.Element | null {
  const { run, selected, onSelect } = props;
  const { tree, map } = run;
  const heads = useMemo(() => allHeads(run.sites), [run]);
  const draw = useCallback(
    (width: number, point: Point) => (tree && map ? <Tree tree={tree} map={map} heads={heads} selected={selected} onSelect={onSelect} width={width} point={point} /> : <svg />),
    [tree, map, heads, selected, onSelect],
  );
  if (!tree || !map) return null;
  const number = Math.max(...tree.groups);
  const groups = number > 1 ? `${number} groups, mean silhouette ${show(tree.silhouette)}` : "one group";
  const csv = (): string =>
    csvFile(["head", "group", "behaviour", "nearest", "distance"], tree.heads.map((at, row) => [heads[at]!.name, tree.groups[row]!, map.behaviour[at] ?? "", heads[map.neighbours[at]?.[0]?.[0] ?? -1]?.name ?? "", map.neighbours[at]?.[0]?.[1] ?? null]));
  return (
    <div class="hs-tree">
      <Frame name="head-tree" caption={`The closest heads are joined first: ${tree.about}; ${groups}; n = ${tree.heads.length} heads.`} signature={run.signature} csv={csv}>
        <Plot label="tree of heads">{draw}</Plot>
      </Frame>
    </div>
  );
}

interface Branch {
  path: [x: number, y: number][]; // x in heights of the tree, y in rows
  group: number; // 0 above the cut
}

/** The branches from the lowest to the highest, and the row of the root of each group's subtree. */
function branches(tree: HeadTree): { all: Branch[]; middle: Map<number, number> } {
  const size = tree.heads.length;
  const row = [...tree.heads.keys()], height = tree.heads.map(() => 0), group = [...tree.groups];
  const middle = new Map(tree.groups.map((own, i) => [own, i]));
  const all = tree.merges.map(([a, b, at], i): Branch => {
    const here = size + i, own = group[a] === group[b] ? group[a]! : 0;
    const path: Branch["path"] = [[height[a]!, row[a]!], [at, row[a]!], [at, row[b]!], [height[b]!, row[b]!]];
    row[here] = (row[a]! + row[b]!) / 2;
    height[here] = at;
    group[here] = own;
    if (own) middle.set(own, row[here]!);
    return { path, group: own };
  });
  return { all, middle };
}

function Tree(props: { tree: HeadTree; map: HeadMap; heads: Head[]; selected: string | null; onSelect: (head: string) => void; width: number; point: Point }): JSX.Element {
  const { tree, map, heads, selected } = props;
  const width = Math.max(300, Math.min(props.width, 900));
  const name = (row: number): string => [map.behaviour[tree.heads[row]!], heads[tree.heads[row]!]!.name].filter(Boolean).join("  ");
  const left = Math.min(NAMES, width * 0.4, Math.max(...tree.heads.map((_, row) => widthOf(name(row), FONT))) + 14);
  const { all, middle } = branches(tree);
  const x = scaleLinear([0, (all.at(-1)?.path[1]![0] ?? 1) * 1.04 || 1], [left, width - 8]);
  const y = (row: number): number => TOP + (row + 0.5) * ROW;
  const bottom = TOP + tree.heads.length * ROW, height = bottom + BOTTOM;
  // Adjacent groups have different colours. Groups of one head have no colour.
  const large = [...new Set(tree.groups)].filter((group) => tree.groups.filter((other) => other === group).length > 1);
  const colour = (group: number): string => (large.includes(group) ? SERIES[large.indexOf(group) % 6]! : "var(--hs-faint)");
  const note = (row: number): string[] => {
    const at = tree.heads[row]!, near = map.neighbours[at]?.[0];
    return [`head ${heads[at]!.name}`, ...(map.labels?.[at] ? [map.labels[at]] : []), `group ${tree.groups[row]}`, ...(near ? [`nearest ${heads[near[0]]?.name} (${show(near[1], 3)})`] : [])];
  };
  const chosen = tree.heads.findIndex((at) => heads[at]!.name === selected);
  const axis = (at: number, side: number): JSX.Element => (
    <g aria-hidden="true">
      <line x1={x(0)} x2={width - 8} y1={at} y2={at} stroke="var(--hs-line)" />
      {x.ticks(Math.max(2, (width - left) / 90)).map((tick) => (
        <>
          <line x1={x(tick)} x2={x(tick)} y1={at} y2={at + 4 * side} stroke="var(--hs-faint)" />
          <text x={x(tick)} y={side < 0 ? at - 7 : at + 15} font-size={10} text-anchor="middle" style={{ fill: "var(--hs-faint)" }}>{tick}</text>
        </>
      ))}
    </g>
  );
  return (
    <svg width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="group" aria-label="tree of heads">
      {axis(TOP - 2, -1)}
      {axis(bottom + 2, 1)}
      <text x={(left + width) / 2} y={bottom + 33} font-size={11} text-anchor="middle">distance at which heads are joined (nats)</text>
      {all.map(({ path, group }) => <polyline points={path.map(([at, row]) => `${x(at).toFixed(1)},${y(row).toFixed(1)}`).join(" ")} fill="none" stroke={group ? colour(group) : "var(--hs-faint)"} stroke-width={1.3} />)}
      {tree.cut !== null && (
        <g>
          <line x1={x(tree.cut)} x2={x(tree.cut)} y1={TOP - 2} y2={bottom + 2} stroke="var(--hs-ink)" stroke-dasharray="4 3" />
          {large.map((group) => (
            <text x={x(tree.cut!) + 4} y={y(middle.get(group)!) - 4} font-size={11} font-weight={700} stroke="var(--hs-paper)" stroke-width={3} paint-order="stroke">{`${group} (${tree.groups.filter((other) => other === group).length})`}</text>
          ))}
        </g>
      )}
      <Marks first={Math.max(0, chosen)} has={(row) => row in tree.heads} note={note} step={(row, _, down) => (row + down in tree.heads ? row + down : undefined)} point={props.point} onSelect={(row) => props.onSelect(heads[tree.heads[row]!]!.name)}>
        {(current) =>
          tree.heads.map((_, row) => (
            <g class="hs-leaf" data-at={row} tabindex={row === current ? 0 : -1} role="button" aria-pressed={row === chosen} aria-label={note(row).join(", ")}>
              <rect x={0.5} y={y(row) - ROW / 2 + 0.5} width={left - 5} height={ROW - 1} rx={2} fill={row === chosen ? "var(--hs-line)" : "transparent"} />
              <text x={left - 7} y={y(row) + 3.5} font-size={FONT} font-weight={row === chosen ? 700 : 400} text-anchor="end">{fit(name(row), left - 8, FONT)}</text>
            </g>
          ))
        }
      </Marks>
    </svg>
  );
}
