/** A notebook widget for anywidget, drawn from the model's `data`. Maps are fetched from the kernel one by one. */
import { render as paint } from "preact";
import { fromUint16, unpack } from "./data/maps";
import { draw, mountRun } from "./main";
import { TextView } from "./text/text-view";
import type { MapSource, PackedInfluence, Run, Text, TextData } from "./types";

/** The parts of anywidget's model that are used. */
export interface Model {
  get(name: string): unknown;
  set(name: string, value: unknown): void;
  save_changes(): void;
  send(content: unknown): void;
  on(event: "msg:custom", handler: (content: unknown, buffers: DataView[]) => void): void;
  off(event: "msg:custom", handler: (content: unknown, buffers: DataView[]) => void): void;
}

interface Reply {
  kind: "map" | "influence";
  id: string;
  influence?: PackedInfluence;
  trouble?: string;
}

const PATIENCE = 60_000; // milliseconds; a kernel may be busy with another cell

/** Maps from the data or else from the kernel. Each view has a unique name in its requests, so that it receives only its replies. */
export class KernelMaps implements MapSource {
  private readonly name = `${Date.now()}-${Math.random()}`;
  private readonly waiting = new Map<string, (reply: Reply, buffer?: DataView) => void>();
  private count = 0;

  constructor(private readonly model: Model, private readonly data: TextData) {
    model.on("msg:custom", this.receive);
  }

  async map(_: Text, head: string): Promise<Float32Array> {
    const packed = this.data.maps?.[head];
    if (packed !== undefined) return unpack(packed);
    const { reply, buffer } = await this.ask("map", { head }, PATIENCE);
    if (!buffer) throw new Error(reply.trouble ?? "the kernel sent no map");
    return fromUint16(new Uint16Array(buffer.buffer.slice(buffer.byteOffset, buffer.byteOffset + buffer.byteLength)));
  }

  async influence(_: Text, measure: string): Promise<PackedInfluence> {
    const { reply } = await this.ask("influence", { measure }, 10 * PATIENCE);
    if (!reply.influence) throw new Error(reply.trouble ?? "the kernel sent nothing");
    return reply.influence;
  }

  private ask(kind: Reply["kind"], what: Record<string, string>, patience: number): Promise<{ reply: Reply; buffer: DataView | undefined }> {
    const id = `${this.name}/${(this.count += 1)}`;
    return new Promise((done) => {
      const late = setTimeout(() => this.receive({ kind, id, trouble: "the kernel does not answer; it may be busy, or not be running" }, []), patience);
      this.waiting.set(id, (reply, buffer) => {
        clearTimeout(late);
        done({ reply, buffer });
      });
      this.model.send({ kind, id, ...what });
    });
  }

  close(): void {
    this.model.off("msg:custom", this.receive);
    for (const id of [...this.waiting.keys()]) this.receive({ kind: "map", id, trouble: "the view was closed" }, []);
  }

  private readonly receive = (content: unknown, buffers: DataView[]): void => {
    const reply = content as Reply;
    const wake = reply?.kind === "map" || reply?.kind === "influence" ? this.waiting.get(reply.id) : undefined;
    if (!wake) return;
    this.waiting.delete(reply.id);
    wake(reply, buffers[0]);
  };
}

/** The theme of the background behind an element, whatever the system prefers; null if there is no background. */
export function groundOf(element: Element): "light" | "dark" | null {
  for (let at: Element | null = element; at; at = at.parentElement) {
    const [r = 0, g = 0, b = 0, alpha = 1] = (getComputedStyle(at).backgroundColor.match(/[\d.]+/g) ?? []).map(Number);
    if (alpha > 0.5) return 0.299 * r + 0.587 * g + 0.114 * b > 127 ? "light" : "dark";
  }
  return null;
}

/** Keep the theme of a view equal to that of the page. Returns a function that stops this. */
function follow(page: Element, view: HTMLElement): () => void {
  const turn = (): void => {
    const ground = groundOf(page);
    if (ground) view.dataset["theme"] = ground;
    else delete view.dataset["theme"];
  };
  const watch = new MutationObserver(turn);
  for (const element of [document.documentElement, document.body]) watch.observe(element, { attributes: true, attributeFilter: ["class", "style", "data-jp-theme-light", "data-vscode-theme-kind", "theme", "data-theme"] });
  const late = setTimeout(turn, 500); // style sheets of a new theme may load after its name is set
  turn();
  return () => {
    clearTimeout(late);
    watch.disconnect();
  };
}

/** Hide the fallback pages of a widget. Returns a function that shows them again. */
function hideFallback(name: unknown): () => void {
  const pages = typeof name === "string" && name ? [...document.querySelectorAll<HTMLElement>(`[data-fallback="${CSS.escape(name)}"]`)] : [];
  for (const page of pages) page.hidden = true;
  return () => {
    for (const page of pages) page.hidden = false;
  };
}

/** Draw a model's data into an element, isolated from the styles and ids of the page. Returns a function that removes it. */
export function render({ model, el }: { model: Model; el: HTMLElement }): () => void {
  const data = model.get("data") as { text?: TextData; run?: Run };
  const host = el.appendChild(document.createElement("div"));
  const root = host.attachShadow({ mode: "open" });
  const view = root.appendChild(document.createElement("div"));
  const forget = follow(el, view);
  const showFallback = hideFallback(model.get("fallback"));
  let close = (): void => {};
  if (data.text) {
    const source = new KernelMaps(model, data.text);
    draw(view, <TextView data={data.text} source={source} />);
    close = () => source.close();
  } else if (data.run) {
    view.dataset["view"] = "run";
    ({ close } = mountRun(root, data.run, {
      head: (model.get("head") as string | null) ?? null,
      onSelect: (head) => {
        model.set("head", head);
        model.save_changes();
      },
    }));
  }
  return () => {
    close();
    forget();
    showFallback();
    paint(null, view);
    host.remove();
  };
}

export default { render };
