/** A box to type a text into, and what the heads of a model make of it. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Answer, Request } from "../data/server";
import { send, Served } from "../data/server";
import { Button, Select, Toggle, useUnique } from "../ui/controls";
import { TextView } from "./text-view";

export interface LiveData {
  models: string[];
  characters: number; // of a text, at most
}

interface Shown {
  answer: Answer;
  source: Served;
  model: string;
}

const LONGEST = 4000; // characters of a text that the address can hold

/** What the address asks for: ?text=&second=&model= */
function fromAddress(models: string[]): Request {
  const query = new URLSearchParams(location.search);
  const named = query.get("model") ?? "";
  const second = query.get("second");
  return { model: models.includes(named) ? named : (models[0] ?? ""), text: query.get("text") ?? "", ...(second === null ? {} : { second }) };
}

function toAddress(request: Request): void {
  const query = new URLSearchParams({ text: request.text, ...(request.second === undefined ? {} : { second: request.second }), model: request.model });
  const short = request.text.length + (request.second?.length ?? 0) <= LONGEST;
  history.replaceState(null, "", short ? `/live?${query}` : "/live");
}

function Box(props: { label: string; value: string; rows: number; limit: number; onInput: (value: string) => void; onSend: () => void }): JSX.Element {
  const id = useUnique();
  return (
    <div style="margin:.4rem 0">
      <label for={id} style="display:block;font-size:.88rem;color:var(--hs-faint)">{props.label}</label>
      <textarea
        id={id}
        dir="auto"
        rows={props.rows}
        maxLength={props.limit}
        spellcheck={false}
        style="width:100%;resize:vertical"
        value={props.value}
        onInput={(event) => props.onInput(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
            event.preventDefault();
            props.onSend();
          }
        }}
      />
    </div>
  );
}

export function Live(props: LiveData): JSX.Element {
  const [request, setRequest] = useState<Request>(() => fromAddress(props.models));
  const [shown, setShown] = useState<Shown | null>(null);
  const [busy, setBusy] = useState(false);
  const [trouble, setTrouble] = useState("");
  const underway = useRef<AbortController | null>(null);
  const pair = request.second !== undefined;

  const look = async (): Promise<void> => {
    if (!request.text.trim()) {
      setTrouble("There is no text yet: type a sentence.");
      return;
    }
    underway.current?.abort();
    const mine = (underway.current = new AbortController());
    const { second, ...single } = request;
    const asked: Request = second?.trim() ? { ...single, second } : single;
    setBusy(true);
    setTrouble("");
    try {
      const answer = await send(asked, mine.signal);
      shown?.source.close();
      setShown({ answer, source: new Served(asked), model: asked.model });
      toAddress(asked);
    } catch (error) {
      if (mine.signal.aborted) return;
      setTrouble(error instanceof Error ? error.message : String(error));
    }
    if (underway.current === mine) setBusy(false);
  };

  useEffect(() => {
    if (request.text.trim()) void look();
    return () => underway.current?.abort();
  }, []);

  return (
    <div class="hs-live">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void look();
        }}
      >
        <Box label="text" value={request.text} rows={3} limit={props.characters} onInput={(text) => setRequest({ ...request, text })} onSend={() => void look()} />
        {pair && (
          <Box
            label="second text: the other of a pair, or what the decoder of an encoder–decoder reads"
            value={request.second ?? ""}
            rows={2}
            limit={props.characters}
            onInput={(second) => setRequest({ ...request, second })}
            onSend={() => void look()}
          />
        )}
        <div class="hs-controls">
          <Button type="submit" idle={busy}>{busy ? "Looking…" : "Look"}</Button>
          <span style="color:var(--hs-faint);font-size:.8rem">Ctrl+Enter</span>
          <Select label="model" value={request.model} options={props.models.map((name) => [name, name] as const)} onChange={(model) => setRequest({ ...request, model })} />
          <Toggle
            label="second text"
            value={pair}
            onChange={(on) => {
              const { second: _, ...single } = request;
              setRequest(on ? { ...single, second: "" } : single);
            }}
          />
        </div>
      </form>
      {trouble && <p class="hs-trouble" role="alert">{trouble}</p>}
      {shown?.answer.note && <p role="status" style="font-size:.88rem">Not all of it was read: {shown.answer.note}.</p>}
      {shown && <TextView key={shown.model} data={shown.answer} source={shown.source} />}
    </div>
  );
}
