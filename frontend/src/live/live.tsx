/** The live page: a form for texts, and the attention of a model's heads on them. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { findHead } from "../data/heads";
import type { Answer, ExampleText, KnownHead, ModelDetails, Request } from "../data/server";
import { details, differences, send, Served } from "../data/server";
import type { Shown } from "../text/text-view";
import { shownFirst } from "../text/text-view";
import type { Asked, Chosen } from "./address";
import { readAddress, writeAddress } from "./address";
import { ExampleTexts } from "./examples";
import { TextForm } from "./form";
import { KnownHeads } from "./known-heads";
import sheet from "./live.css";
import { OneText } from "./one-text";
import type { Compared } from "./two-texts";
import { mostDifferent, TwoTexts } from "./two-texts";

export interface LiveData {
  models: string[];
  characters: number; // most characters of a text
}

/** The submitted input with the server's reply. */
interface Looked {
  asked: Asked;
  model: ModelDetails;
  answer: Answer;
  source: Served;
  compared: Compared | null;
}

const DEFAULT_VIEW = "lines";
const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

function requestOf({ model, mode, text, second, generate }: Asked): Request {
  return { model, text, ...(mode === "pair" && second.trim() ? { second } : {}), ...(mode === "one" && generate ? { generate } : {}) };
}

/** The message about a missing text; "" if no text is missing. */
function missing({ mode, text, second }: Asked): string {
  if (!text.trim()) return "There is no text yet: type a sentence, or choose an example.";
  return mode !== "one" && !second.trim() ? `There is no second text yet: type it${mode === "compare" ? ", or choose the input “one text”" : ""}.` : "";
}

/** The initial state of a text's views: the heads of the address, of a run, or of the server; with a message about unknown heads. */
function beginWith(answer: Answer, chosen: Chosen, known: readonly KnownHead[], asked: Asked): { shown: Shown; trouble: string } {
  const found = (chosen.heads ?? []).map((name) => [name, findHead(name, answer.sites)] as const);
  const named = found.flatMap(([, head]) => (head === undefined ? [] : [head]));
  const unknown = found.flatMap(([name, head]) => (head === undefined ? [name] : []));
  const heads = named.length ? named : known.length ? [known[0]!.head] : answer.heads;
  const first = shownFirst({ ...answer, heads });
  const shown: Shown = {
    ...first,
    view: chosen.view ?? DEFAULT_VIEW,
    choice: { level: chosen.level ?? (asked.generate ? "token" : "word"), specials: chosen.specials ?? "show" },
    influence: { measure: chosen.measure ?? first.influence.measure, layer: chosen.layer ?? first.influence.layer },
  };
  return { shown, trouble: unknown.length ? `The model has no head ${unknown.join(", ")}: the address names it.` : "" };
}

const chosenOf = ({ heads, view, choice, influence }: Shown, { generate }: Asked): Chosen => ({
  heads,
  view,
  specials: choice.specials,
  ...(choice.level === (generate ? "token" : "word") ? {} : { level: choice.level }),
  ...influence,
});

export function Live(props: LiveData): JSX.Element {
  const [asked, setAsked] = useState<Asked>(() => ({ ...readAddress(location).asked, model: readAddress(location).asked.model || props.models[0] || "" }));
  const [model, setModel] = useState<ModelDetails | null>(null);
  const [looked, setLooked] = useState<Looked | null>(null);
  const [shown, setShown] = useState<Shown | null>(null);
  const [busy, setBusy] = useState(false);
  const [trouble, setTrouble] = useState("");
  const underway = useRef<AbortController | null>(null);
  const kept = useRef(new Map<string, Promise<ModelDetails>>());
  const detailsOf = (name: string): Promise<ModelDetails> => {
    const found = kept.current.get(name) ?? details(name);
    kept.current.set(name, found);
    found.catch(() => kept.current.delete(name));
    return found;
  };

  const look = async (next: Asked, chosen: Chosen, step: "push" | "replace"): Promise<void> => {
    setAsked(next);
    const wrong = props.models.includes(next.model) ? missing(next) : `No model “${next.model}” is served here: choose ${props.models.join(" or ")}.`;
    setTrouble(wrong);
    if (wrong) {
      if (!props.models.includes(next.model)) setAsked({ ...next, model: props.models[0] ?? "" });
      return;
    }
    underway.current?.abort();
    const mine = (underway.current = new AbortController());
    setBusy(true);
    try {
      const request = requestOf(next);
      const answer = await send(request, mine.signal);
      const about = await detailsOf(next.model);
      const source = new Served(request), compared = next.mode === "compare" ? await compare(next, answer, source, mine.signal) : null;
      const first = compared?.differences && !chosen.heads ? { ...chosen, heads: mostDifferent(compared.differences).slice(0, 1) } : chosen;
      const begun = beginWith(answer, first, about.known, next);
      if (mine.signal.aborted) return;
      looked?.source.close();
      looked?.compared?.sources[1].close();
      setModel(about);
      setLooked({ asked: next, model: about, answer, source, compared });
      setShown(begun.shown);
      setTrouble(begun.trouble);
      const address = writeAddress(next, chosenOf(begun.shown, next)) ?? "/live";
      if (location.pathname + location.hash !== address) history[step === "push" ? "pushState" : "replaceState"](null, "", address);
    } catch (error) {
      if (mine.signal.aborted) return;
      setTrouble(messageOf(error));
    }
    if (underway.current === mine) setBusy(false);
  };

  const change = (next: Shown): void => {
    setShown(next);
    if (looked) history.replaceState(null, "", writeAddress(looked.asked, chosenOf(next, looked.asked)) ?? "/live");
  };

  // Fetch the details of a model when it is selected, not when a text is submitted.
  useEffect(() => {
    if (!props.models.includes(asked.model) || model?.name === asked.model) return undefined;
    let wanted = true;
    setModel(null);
    detailsOf(asked.model).then((found) => void (wanted && setModel(found)), (error: unknown) => void (wanted && setTrouble(messageOf(error))));
    return () => {
      wanted = false;
    };
  }, [asked.model]);

  const follow = useRef<() => void>(() => undefined);
  follow.current = () => {
    const { asked: next, chosen } = readAddress(location);
    const named = { ...next, model: next.model || props.models[0] || "" };
    if (named.text.trim() || next.model) void look(named, chosen, "replace");
    else if (!location.hash) {
      setLooked(null);
      setAsked(named);
    }
  };
  useEffect(() => {
    const moved = (): void => follow.current();
    moved();
    addEventListener("popstate", moved);
    return () => {
      removeEventListener("popstate", moved);
      underway.current?.abort();
    };
  }, []);

  const edit = (next: Asked): void => {
    if (looked && next.model !== asked.model) void look({ ...next, generate: 0 }, {}, "push"); // the same texts with another model
    else setAsked(next);
  };
  const choose = (example: ExampleText): void =>
    void look({ model: asked.model, mode: example.mode, text: example.text, second: example.second ?? "", generate: example.generate ?? 0 }, example.head ? { heads: [example.head] } : {}, "push");
  const known = looked?.model.known ?? [];
  const opened = shown?.heads.join(" ") === looked?.answer.heads.join(" ") && !known.length;
  return (
    <div class="hs-live">
      <style>{sheet}</style>
      <TextForm models={props.models} model={model} asked={asked} limit={props.characters} busy={busy} onChange={edit} onLook={(next) => void look(next, {}, "push")} />
      {model === null && !trouble && <p class="hs-note" role="status">Loading {asked.model} …</p>}
      <ExampleTexts examples={model?.examples ?? []} open={looked === null} onChoose={choose} />
      {trouble && <p class="hs-trouble" role="alert">{trouble}</p>}
      {looked && shown && (
        <>
          {notesOf(looked).map((note) => <p class="hs-note" role="status">{note}.</p>)}
          {looked.asked.mode !== "compare" && <KnownHeads known={known} model={looked.asked.model} heads={shown.heads} onChoose={(head) => change({ ...shown, heads: [head], view: shown.view === "influence" ? "lines" : shown.view })} />}
          {looked.compared
            ? <TwoTexts key={looked.answer.id} compared={looked.compared} known={known} shown={shown} onShown={change} />
            : <OneText key={looked.answer.id} data={dataOf(looked, opened)} source={looked.source} known={known} shown={shown} onShown={change} />}
        </>
      )}
    </div>
  );
}

/** The data of a text for its views. Without `opened`, they do not include the reason for the initial heads. */
function dataOf({ answer, asked }: Looked, opened: boolean): Answer {
  const { why, ...data } = answer;
  return { ...data, ...(opened && why ? { why } : {}), ...(asked.generate ? { step: 1 } : {}) };
}

/** The server's notes about the texts, and a note if they are too long for the address. */
function notesOf({ asked, answer, compared }: Looked): string[] {
  const of = (note: string, which: string): string[] => (note ? [asked.generate ? note : `Not all of ${which} was read: ${note}`] : []);
  const long = writeAddress(asked, {}) === null ? ["The text is too long for the address, which opens an empty page"] : [];
  if (compared) return [...of(compared.data[0].note, "the first text"), ...of(compared.data[1].note, "the second text"), ...long];
  return [...of(answer.note, "it"), ...long];
}

/** Send the second text and fetch its differences from the first. If they cannot be compared, `refused` is the reason. */
async function compare(asked: Asked, answer: Answer, source: Served, signal: AbortSignal): Promise<Compared> {
  const request = { ...requestOf(asked), text: asked.second };
  const other = await send(request, signal);
  const both = { data: [answer, other], sources: [source, new Served(request)] } satisfies Pick<Compared, "data" | "sources">;
  try {
    return { ...both, differences: await differences(answer.id, other.id, signal), refused: "" };
  } catch (error) {
    if (signal.aborted) throw error;
    return { ...both, differences: null, refused: messageOf(error) };
  }
}
