/** Two runs side by side. */
import type { JSX } from "preact";
import type { Comparison } from "../types";
import { BestDifferences } from "./best-head-differences";
import { hasIntervals } from "./captions";
import { CompareHeads } from "./head-differences";
import { CompareLayers } from "./layer-differences";

/** The differences between two runs: by head if the models have the same heads, by layer, and between best heads. */
export function Compare({ data }: { data: Comparison }): JSX.Element {
  const { a, b } = data;
  return (
    <div class="hs-compare">
      <dl class="hs-sides">
        {([["a", a], ["b", b]] as const).map(([letter, run]) => (
          <div>
            <dt>{letter}</dt>
            <dd>
              <b>{run.name}</b> {run.model} on {run.corpus}
              <span class="hs-signature">{run.signature}</span>
            </dd>
          </div>
        ))}
      </dl>
      <p class="hs-about">Differences are b − a{hasIntervals(data) && `; their 95% intervals were made ${data.how}`}.</p>
      {data.left_out.length > 0 && <p class="hs-about">Skipped: {data.left_out.join("; ")}.</p>}
      {data.sites ? <CompareHeads data={data} sites={data.sites} /> : <p class="hs-about">The heads of the two models do not correspond one to one, so they are not compared head by head.</p>}
      <CompareLayers data={data} />
      <BestDifferences data={data} />
    </div>
  );
}
