/** Two texts side by side: a grid of heads coloured by difference in attention, and the maps of the selected head. */
import type { JSX } from "preact";
import { useCallback, useMemo, useState } from "preact/hooks";
import { shadeOf } from "../charts/colour-scale";
import type { Look } from "../charts/head-cells";
import { HeadGrid } from "../charts/head-grid";
import type { Point } from "../charts/plot";
import { Plot } from "../charts/plot";
import { allHeads } from "../data/heads";
import type { Answer, Differences, KnownHead, Served } from "../data/server";
import type { Shown } from "../text/text-view";
import { TextView } from "../text/text-view";
import { Switch } from "../ui/controls";
import { Frame } from "../ui/frame";
import { csvFile } from "../ui/save";
import { DifferenceMap } from "./difference-map";
import { quoted, where } from "./words";

type By = "difference" | "largest";
const FIRST = 6; // number of heads in the list of the largest differences

export interface Compared {
  data: [Answer, Answer];
  sources: [Served, Served];
  differences: Differences | null;
  refused: string; // why there are no differences
}

/** The heads in descending order of difference. */
export const mostDifferent = ({ heads }: Differences, by: By = "difference"): string[] => [...heads].sort((a, b) => b[by] - a[by]).map(({ head }) => head);

function DifferenceGrid(props: { compared: Compared; differences: Differences; known: readonly KnownHead[]; selected: string; onSelect: (head: string) => void }): JSX.Element {
  const { compared, differences, known, selected, onSelect } = props;
  const [by, setBy] = useState<By>("difference");
  const { sites } = compared.data[0];
  const heads = useMemo(() => allHeads(sites).map((head, at) => ({ head, at })), [sites]);
  const rows = useMemo(() => new Map(differences.heads.map((row) => [row.head, row])), [differences]);
  const words = useMemo(() => new Map(known.map(({ head, word }) => [head, word])), [known]);
  const values = useMemo(() => heads.map(({ head }) => rows.get(head.name)?.[by] ?? null), [heads, rows, by]);
  const shade = useMemo(() => shadeOf(values), [values]);
  const draw = useCallback(
    (width: number, point: Point) => {
      const look = (at: number): Look => ({ fill: values[at] === null ? null : shade.colour(values[at]!), text: values[at] === null ? "" : values[at]!.toFixed(2).replace(/^0/, ""), strong: words.has(heads[at]!.head.name) });
      const note = (at: number): string[] => {
        const { name } = heads[at]!.head, row = rows.get(name);
        return [`head ${name}`, ...(words.has(name) ? [`known for: ${words.get(name)!}`] : []), ...(row ? [`mean difference ${row.difference.toFixed(3)}`, `largest ${row.largest.toFixed(3)}, at ${where(row.words)}`] : [])];
      };
      return <HeadGrid {...{ sites, heads, ranked: null, pictures: false, shade, legend: by === "largest" ? "largest difference" : "mean difference", look, note, selected, onSelect, width, point }} />;
    },
    [sites, heads, rows, values, shade, words, by, selected],
  );
  const changes = differences.changed.map(([first, second]) => `${quoted(first)} → ${quoted(second)}`).join(", ");
  return (
    <Frame
      name={`differences-${compared.data[0].text.id}-${compared.data[1].text.id}`}
      title="Where the heads differ"
      caption={`Difference between the attention of each head in two texts (${changes || "the texts are the same"}): total variation distance between the rows of ${differences.words} words that correspond, ${by === "largest" ? "the largest one" : "their mean"}; 0 is the same attention, 1 nothing in common.${words.size ? " Bold: heads that a run knows." : ""}`}
      signature={compared.data.map(({ signature }) => signature).join(" ")}
      csv={() => csvFile(["head", "mean_difference", "largest_difference", "word_in_first", "word_in_second"], differences.heads.map(({ head, difference, largest, words: [first, second] }) => [head, difference, largest, first, second]))}
    >
      <div class="hs-controls">
        <Switch label="colour by" value={by} options={[["difference", "mean over words"], ["largest", "largest of a word"]]} onChange={setBy} />
      </div>
      {differences.changed.length > 0 && (
        <div class="hs-heads" role="group" aria-label="heads that differ most">
          <span class="hs-faint">differ most</span>
          {mostDifferent(differences, by).slice(0, FIRST).map((name) => (
            <button type="button" key={name} aria-pressed={name === selected} onClick={() => onSelect(name)}><b>{name}</b> · {rows.get(name)![by].toFixed(2)}{by === "largest" && ` at ${where(rows.get(name)!.words)}`}</button>
          ))}
        </div>
      )}
      <Plot label="differences of heads">{draw}</Plot>
    </Frame>
  );
}

export function TwoTexts(props: { compared: Compared; known: readonly KnownHead[]; shown: Shown; onShown: (shown: Shown) => void }): JSX.Element {
  const { compared, shown, onShown } = props;
  const head = shown.heads[0] ?? "";
  return (
    <>
      {compared.refused && <p class="hs-trouble" role="alert">{compared.refused} The texts are shown side by side all the same.</p>}
      {compared.differences && (
        <div class="hs-looked hs-compared">
          <DifferenceGrid compared={compared} differences={compared.differences} known={props.known} selected={head} onSelect={(name) => onShown({ ...shown, heads: [name] })} />
          <DifferenceMap compared={compared} differences={compared.differences} head={head} specials={shown.choice.specials === "show"} />
        </div>
      )}
      <div class="hs-columns">
        {compared.data.map((data, at) => <TextView key={`${at} ${data.text.id}`} title={`Head ${head}, ${at ? "second" : "first"} text`} data={data} source={compared.sources[at]!} compact shown={shown} onShown={onShown} />)}
      </div>
    </>
  );
}
