/** Example texts for what a head is best at. */
import type { JSX } from "preact";
import { inWords } from "../data/directions";
import { show } from "../data/numbers";
import type { Direction, Highlight } from "../text/highlight";
import { TextView } from "../text/text-view";
import type { Example, MapSource, Run } from "../types";
import { isContest } from "./head-summary";

/** The result of an example: `obj: 3 of 3 right in this text`. */
export function shows(run: Run, example: Example): string {
  const quantity = run.quantities.find((q) => q.measure === example.measure && q.name === example.quantity);
  if (!quantity || !isContest(quantity)) return `${inWords(example.quantity)}: ${show(example.value)} in this text`;
  return `${inWords(example.quantity)}: ${Math.round(example.value * example.n)} of ${example.n} right in this text`;
}

/** The links in red in an example: those of its relation, or those between mentions of one entity. */
function marked(run: Run, example: Example): Highlight {
  const quantity = run.quantities.find((q) => q.measure === example.measure && q.name === example.quantity);
  if (!quantity || !isContest(quantity)) return {};
  if (!/^(dep-to-head|head-to-dep)$/.test(quantity.direction)) return { coreferent: true };
  return { relation: quantity.label, direction: quantity.direction as Direction };
}

const isRelation = (run: Run, example: Example): boolean => run.quantities.some((q) => q.measure === example.measure && q.name === example.quantity && /^(dep-to-head|head-to-dep)$/.test(q.direction));

/** The examples of a head, each as a text view. */
export function Examples({ run, source, head }: { run: Run; source: MapSource; head: string }): JSX.Element | null {
  const own = run.examples.filter((example) => example.head === head && run.texts[example.text]);
  if (!own.length) return null;
  return (
    <div class="hs-examples">
      <h4>Seen at work</h4>
      <p class="hs-about">Selected automatically.{own.some((example) => isRelation(run, example)) && " A word counts as right if, of all other words, its governor gets most of its attention (or gives it most): what it gives to itself and to special tokens does not count."}</p>
      <div class="hs-columns">
        {own.map((example) => (
          <TextView key={`${head}/${example.text}/${example.quantity}`} title={shows(run, example)} data={{ text: run.texts[example.text]!, sites: run.sites, signature: run.signature, heads: [head] }} source={source} compact highlight={marked(run, example)} />
        ))}
      </div>
    </div>
  );
}
