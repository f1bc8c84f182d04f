/** Texts and maps from the server that a page came from. */
import type { Kind, MapSource, PackedInfluence, Text, TextData } from "../types";
import { fromUint16 } from "./maps";

export interface Request {
  model: string;
  text: string;
  second?: string;
  generate?: number; // tokens for the model to write after the text
}

/** What a served run says of a head. */
export interface KnownHead {
  head: string;
  word: string; // "objects"
  sentence: string; // with the numbers, without its subject
  run: string;
}

/** What a second text is: none, one that is compared with the first, or the other part of one input. */
export type Mode = "one" | "compare" | "pair";

/** A text to begin with. */
export interface ExampleText {
  text: string;
  second: string | null;
  mode: Mode;
  generate: number | null;
  head: string | null;
  about: string;
}

/** A model as the page offers it. */
export interface ModelDetails {
  name: string;
  kind: "encoder" | "decoder" | "encoder-decoder";
  generate: number; // tokens at most; 0 where it continues no text
  known: KnownHead[];
  examples: ExampleText[];
}

/** The places of two words, or special tokens, of two texts that correspond. */
export type Pair = [first: number, second: number];

/** How differently each head attends in two texts. */
export interface Differences {
  words: number; // that correspond
  changed: [first: string, second: string][];
  aligned: Partial<Record<Kind, { rows: Pair[]; columns: Pair[] }>>;
  heads: { head: string; difference: number; largest: number; words: [first: string, second: string] }[];
}

/** What the server answers: a text to look at, and what was left out of it. */
export interface Answer extends TextData {
  id: string;
  note: string;
}

const KEPT = 64; // maps
const LITTLE = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;

/** What went wrong, in the server's words. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    problem: string,
    remedy: string,
  ) {
    super(remedy ? `${problem}. ${remedy}.` : problem);
  }
}

async function asked(address: string, options: RequestInit): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(address, options);
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new Refused(0, "the server does not answer", "Is headscope serve still running?");
  }
  if (answer.ok) return answer;
  const told = (await answer.json().catch(() => ({}))) as { error?: string; remedy?: string };
  throw new Refused(answer.status, told.error ?? `the server answered ${answer.status}`, told.remedy ?? "");
}

/** Put a text through a model. */
export async function send(request: Request, signal?: AbortSignal): Promise<Answer> {
  const options = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(request), ...(signal ? { signal } : {}) };
  return (await (await asked("/api/texts", options)).json()) as Answer;
}

/** What the server offers of a model. */
export const details = async (model: string): Promise<ModelDetails> => (await asked(`/api/models/${encodeURIComponent(model)}`, {})).json() as Promise<ModelDetails>;

/** How differently each head attends in two texts that were sent. */
export const differences = async (first: string, second: string, signal: AbortSignal): Promise<Differences> => (await asked(`/api/texts/${first}/differences/${second}`, { signal })).json() as Promise<Differences>;

/** Maps of a text that the server holds. One that it has forgotten is sent again, once. */
export class Served implements MapSource {
  private readonly kept = new Map<string, Promise<Float32Array>>();
  private readonly influences = new Map<string, Promise<PackedInfluence>>();
  private readonly stop = new AbortController();

  constructor(private readonly request: Request) {}

  map(text: Text, head: string): Promise<Float32Array> {
    const found = this.kept.get(head) ?? this.fetched(text, head);
    this.kept.delete(head); // the last used is the last to go
    this.kept.set(head, found);
    found.catch(() => this.kept.delete(head));
    if (this.kept.size > KEPT) this.kept.delete(this.kept.keys().next().value!);
    return found;
  }

  influence(text: Text, measure: string): Promise<PackedInfluence> {
    const address = `/api/texts/${text.id}/influence/${encodeURIComponent(measure)}`;
    const found = this.influences.get(measure) ?? this.answered(address).then(async (answer) => (await answer.json()) as PackedInfluence);
    this.influences.set(measure, found);
    found.catch(() => this.influences.delete(measure));
    return found;
  }

  /** Let go of what is still under way. */
  close(): void {
    this.stop.abort();
  }

  private async fetched(text: Text, head: string): Promise<Float32Array> {
    const answer = await this.answered(`/api/texts/${text.id}/heads/${head}`);
    return fromUint16(numbers(await answer.arrayBuffer()));
  }

  /** What the server answers; a text that it has forgotten is sent again, once. */
  private answered(address: string): Promise<Response> {
    const options = { signal: this.stop.signal };
    return asked(address, options).catch(async (error: unknown) => {
      if (!(error instanceof Refused) || error.status !== 404) throw error;
      await send(this.request, this.stop.signal);
      return asked(address, options);
    });
  }
}

function numbers(buffer: ArrayBuffer): Uint16Array {
  if (LITTLE) return new Uint16Array(buffer);
  const view = new DataView(buffer);
  return Uint16Array.from({ length: buffer.byteLength / 2 }, (_, i) => view.getUint16(2 * i, true));
}
