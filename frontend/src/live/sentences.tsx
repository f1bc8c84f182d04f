/** Sentences with precomputed maps, for pages without a server: a list of sentences, and the views of the selected one. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { findHead } from "../data/heads";
import type { KnownHead } from "../data/server";
import type { Location } from "../page/address";
import type { Shown } from "../text/text-view";
import { shownFirst } from "../text/text-view";
import type { MapSource, TextData } from "../types";
import { Button, Select } from "../ui/controls";
import { KnownHeads } from "./known-heads";
import sheet from "./live.css";
import { OneText } from "./one-text";

/** One sentence with the maps of all heads. */
interface HeldSentence {
  group: string; // "agreement"
  sentence: string;
  about: string; // what to look for
  data: TextData;
}

export interface SentencesData {
  model: string;
  report: string; // the address of the report of the run with the labels
  known: KnownHead[];
  sentences: HeldSentence[];
}

/** The index (from 0) of the sentence in an address; 0 for an invalid number. */
function numberOf(value: string | undefined, count: number): number {
  const number = Number(value ?? 1);
  return Number.isInteger(number) && number >= 1 && number <= count ? number - 1 : 0;
}

export function Sentences(props: SentencesData & { sourceOf: (data: TextData) => MapSource; address: Location }): JSX.Element {
  const { model, report, known, sentences, address } = props;
  const count = sentences.length;
  const first = (head: string | undefined): Shown => {
    const data = sentences[0]!.data;
    return shownFirst({ ...data, heads: [(head && findHead(head, data.sites)) || known[0]?.head || data.heads[0]!] });
  };
  const [at, setAt] = useState(() => numberOf(address.address.values["sentence"], count));
  const [shown, setShown] = useState(() => first(address.address.values["head"]));
  const sentence = sentences[at]!;
  const choose = (next: number): void => {
    setAt(next);
    address.set({ sentence: String(next + 1) });
  };
  const change = (next: Shown): void => {
    setShown(next);
    address.set({ head: next.heads[0] ?? "" });
  };
  useEffect(() => {
    address.listen(({ values }) => {
      setAt(numberOf(values["sentence"], count));
      const head = values["head"] && findHead(values["head"], sentences[0]!.data.sites);
      if (head) setShown((now) => ({ ...now, heads: [head] }));
    });
  }, [address]);
  const groups = [...new Set(sentences.map(({ group }) => group))].map((group) => ({
    group,
    options: sentences.flatMap((each, number) => (each.group === group ? [[String(number), each.sentence] as const] : [])),
  }));
  return (
    <div class="hs-live">
      <style>{sheet}</style>
      <div class="hs-controls hs-held">
        <Select label={`one of ${count} sentences`} value={String(at)} options={groups} onChange={(value) => choose(Number(value))} />
        <Button idle={at === 0} onClick={() => choose(at - 1)}>previous</Button>
        <Button idle={at === count - 1} onClick={() => choose(at + 1)}>next</Button>
      </div>
      <p class="hs-read">{sentence.sentence}</p>
      <p class="hs-note" role="status">{sentence.about}</p>
      <KnownHeads known={known} model={model} heads={shown.heads} linkOf={({ head }) => `${report}#head=${head}`} onChoose={(head) => change({ ...shown, heads: [head], view: shown.view === "influence" ? "lines" : shown.view })} />
      <OneText key={at} data={sentence.data} source={props.sourceOf(sentence.data)} known={known} shown={shown} onShown={change} />
    </div>
  );
}
