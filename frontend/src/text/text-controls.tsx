/** Props and controls that the views of one text share: heads, tokens or words, and links in red. */
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { Choice } from "../data/maps";
import type { MapSource, TextData } from "../types";
import { Select } from "../ui/controls";
import { highlightOptions, NAMED, namedPairs, wordPairs } from "./highlight";

/** The props of each view of a text. */
export interface TextViewProps {
  data: TextData;
  source: MapSource;
  heads: string[];
  onHeads: (heads: string[]) => void;
  choice: Choice;
  marking: Marking;
  tabs: JSX.Element; // buttons that select the view
  controls: JSX.Element; // controls of `choice`
}

/** The pairs of words in red, their name, and the options of the select. */
export interface Marking {
  marked: ReadonlySet<number>;
  name: string;
  value: string;
  options: [key: string, name: string][];
  onChange: (value: string) => void;
}

const LEVELS = [["token", "tokens"], ["word", "words"]] as const;
const SPECIALS = [["show", "show"], ["hide", "hide"], ["renormalise", "hide, renormalise"]] as const;

export const Choices = ({ choice, onChange }: { choice: Choice; onChange: (choice: Choice) => void }): JSX.Element => (
  <>
    <Select label="level" value={choice.level} options={LEVELS} onChange={(level) => onChange({ ...choice, level })} />
    <Select label="special tokens" value={choice.specials} options={SPECIALS} onChange={(specials) => onChange({ ...choice, specials })} />
  </>
);

/** The marking in maps with the rows and columns of `head`. It starts with the named pairs if there are any, else with `first`. */
export function useMarking({ text, highlight: named }: TextData, head: string, first: string): Marking {
  const [value, onChange] = useState(named ? NAMED : first);
  return useMemo(() => {
    const own = namedPairs(named, head);
    const options: [string, string][] = [...(named && own.size ? [[NAMED, named.name] as [string, string]] : []), ...highlightOptions(text, head, first)];
    const known = options.find(([key]) => key === value);
    const marked = !known ? new Set<number>() : value === NAMED ? own : wordPairs(text, head, value);
    return { marked, name: known?.[1] ?? "", value: marked.size ? value : "", options, onChange };
  }, [text, named, head, first, value]);
}

/** The select for the marking; null if there are no options. */
export const MarkingSelect = ({ marking, label }: { marking: Marking; label: string }): JSX.Element | null =>
  marking.options.length ? <Select label={label} value={marking.value} options={[["", "nothing"], ...marking.options]} onChange={marking.onChange} /> : null;
