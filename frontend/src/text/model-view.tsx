/** All heads of a model on one text as thumbnails; a click opens a head (the model view of bertviz). */
import type { JSX } from "preact";
import { useCallback, useMemo, useState } from "preact/hooks";
import { LINES, WEIGHTS } from "../charts/colour-scale";
import type { Look } from "../charts/head-cells";
import { HeadGrid } from "../charts/head-grid";
import type { Point } from "../charts/plot";
import { Plot } from "../charts/plot";
import { lineThumbnail, thumbnail, usePictures } from "../charts/thumbnails";
import { allHeads } from "../data/heads";
import { chosen, positions } from "../data/maps";
import { plainText } from "../data/plain-text";
import { useAllMaps } from "../data/use-maps";
import { Switch } from "../ui/controls";
import { Frame } from "../ui/frame";
import { mapsFile } from "../ui/save";
import type { TextViewProps } from "./text-controls";

type Style = "lines" | "maps";
const LONG = 40; // most tokens of a text whose lines can be distinguished, as in the static figures
const SAMPLE = 300; // characters of the text

/** `selected` is the head that is open beside the grid; `known` are descriptions of known heads. */
export function ModelView(props: Pick<TextViewProps, "data" | "source" | "choice" | "tabs" | "controls"> & { onSelect: (head: string) => void; title?: string; selected?: string; known?: ReadonlyMap<string, string> }): JSX.Element {
  const { data, source, choice, onSelect, selected = null, known } = props;
  const { text } = data;
  const sites = useMemo(() => data.sites.filter(({ layer }) => !data.layers || data.layers.includes(layer)), [data]);
  const [style, setStyle] = useState<Style>(text.source.tokens.length > LONG ? "maps" : "lines");
  const heads = useMemo(() => allHeads(sites).map((head, at) => ({ head, at })), [sites]);
  const names = useMemo(() => heads.map(({ head }) => head.name), [heads]);
  const held = useMemo(() => names.filter((name) => source.has?.(text, name) ?? true), [names, source, text]);
  const maps = useAllMaps(source, text, held);
  const picture = useCallback(
    (weights: Float32Array, head: string): string => {
      const grid = chosen(weights, text, head, choice);
      return (style === "lines" ? lineThumbnail : thumbnail)(grid.weights, grid.rows.length, grid.columns.length);
    },
    [text, choice, style],
  );
  const pictures = usePictures(maps.weights, picture);
  const draw = useCallback(
    (width: number, point: Point) => {
      const look = (at: number): Look => ({ fill: null, image: pictures.get(names[at]!) ?? "", smooth: style === "lines", strong: known?.has(names[at]!) ?? false });
      const note = (at: number): string[] => [`head ${names[at]}`, ...(known?.has(names[at]!) ? [known.get(names[at]!)!] : []), pictures.has(names[at]!) || held.includes(names[at]!) ? "choose it to open it" : "not in this page"];
      return <HeadGrid {...{ sites, heads, ranked: null, pictures: true, shade: style === "lines" ? LINES : WEIGHTS, legend: "weight", look, note, selected, onSelect, width, point }} />;
    },
    [sites, heads, held, pictures, style, selected, known],
  );
  const sample = plainText(text);
  const way = style === "lines" ? "attending positions on the left, positions attended to on the right; the stronger a line, the higher the weight" : "one row per query, one column per key, coloured by the square root of the weight";
  return (
    <Frame
      name={`heads-${text.id}`}
      {...(props.title ? { title: props.title } : {})}
      caption={`Attention of ${held.length} heads on one text (n = 1), between ${choice.level}s: ${way}.${known?.size ? " Dots: heads that a run knows." : ""}`}
      signature={data.signature}
      csv={() => mapsFile([...maps.weights].map(([head, weights]) => ({ head, ...positions(text, head, choice), weights: chosen(weights, text, head, choice).weights })))}
    >
      <div class="hs-controls">
        {props.tabs}
        <Switch label="draw" value={style} options={[["lines", "lines"], ["maps", "maps"]]} onChange={setStyle} />
        {props.controls}
        <span role="status" class="hs-busy">{maps.weights.size < held.length && !maps.trouble && `loading ${maps.weights.size} of ${held.length} …`}</span>
      </div>
      <p class="hs-about hs-sample">“{sample.length > SAMPLE ? `${sample.slice(0, SAMPLE)}…` : sample}”</p>
      {held.length < names.length && <p class="hs-note">The page holds {held.length} of {names.length} heads: the text is long.</p>}
      {maps.trouble && <p class="hs-trouble" role="alert">{maps.trouble}</p>}
      <Plot label="all heads">{draw}</Plot>
    </Frame>
  );
}
