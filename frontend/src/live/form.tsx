/** The form for one text, two texts to compare, or the two parts of one input. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Mode, ModelDetails } from "../data/server";
import { Button, Select, Switch, useUnique } from "../ui/controls";
import type { Asked } from "./address";

type Kind = ModelDetails["kind"];

const PAIRS: Record<Kind, string> = { encoder: "a pair in one input", decoder: "a pair in one input", "encoder-decoder": "source and target" };

/** The labels of the two text boxes. */
function labels(mode: Mode, kind: Kind): [first: string, second: string] {
  if (mode === "compare") return ["first text", "second text, which differs in one or a few words"];
  if (mode === "one") return ["text", ""];
  return kind === "encoder-decoder" ? ["source: what the encoder reads", "target: what the decoder reads"] : ["first sentence of the pair", "second sentence of the pair"];
}

/** How two texts are processed, in one sentence; "" for one text. */
function explained(mode: Mode, kind: Kind): string {
  if (mode === "compare") return "Each text is read alone. The page shows in which heads the attention differs.";
  if (mode === "one") return "";
  return kind === "encoder-decoder" ? "The encoder reads the source and the decoder the target." : "Both sentences are read together, as one input: words of one can attend to words of the other.";
}

function Box(props: { label: string; value: string; rows: number; limit: number; onInput: (value: string) => void; onSend: () => void }): JSX.Element {
  const id = useUnique();
  return (
    <div class="hs-box">
      <label for={id}>{props.label}</label>
      <textarea
        id={id}
        dir="auto"
        rows={props.rows}
        maxLength={props.limit}
        spellcheck={false}
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

/** The number of tokens to generate, and the button that starts the generation. */
function Generate(props: { most: number; value: number; busy: boolean; onGenerate: (steps: number) => void }): JSX.Element {
  const id = useUnique();
  const [steps, setSteps] = useState(String(props.value || Math.min(20, props.most)));
  const count = Number(steps), right = Number.isInteger(count) && count >= 1 && count <= props.most;
  return (
    <span class="hs-field hs-generate">
      <button type="button" aria-disabled={props.busy || !right} onClick={() => !props.busy && right && props.onGenerate(count)}>Generate</button>
      <input id={id} type="number" min={1} max={props.most} step={1} value={steps} aria-invalid={!right} onInput={(event) => setSteps(event.currentTarget.value)} />
      <label for={id}>tokens, 1 to {props.most}</label>
    </span>
  );
}

export function TextForm(props: {
  models: string[];
  model: ModelDetails | null; // null until its details have arrived
  asked: Asked;
  limit: number;
  busy: boolean;
  onChange: (asked: Asked) => void;
  onLook: (asked: Asked) => void;
}): JSX.Element {
  const { asked, model, busy } = props;
  const kind = model?.kind ?? "encoder";
  const [first, second] = labels(asked.mode, kind);
  const look = (generate = 0): void => props.onLook({ ...asked, generate });
  const change = (part: Partial<Asked>): void => props.onChange({ ...asked, ...part });
  const modes: [Mode, string][] = [["one", "one text"], ["compare", "two texts, compared"], ["pair", PAIRS[kind]]];
  return (
    <form
      class="hs-type"
      onSubmit={(event) => {
        event.preventDefault();
        look();
      }}
    >
      <div class="hs-controls">
        <Switch label="input" value={asked.mode} options={modes.filter(([mode]) => mode !== "pair" || kind !== "decoder" || asked.mode === mode)} onChange={(mode) => change({ mode })} />
        {props.models.length > 1 && <Select label="model" value={asked.model} options={props.models.map((name) => [name, name] as const)} onChange={(name) => change({ model: name })} />}
      </div>
      {explained(asked.mode, kind) && <p class="hs-note">{explained(asked.mode, kind)}</p>}
      <Box label={first} value={asked.text} rows={asked.mode === "one" ? 3 : 2} limit={props.limit} onInput={(text) => change({ text })} onSend={look} />
      {asked.mode !== "one" && <Box label={second} value={asked.second} rows={2} limit={props.limit} onInput={(text) => change({ second: text })} onSend={look} />}
      <div class="hs-controls">
        <Button type="submit" idle={busy}>{busy ? "Looking…" : asked.mode === "compare" ? "Compare" : "Look"}</Button>
        <span class="hs-faint">Ctrl+Enter</span>
        {asked.mode === "one" && model !== null && model.generate > 0 && <Generate most={model.generate} value={asked.generate} busy={busy} onGenerate={look} />}
      </div>
    </form>
  );
}
