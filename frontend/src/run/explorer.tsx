/** The model grid with the card of the chosen head under it. */
import type { JSX } from "preact";
import type { MapSource, Run } from "../types";
import { HeadCard } from "./head-card";
import { ModelGrid } from "./model-grid";

export function Explorer(props: { run: Run; source: MapSource; head: string | null; onSelect: (head: string) => void }): JSX.Element {
  return (
    <div>
      <ModelGrid run={props.run} source={props.source} selected={props.head} onSelect={props.onSelect} />
      {!props.head && <p class="hs-about">Choose a head to see all that is known of it.</p>}
      {props.head && <HeadCard run={props.run} source={props.source} head={props.head} onSelect={props.onSelect} />}
    </div>
  );
}
