/** What headscope.views writes and the views read. Arrays over heads follow the sites in order, the heads of a site together. */

export type Kind = "encoder" | "decoder" | "cross";

export interface Site {
  kind: Kind;
  layer: number; // from 1
  heads: number;
  kv_heads: number;
}

/** What a token is: the same numbers as headscope.core.batch. */
export const WORD = 0, CLS = 1, SEP = 2, SPECIAL = 3;

/** The tokens of one side of a map, and the words they make up. */
export interface Side {
  tokens: string[];
  roles: number[]; // WORD, CLS, SEP or SPECIAL for each token
  words: number[]; // for each token its word, an index into `forms`; -1 on special tokens
  forms: string[];
  generated?: number; // the place of the first token that the model wrote itself, as are all after it; negative if a window begins later
  relations?: [dependent: number, governor: number, label: string][]; // by word
  mentions?: [first: number, last: number, entity: string][]; // by word, both ends included
}

/** A text that was put through the model. Encoder-decoders have a `target`, which their decoder reads. */
export interface Text {
  id: string;
  source: Side;
  target?: Side;
  window?: [first: number, total: number]; // only these tokens of a longer text are here: the first one's number, how many there are
}

/** Maps by head name, each base64 of little-endian uint16, row by row; 65535 is a weight of 1. */
export type Packed = Record<string, string>;

/** One number a head: a quantity of a measure. Missing values are null. */
export interface Quantity {
  measure: string;
  name: string; // as in the tables: "to_sep", "obj", "obj (head-to-dep)"
  label: string; // for contests the label ("obj"), else the name
  direction: string; // "dep-to-head"; "" where there is none
  about: string; // a phrase: "to the previous token"
  share: boolean; // whether it lies between 0 and 1
  baseline_name: string; // "even", "best rule", "chain of words"
  value: (number | null)[];
  low: (number | null)[];
  high: (number | null)[];
  baseline: (number | null)[];
  n: number[];
  documents: (number | null)[]; // null in runs that did not count them
}

/** One number a layer. */
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

/** A figure of curves by layer: the same name, title and order of colours as the static one. */
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
    baseline: string | null; // what to call the dashed line of the first series' baseline
    series: { quantity: string; label: string }[];
  }[];
}

/** A row of a `<measure>_best` table. */
export interface Best {
  kind: Kind;
  label: string;
  n: number;
  heads: string; // "8-11 | 3-2" where the halves chose differently; "" if there was no honest choice
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

/** Where a head does what it is best at, as the run found it. */
export interface Example {
  head: string;
  measure: string;
  quantity: string;
  value: number; // of this text alone
  n: number;
  text: number; // index into `texts`
  map?: string; // of this head alone; the maps of a whole-model text are in `stacks`
}

/** Heads as points whose distances are those between their attention: Clark et al., Figure 6. */
export interface HeadMap {
  x: (number | null)[]; // null for kinds of heads that were not compared
  y: (number | null)[];
  behaviour: string[]; // one label a head, "" for none
  labels?: string[]; // all labels of a head, "broad, conj", where the run measured distances
  stress: number;
  about: string; // what the distances are, over how many rows
  neighbours: [head: number, distance: number][][]; // for each head its nearest
}

/** Which heads are joined with which, the closest first. */
export interface HeadTree {
  heads: number[]; // the leaves from top to bottom: places among all heads
  groups: number[]; // for each leaf its group, from 1, the largest first
  merges: [a: number, b: number, height: number][]; // clusters by number: below the number of leaves a leaf, then what each merge made
  cut: number | null; // the height at which it falls into the groups
  silhouette: number | null;
  about: string;
}

/** The numbers of the documents of one slice. A quantity that a slice has too few cases of is not there. */
export interface Slice {
  name: string; // "news"
  documents: number;
  signature: string;
  quantities: Quantity[];
}

/** A label of a head that holds with an interval: what type of head it is, and the number that says so. */
export interface HeadLabel {
  head: number; // its place among all heads
  type: string; // "syntactic", "sink"
  what: string; // "obj", "[SEP]"; "" where the type says it
  about: string; // a sentence without its subject: "attends to an earlier copy of the token"
  quantity: string; // as in the tables
  value: number | null;
  low: number | null;
  high: number | null;
  baseline: number | null;
  n: number;
  documents: number;
  survives: number | null; // share of the samples of documents in which it holds
}

export interface Run {
  name: string;
  model: string;
  corpus: string;
  signature: string;
  counts: Record<string, number>;
  sites: Site[];
  quantities: Quantity[];
  slices: { by: string; values: Slice[] } | null; // null where the run was not divided
  layers: LayerCurve[];
  curves: CurvesFigure[];
  contests: Contest[];
  types: { labels: HeadLabel[]; rule: string; unmeasured: string } | null; // labels by head, most telling first; null where states cannot be read
  texts: Text[];
  stacks: { text: number; maps: Packed }[]; // texts with the maps of every head
  examples: Example[];
  map: HeadMap | null;
  tree: HeadTree | null;
}

/** Two runs, quantity by quantity, over heads (the models have the same) or over labels of their best heads. */
export interface Comparison {
  a: { name: string; model: string; corpus: string; signature: string };
  b: { name: string; model: string; corpus: string; signature: string };
  how: string; // how the intervals of differences were made: "paired by document", "as of independent samples"
  unlike: string[]; // what the runs did differently beside model and corpus; the page says it
  left_out: string[]; // what could not be compared, and why
  sites: Site[] | null; // null where the models' heads do not correspond
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

/** A text to look at. Maps come from `maps`, or one by one from a host. */
export interface TextData {
  text: Text;
  sites: Site[];
  signature: string;
  heads: string[]; // shown first
  why?: string; // they were chosen: "it links far words most clearly"
  level?: "token" | "word"; // at first; without them the view decides
  specials?: "show" | "hide" | "renormalise";
  view?: "lines" | "heatmap" | "influence" | "model"; // at first
  step?: number; // of a generated text, shown at first; without it all steps are
  layers?: number[]; // of all heads at a glance; without it, all
  maps?: Packed;
  influence?: InfluenceData;
  highlight?: NamedPairs; // in red at first
}

/** Pairs of words that were named, the attending one first, by kind of attention. null stands for every word and special token. */
export interface NamedPairs {
  name: string;
  pairs: Partial<Record<Kind, [query: number | null, key: number | null][]>>;
}

/** The measures of influence between the tokens of a text, and what is shown first. */
export interface InfluenceData {
  measures: Record<string, string>; // that can be shown, and what each is
  missing: Record<string, string>; // that cannot be shown here, and why
  held?: Record<string, PackedInfluence>; // those that came with the page
  measure: string;
  layer: number | "mean";
}

/** Influence by one measure: base64 of little-endian uint16, layer by layer and row by row. Rows are what is influenced. */
export interface PackedInfluence {
  scales: number[]; // what 65535 is in each layer
  values: string;
  note: string; // how it was estimated; "" where it is exact
  settings: string; // for the signature: "measure:G|norm:frobenius"
}

/** Where maps come from: the page itself, a server, a notebook's kernel. Rows are queries. */
export interface MapSource {
  map(text: Text, head: string): Promise<Float32Array>;
  has?(text: Text, head: string): boolean; // without it, all heads are there
  influence?(text: Text, measure: string): Promise<PackedInfluence>;
}
