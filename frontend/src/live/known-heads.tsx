/** Heads with labels in served runs, as chips with one word each, most informative first; and a sentence per selected head. */
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { KnownHead } from "../data/server";

const FIRST = 10, ALIKE = 2; // number of chips before “more” is clicked: in total, and per word

/** The heads whose chips are shown initially. */
function begins(known: readonly KnownHead[]): Set<string> {
  const counts = new Map<string, number>();
  const shown = known.filter(({ word }) => {
    counts.set(word, (counts.get(word) ?? 0) + 1);
    return counts.get(word)! <= ALIKE;
  });
  return new Set(shown.slice(0, FIRST).map(({ head }) => head));
}

const served = ({ run, head }: KnownHead): string => `/runs/${encodeURIComponent(run)}/heads/${head}`;

/** `linkOf` returns the address of a head's card; by default it is on the server of the page. */
export function KnownHeads(props: { known: readonly KnownHead[]; model: string; heads: readonly string[]; onChoose: (head: string) => void; linkOf?: (known: KnownHead) => string }): JSX.Element {
  const [all, setAll] = useState(false);
  const { known, heads, linkOf = served } = props;
  const first = useMemo(() => begins(known), [known]);
  const shown = all ? known : known.filter(({ head }) => first.has(head) || heads.includes(head));
  const told = heads.flatMap((name) => known.filter(({ head }) => head === name));
  if (!known.length) return <p class="hs-note">No run of {props.model} with labels of heads is served: start <code>headscope serve RUN</code> to see here what its heads are known for.</p>;
  return (
    <div class="hs-known">
      <div class="hs-heads" role="group" aria-label="heads that a run knows">
        <span class="hs-faint">known heads</span>
        {shown.map(({ head, word, sentence }) => (
          <button type="button" key={head} aria-pressed={heads.includes(head)} title={sentence} onClick={() => props.onChoose(head)}><b>{head}</b> · {word}</button>
        ))}
        {known.length > shown.length && <button type="button" class="hs-small" onClick={() => setAll(true)}>{known.length - shown.length} more</button>}
      </div>
      {told.map((each) => (
        <p class="hs-note" key={each.head}>Head <b>{each.head}</b> {each.sentence}, by the run <a href={linkOf(each)}>{each.run}</a>.</p>
      ))}
    </div>
  );
}
