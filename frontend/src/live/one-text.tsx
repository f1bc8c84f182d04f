/** One text: a grid of all heads, and beside it the selected heads. A click in the grid selects a head. */
import type { JSX } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import type { KnownHead } from "../data/server";
import { ModelView } from "../text/model-view";
import type { Shown } from "../text/text-view";
import { TextView } from "../text/text-view";
import type { MapSource, TextData } from "../types";

const LONG = 128; // most tokens of a text whose maps are all fetched without a click
const SEEN = 240; // visible pixels by which a view can be recognised

export function OneText(props: { data: TextData; source: MapSource; known: readonly KnownHead[]; shown: Shown; onShown: (shown: Shown) => void }): JSX.Element {
  const { data, source, shown, onShown } = props;
  const { source: side, target } = data.text;
  const tokens = Math.max(side.tokens.length, target?.tokens.length ?? 0), heads = data.sites.reduce((sum, site) => sum + site.heads, 0);
  const [asked, setAsked] = useState(false);
  const known = useMemo(() => new Map(props.known.map(({ head, word }) => [head, `known for: ${word}`])), [props.known]);
  const opened = useRef<HTMLDivElement>(null);
  const choose = (head: string): void => {
    // If the selected head is drawn below the grid, it may be out of sight.
    if (opened.current && opened.current.getBoundingClientRect().top > innerHeight - SEEN) opened.current.scrollIntoView({ block: "start" });
    onShown({ ...shown, heads: [head], view: shown.view === "influence" ? "lines" : shown.view });
  };
  const title = shown.view === "influence" ? {} : { title: `${shown.heads.length > 1 ? "Heads" : "Head"} ${shown.heads.join(", ")}` };
  return (
    <div class="hs-looked">
      {heads > 1 && (
        <div>
          {tokens <= LONG || asked
            ? <ModelView data={data} source={source} choice={shown.choice} tabs={<></>} controls={<></>} title="All heads" onSelect={choose} selected={shown.heads[0] ?? ""} known={known} />
            : <p class="hs-note"><button type="button" onClick={() => setAsked(true)}>Show all {heads} heads</button> of this long text: {tokens} tokens.</p>}
        </div>
      )}
      <div ref={opened}><TextView {...title} data={data} source={source} shown={shown} onShown={onShown} without="model" /></div>
    </div>
  );
}
