/** Texts and maps from the server of the page. */
import type { Kind, MapSource, PackedInfluence, Text, TextData } from "../types";
import { fromUint16 } from "./maps";

export interface Request {
  model: string;
  text: string;
  second?: string;
  generate?: number; // number of tokens that the model generates after the text
}

/** A head with a label in a served run. */
export interface KnownHead {
  head: string;
  word: string; // "objects"
  sentence: string; // with its numbers, without a subject
  run: string;
}

/** The role of the second text: none, compared with the first, or the second part of one input. */
export type Mode = "one" | "compare" | "pair";

/** An example text of a model. */
export interface ExampleText {
  text: string;
  second: string | null;
  mode: Mode;
  generate: number | null;
  head: string | null;
  about: string;
}

/** The details of a model that the page offers. */
export interface ModelDetails {
  name: string;
  kind: "encoder" | "decoder" | "encoder-decoder";
  generate: number; // most tokens that the model can generate; 0 if it cannot generate
  known: KnownHead[];
  examples: ExampleText[];
}

/** The indices of two corresponding words (or special tokens) in two texts. */
export type Pair = [first: number, second: number];

/** The differences in attention between two texts, per head. */
export interface Differences {
  words: number; // number of corresponding words
  changed: [first: string, second: string][];
  aligned: Partial<Record<Kind, { rows: Pair[]; columns: Pair[] }>>;
  heads: { head: string; difference: number; largest: number; words: [first: string, second: string] }[];
}

/** The server's reply: the data of a text, and a note about what was left out. */
export interface Answer extends TextData {
  id: string;
  note: string;
}

const KEPT = 64; // most maps in the cache
const LITTLE = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;

/** An error with the message of the server; status 0 if the server does not reply. */
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

/** Send a text to the server, which runs a model on it. */
export async function send(request: Request, signal?: AbortSignal): Promise<Answer> {
  const options = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(request), ...(signal ? { signal } : {}) };
  return (await (await asked("/api/texts", options)).json()) as Answer;
}

/** Fetch the details of a model. */
export const details = async (model: string): Promise<ModelDetails> => (await asked(`/api/models/${encodeURIComponent(model)}`, {})).json() as Promise<ModelDetails>;

/** Fetch the differences in attention between two texts that were sent, per head. */
export const differences = async (first: string, second: string, signal: AbortSignal): Promise<Differences> => (await asked(`/api/texts/${first}/differences/${second}`, { signal })).json() as Promise<Differences>;

/** The maps of a text, from the server. If the server no longer has the text, it is sent once more. */
export class Served implements MapSource {
  private readonly kept = new Map<string, Promise<Float32Array>>();
  private readonly influences = new Map<string, Promise<PackedInfluence>>();
  private readonly stop = new AbortController();

  constructor(private readonly request: Request) {}

  map(text: Text, head: string): Promise<Float32Array> {
    const found = this.kept.get(head) ?? this.fetched(text, head);
    this.kept.delete(head); // inserted again as the most recently used
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

  /** Abort the requests in progress. */
  close(): void {
    this.stop.abort();
  }

  private async fetched(text: Text, head: string): Promise<Float32Array> {
    const answer = await this.answered(`/api/texts/${text.id}/heads/${head}`);
    return fromUint16(numbers(await answer.arrayBuffer()));
  }

  /** The response to a request. If the server no longer has the text, it is sent once more. */
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
