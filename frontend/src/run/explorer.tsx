/** The model grid, with the card of the selected head below it. */
import type { JSX } from "preact";
import { allHeads } from "../data/heads";
import type { MapSource, Run } from "../types";
import type { GridState } from "./grid-state";
import { HeadCard } from "./head-card";
import { ModelGrid } from "./model-grid";

export function Explorer(props: { run: Run; source: MapSource; head: string | null; missing: string; onSelect: (head: string) => void; grid: GridState; onGrid: (state: GridState) => void }): JSX.Element {
  const { run, source, head, onSelect } = props;
  return (
    <div>
      <ModelGrid run={run} source={source} selected={head} onSelect={onSelect} start={props.grid} onState={props.onGrid} />
      {props.missing && <Missing run={run} name={props.missing} />}
      {!head && !props.missing && <p class="hs-about">Choose a head to see all its numbers and examples.</p>}
      {head && <HeadCard run={run} source={source} head={head} onSelect={onSelect} />}
    </div>
  );
}

/** The message that the model does not have the head in the address, with the range of its heads. */
function Missing({ run, name }: { run: Run; name: string }): JSX.Element {
  const heads = allHeads(run.sites);
  return <p class="hs-missing" role="alert" tabIndex={-1}><b>There is no head {name}.</b> {run.model} has {heads.length.toLocaleString("en")} heads, {heads[0]?.name} to {heads.at(-1)?.name}.</p>;
}
