/** The data that headscope.views writes and the views read. Arrays over heads are in the order of the sites, then of their heads. */

export type Kind = "encoder" | "decoder" | "cross";

export interface Site {
  kind: Kind;
  layer: number; // from 1
  heads: number;
  kv_heads: number;
}

/** The roles of tokens, with the same numbers as in headscope.core.batch. */
export const WORD = 0, CLS = 1, SEP = 2, SPECIAL = 3;

/** The tokens of one side of a map, and their words. */
export interface Side {
  tokens: string[];
  roles: number[]; // WORD, CLS, SEP or SPECIAL per token
  words: number[]; // per token the index of its word in `forms`; -1 for special tokens
  forms: string[];
  generated?: number; // index of the first generated token, after which all are generated; negative if a window starts later
  relations?: [dependent: number, governor: number, label: string][]; // indices of words
  mentions?: [first: number, last: number, entity: string][]; // indices of words, both ends included
}

/** A text that the model has read. In encoder-decoders, the decoder reads `target`. */
export interface Text {
  id: string;
  source: Side;
  target?: Side;
  window?: [first: number, total: number]; // only a window of a longer text is here: the index of its first token, the number of all tokens
}

/** Maps by head name: base64 of little-endian uint16, row by row; 65535 stands for a weight of 1. */
export type Packed = Record<string, string>;

/** A quantity of a measure, with one value per head. Missing values are null. */
export interface Quantity {
  measure: string;
  name: string; // as in the tables: "to_sep", "obj", "obj (head-to-dep)"
  label: string; // the label in contests ("obj"), else the name
  direction: string; // "dep-to-head"; "" for no direction
  about: string; // a phrase: "to the previous token"
  share: boolean; // whether the values are between 0 and 1
  baseline_name: string; // "even", "best rule", "chain of words"
  value: (number | null)[];
  low: (number | null)[];
  high: (number | null)[];
  baseline: (number | null)[];
  n: number[];
  documents: (number | null)[]; // null in runs that did not count them
}

/** A quantity of a measure, with one value per layer. */
export interface LayerCurve {
  measure: string;
  name: string;
  kind: Kind;
  layer: number[];
  value: (number | null)[];
  low: (number | null)[];
  high: (number | null)[];
  baseline: (number | null)[];
}

/** A figure of curves by layer, with the same name, title and order of colours as the static figure. */
export interface CurvesFigure {
  name: string; // "clark2"
  kind: Kind;
  caption: string;
  n: string; // "347 texts"
  panels: {
    title: string;
    ylabel: string;
    measure: string;
    limits: [number, number] | null;
    baseline: string | null; // name of the dashed line, the baseline of the first series
    series: { quantity: string; label: string }[];
  }[];
}

/** A row of a `<measure>_best` table. */
export interface Best {
  kind: Kind;
  label: string;
  n: number;
  heads: string; // "8-11 | 3-2" if the halves chose different heads; "" if the documents cannot be split
  direction: string;
  value: number | null;
  low: number | null;
  high: number | null;
  rule: string;
  baseline: number | null;
  baseline_low: number | null;
  baseline_high: number | null;
  lift: number | null;
  lift_low: number | null;
  lift_high: number | null;
  in_sample_head: string;
  in_sample: number | null;
  chance: number | null;
}

export interface Contest {
  measure: string;
  counted: string; // "words"
  axis: string; // "Share of words whose governor is picked"
  rule: string; // "best fixed offset"
  fair: boolean;
  rows: Best[];
}

/** An example of what a head is best at, selected by the run. */
export interface Example {
  head: string;
  measure: string;
  quantity: string;
  value: number; // in this text only
  n: number;
  text: number; // index into `texts`
  map?: string; // the map of this head; the maps of all heads on a text are in `stacks`
}

/** Heads as points. The distances between points approximate those between their attention (Clark et al., Figure 6). */
export interface HeadMap {
  x: (number | null)[]; // null for kinds of heads that were not compared
  y: (number | null)[];
  behaviour: string[]; // one label per head; "" for none
  labels?: string[]; // all labels of a head ("broad, conj"), if the run measured distances
  stress: number;
  about: string; // a description of the distances, with the number of rows
  neighbours: [head: number, distance: number][][]; // the nearest heads of each head
}

/** The tree of heads: which heads are joined, closest first. */
export interface HeadTree {
  heads: number[]; // indices of the heads at the leaves, from top to bottom
  groups: number[]; // the group of each leaf, from 1, largest group first
  merges: [a: number, b: number, height: number][]; // clusters: with n leaves, i < n is leaf i and n + i the result of merge i
  cut: number | null; // the height that divides the tree into groups
  silhouette: number | null;
  about: string;
}

/** The numbers of one slice of the documents. Quantities with too few cases are missing. */
export interface Slice {
  name: string; // "news"
  documents: number;
  signature: string;
  quantities: Quantity[];
}

/** A label that a head has with an interval: its type, and the number that supports it. */
export interface HeadLabel {
  head: number; // index among all heads
  type: string; // "syntactic", "sink"
  what: string; // "obj", "[SEP]"; "" if the type is enough
  about: string; // a sentence without its subject: "attends to an earlier copy of the token"
  quantity: string; // as in the tables
  value: number | null;
  low: number | null;
  high: number | null;
  baseline: number | null;
  n: number;
  documents: number;
  survives: number | null; // share of the resamples of documents in which the label holds
}

export interface Run {
  name: string;
  model: string;
  corpus: string;
  signature: string;
  counts: Record<string, number>;
  sites: Site[];
  quantities: Quantity[];
  slices: { by: string; values: Slice[] } | null; // null for a run without slices
  layers: LayerCurve[];
  curves: CurvesFigure[];
  contests: Contest[];
  // The labels are ordered by head, most informative first. null if the states of the run cannot be read.
  types: { labels: HeadLabel[]; rule: string; unmeasured: string } | null;
  texts: Text[];
  stacks: { text: number; maps: Packed }[]; // texts with the maps of every head
  examples: Example[];
  map: HeadMap | null;
  tree: HeadTree | null;
}

/** Two runs: differences of quantities per head (if the models have the same heads), per layer, and between best heads per label. */
export interface Comparison {
  a: { name: string; model: string; corpus: string; signature: string };
  b: { name: string; model: string; corpus: string; signature: string };
  how: string; // the method of the intervals of differences: "paired by document", "as of independent samples"
  unlike: string[]; // differences between the runs other than model and corpus; the page lists them
  left_out: string[]; // what could not be compared, with the reasons
  sites: Site[] | null; // null if the heads of the models do not correspond
  quantities: {
    measure: string;
    name: string;
    about: string;
    a: (number | null)[];
    b: (number | null)[];
    difference: (number | null)[];
    low: (number | null)[];
    high: (number | null)[];
  }[]; // over heads; empty without `sites`
  layers: { name: string; measure: string; kind: Kind; layer: number[]; a: (number | null)[]; b: (number | null)[]; difference: (number | null)[]; low: (number | null)[]; high: (number | null)[] }[];
  best: { measure: string; label: string; kind: Kind; a_head: string; b_head: string; a: number | null; b: number | null; difference: number | null; low: number | null; high: number | null; n: [number, number] }[];
}

/** A text and the initial state of its views. Maps are in `maps`, or are fetched one by one. */
export interface TextData {
  text: Text;
  sites: Site[];
  signature: string;
  heads: string[]; // shown initially
  why?: string; // the reason for these heads: "it links far words most clearly"
  level?: "token" | "word"; // initial value, as for `specials`; by default the view decides
  specials?: "show" | "hide" | "renormalise";
  view?: "lines" | "heatmap" | "influence" | "model"; // initial value
  step?: number; // initial step of a generated text; by default all steps are shown
  layers?: number[]; // in the view of all heads; by default all layers
  maps?: Packed;
  influence?: InfluenceData;
  highlight?: NamedPairs; // in red initially
}

/** Named pairs of words by kind of attention, the attending word first. null stands for every word and special token. */
export interface NamedPairs {
  name: string;
  pairs: Partial<Record<Kind, [query: number | null, key: number | null][]>>;
}

/** The measures of influence between the tokens of a text, and the initial measure and layer. */
export interface InfluenceData {
  measures: Record<string, string>; // the available measures with their descriptions
  missing: Record<string, string>; // the unavailable measures with the reasons
  held?: Record<string, PackedInfluence>; // the measures embedded in the page
  measure: string;
  layer: number | "mean";
}

/** Influence by one measure: base64 of little-endian uint16, layer by layer and row by row. Rows are influenced by columns. */
export interface PackedInfluence {
  scales: number[]; // the value that 65535 stands for, per layer
  values: string;
  note: string; // how it was estimated; "" if it is exact
  settings: string; // for the signature: "measure:G|norm:frobenius"
}

/** A source of maps: the page, a server, or the kernel of a notebook. Rows are queries. */
export interface MapSource {
  map(text: Text, head: string): Promise<Float32Array>;
  has?(text: Text, head: string): boolean; // without it, all heads are available
  influence?(text: Text, measure: string): Promise<PackedInfluence>;
}
