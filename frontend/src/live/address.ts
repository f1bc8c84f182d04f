/** The state of the live page in its address, after `#`: `#text=…&model=mini&head=8-4&view=heatmap`. */
import type { Mode } from "../data/server";
import type { ViewName } from "../text/text-view";

/** The input of the form. */
export interface Asked {
  model: string;
  mode: Mode;
  text: string;
  second: string; // "" for no second text
  generate: number; // number of tokens to generate; 0 for none
}

/** The parts of the view's state that the address contains. */
export interface Chosen {
  heads?: string[];
  view?: ViewName;
  level?: "token" | "word";
  specials?: "show" | "hide" | "renormalise";
  measure?: string;
  layer?: string;
}

const MODES = ["one", "compare", "pair"] as const;
const VIEWS = ["lines", "heatmap", "influence"] as const;
const LEVELS = ["token", "word"] as const;
const SPECIALS = ["show", "hide", "renormalise"] as const;
const LONGEST = 4000; // most characters of the texts in an address

const among = <T extends string>(values: readonly T[], value: string | null): T | undefined => values.find((known) => known === value);

/** The state in an address. The form `?text=&second=&model=`, which programs use for links, is accepted too. */
export function readAddress(place: { hash: string; search: string }): { asked: Asked; chosen: Chosen } {
  const query = new URLSearchParams(place.search), hash = new URLSearchParams(place.hash.replace(/^#/, ""));
  const value = (name: string): string | null => hash.get(name) ?? query.get(name);
  const second = value("second") ?? "", steps = Number(value("generate"));
  const mode = among(MODES, value("mode")) ?? (second ? "pair" : "one");
  const asked: Asked = { model: value("model") ?? "", mode, text: value("text") ?? "", second, generate: Number.isSafeInteger(steps) && steps > 0 ? steps : 0 };
  const heads = value("head")?.split(/[,\s]+/).filter(Boolean), view = among(VIEWS, value("view")), level = among(LEVELS, value("level"));
  const specials = among(SPECIALS, value("specials")), measure = value("measure"), layer = value("layer");
  return {
    asked,
    chosen: { ...(heads?.length ? { heads } : {}), ...(view ? { view } : {}), ...(level ? { level } : {}), ...(specials ? { specials } : {}), ...(measure ? { measure } : {}), ...(layer ? { layer } : {}) },
  };
}

/** The address of a state; null if the texts are too long for an address. */
export function writeAddress(asked: Asked, chosen: Chosen): string | null {
  if (asked.text.length + asked.second.length > LONGEST) return null;
  const influence = chosen.view === "influence";
  const parts: Record<string, string | undefined> = {
    text: asked.text,
    mode: asked.mode === "one" ? undefined : asked.mode,
    second: asked.mode === "one" ? undefined : asked.second,
    generate: asked.generate ? String(asked.generate) : undefined,
    model: asked.model,
    head: chosen.heads?.join(","),
    view: chosen.view === "lines" ? undefined : chosen.view,
    level: chosen.level,
    specials: chosen.specials === "show" ? undefined : chosen.specials,
    measure: influence ? chosen.measure : undefined,
    layer: influence ? chosen.layer : undefined,
  };
  return `/live#${new URLSearchParams(Object.entries(parts).filter((part): part is [string, string] => Boolean(part[1])))}`;
}
