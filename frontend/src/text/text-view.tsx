/** One text: the attention of selected heads, the influence between its words, or all heads. */
import type { JSX } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { allHeads } from "../data/heads";
import type { Choice } from "../data/maps";
import type { MapSource, TextData } from "../types";
import { Attention } from "./attention";
import { addHeads } from "./head-picker";
import type { Highlight } from "./highlight";
import { highlightKey } from "./highlight";
import { InfluenceView } from "./influence";
import { ModelView } from "./model-view";
import type { TextViewProps } from "./text-controls";
import { Choices, useMarking } from "./text-controls";

export type ViewName = NonNullable<TextData["view"]>;
const NAMES: Record<ViewName, string> = { lines: "lines", heatmap: "heatmap", influence: "influence", model: "all heads" };

/** The state of the views of a text. */
export interface Shown {
  heads: string[];
  view: ViewName;
  choice: Choice;
  influence: { measure: string; layer: string };
}

/** The initial state of the views of a text. */
export function shownFirst(data: TextData, highlighted = false): Shown {
  const all = allHeads(data.sites).map((head) => head.name);
  return {
    heads: addHeads([], data.heads.length ? data.heads : all.slice(0, 1)).heads,
    view: data.view ?? "lines",
    choice: { level: data.level ?? (highlighted ? "word" : "token"), specials: data.specials ?? "show" },
    influence: { measure: data.influence?.measure ?? "", layer: String(data.influence?.layer ?? "mean") },
  };
}

/**
 * The views of one text. `compact` is for an example of one head, which cannot be changed. `highlight` is in red
 * initially. With `shown`, the caller keeps the state, and `onShown` is called with changes.
 */
export function TextView(props: {
  data: TextData;
  source: MapSource;
  compact?: boolean;
  highlight?: Highlight;
  title?: string;
  shown?: Shown;
  onShown?: (shown: Shown) => void;
  without?: ViewName; // a view that the caller shows separately
}): JSX.Element {
  const { data, source, compact = false } = props;
  const first = highlightKey(props.highlight);
  const all = useMemo(() => allHeads(data.sites).map((head) => head.name), [data.sites]);
  const [own, setOwn] = useState(() => shownFirst(data, first !== ""));
  const shown = props.shown ?? own;
  const change = (part: Partial<Shown>): void => (props.onShown ?? setOwn)({ ...shown, ...part });
  const { heads, view, choice } = shown;
  const head = view === "influence" ? all[0]! : (heads[0] ?? ""); // influence has the rows and columns of the first kind of attention
  const marking = useMarking(data, head, first);
  const group = useRef<HTMLSpanElement>(null), pressed = useRef(false);
  // Each view renders new buttons. Return the focus to the pressed button.
  useLayoutEffect(() => {
    if (pressed.current) group.current?.querySelector<HTMLElement>("[aria-pressed=true]")?.focus();
    pressed.current = false;
  }, [view]);
  const offered = (name: ViewName): boolean => (name === "influence" ? data.influence !== undefined : name !== "model" || all.length > 1);
  const names = (Object.keys(NAMES) as ViewName[]).filter((name) => name !== props.without && offered(name) && (!compact || name === "lines" || name === "heatmap"));
  const press = (name: ViewName, part: Partial<Shown> = {}): void => {
    pressed.current = name !== view;
    change({ ...part, view: name });
  };
  const tabs = (
    <span ref={group} class="hs-choice" role="group" aria-label="view">
      {names.map((name) => <button type="button" aria-pressed={view === name} onClick={() => press(name)}>{NAMES[name]}</button>)}
    </span>
  );
  const shared: TextViewProps = { data, source, heads, onHeads: (heads) => change({ heads }), choice, marking, tabs, controls: <Choices choice={choice} onChange={(choice) => change({ choice })} /> };
  if (view === "influence" && data.influence) return <InfluenceView {...shared} influence={data.influence} chosen={shown.influence} onChosen={(influence) => change({ influence })} />;
  if (view === "model") return <ModelView {...shared} onSelect={(name) => press("lines", { heads: [name] })} />;
  return <Attention {...shared} view={view === "heatmap" ? view : "lines"} compact={compact} title={props.title} />;
}
