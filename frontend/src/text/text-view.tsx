/** One text: attention of some heads, influence between its words, or all heads at a glance. */
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

type Name = NonNullable<TextData["view"]>;
const NAMES: Record<Name, string> = { lines: "lines", heatmap: "heatmap", influence: "influence", model: "all heads" };

/**
 * The views of one text. `compact` is for one example under a head: no other heads to choose.
 * `highlight` is what is red at first.
 */
export function TextView(props: { data: TextData; source: MapSource; compact?: boolean; highlight?: Highlight; title?: string }): JSX.Element {
  const { data, source, compact = false } = props;
  const first = highlightKey(props.highlight);
  const all = useMemo(() => allHeads(data.sites).map((head) => head.name), [data.sites]);
  const [heads, setHeads] = useState(() => addHeads([], data.heads.length ? data.heads : all.slice(0, 1)).heads);
  const [view, setView] = useState<Name>(data.view ?? "lines");
  const [choice, setChoice] = useState<Choice>({ level: data.level ?? (first ? "word" : "token"), specials: data.specials ?? "show" });
  const head = view === "influence" ? all[0]! : (heads[0] ?? ""); // influence has the rows and columns of the first kind of attention
  const marking = useMarking(data, head, first);
  const group = useRef<HTMLSpanElement>(null), pressed = useRef(false);
  // A view brings its own buttons: the one that was pressed keeps the focus.
  useLayoutEffect(() => {
    if (pressed.current) group.current?.querySelector<HTMLElement>("[aria-pressed=true]")?.focus();
    pressed.current = false;
  }, [view]);
  const names = (Object.keys(NAMES) as Name[]).filter((name) => (name === "influence" ? data.influence : name !== "model" || all.length > 1) && (!compact || name === "lines" || name === "heatmap"));
  const press = (name: Name): void => {
    pressed.current = name !== view;
    setView(name);
  };
  const tabs = (
    <span ref={group} class="hs-choice" role="group" aria-label="view">
      {names.map((name) => <button type="button" aria-pressed={view === name} onClick={() => press(name)}>{NAMES[name]}</button>)}
    </span>
  );
  const shared: TextViewProps = { data, source, heads, onHeads: setHeads, choice, marking, tabs, controls: <Choices choice={choice} onChange={setChoice} /> };
  if (view === "influence" && data.influence) return <InfluenceView {...shared} influence={data.influence} />;
  if (view === "model") return <ModelView {...shared} onSelect={(name) => (setHeads([name]), press("lines"))} />;
  return <Attention {...shared} view={view === "heatmap" ? view : "lines"} compact={compact} title={props.title} />;
}
