/** The small parts that all views are made of. */
import type { ComponentChildren, JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { download, pngFile, svgFile } from "./save";

let ids = 0;

/** An id that no other element has: Preact's own begin anew in every root, and a page has several. */
export function useUnique(): string {
  return useState(() => `hs-${(ids += 1)}`)[0];
}

/** A figure with its caption, and buttons that save it as SVG, PNG and CSV. The first <svg> inside is what is saved, unless `svg` gives another. */
export function Frame(props: {
  name: string;
  title?: string;
  caption: string; // says n
  signature: string;
  brief?: boolean; // the signature's end will do here: the page has it whole, and saved files do
  csv: () => string;
  svg?: () => SVGSVGElement | null;
  children: ComponentChildren;
}): JSX.Element {
  const body = useRef<HTMLDivElement>(null);
  const [trouble, setTrouble] = useState("");
  const file = (): string => {
    const svg = props.svg ? props.svg() : (body.current?.querySelector("svg") ?? null);
    if (!svg) throw new Error("there is nothing to save yet");
    return svgFile(svg, `${props.title ? `${props.title}. ` : ""}${props.caption} ${props.signature}`);
  };
  const save = async (kind: "svg" | "png" | "csv"): Promise<void> => {
    try {
      const name = `${props.name.replace(/[^\w.-]+/g, "-")}.${kind}`;
      if (kind === "csv") download(name, props.csv(), "text/csv");
      else if (kind === "svg") download(name, file(), "image/svg+xml");
      else download(name, await pngFile(file()));
      setTrouble("");
    } catch (error) {
      setTrouble(String(error instanceof Error ? error.message : error));
    }
  };
  return (
    <figure class="hs-frame" data-figure={props.name}>
      <div class="hs-frame-head">
        {props.title && <h3 class="hs-title">{props.title}</h3>}
        <div class="hs-save" role="group" aria-label={`save ${props.title ?? props.name}`}>
          {(["svg", "png", "csv"] as const).map((kind) => (
            <button type="button" class="hs-small" onClick={() => void save(kind)} aria-label={`save ${props.title ?? props.name} as ${kind.toUpperCase()}`}>
              {kind.toUpperCase()}
            </button>
          ))}
        </div>
      </div>
      <div ref={body}>{props.children}</div>
      {trouble && <p class="hs-trouble" role="alert">{trouble}</p>}
      <figcaption>
        {props.caption}{" "}
        <span class="hs-signature" title={props.signature}>
          {props.brief ? props.signature.replace(/\S*\|([^|\s]+)/g, "$1") : props.signature}
        </span>
      </figcaption>
    </figure>
  );
}

/** A button that stays where it is, and keeps the focus, while there is nothing for it to do. */
export function Button(props: { idle: boolean; onClick?: () => void; label?: string; type?: "button" | "submit"; children: ComponentChildren }): JSX.Element {
  const onClick = (event: Event): void => (props.idle ? event.preventDefault() : props.onClick?.());
  return <button type={props.type ?? "button"} aria-disabled={props.idle} aria-label={props.label} onClick={onClick}>{props.children}</button>;
}

export function Select<T extends string>(props: { label: string; value: T; options: readonly (readonly [T, string])[] | { group: string; options: readonly (readonly [T, string])[] }[]; onChange: (value: T) => void }): JSX.Element {
  const id = useUnique();
  const option = ([value, text]: readonly [T, string]): JSX.Element => <option value={value} selected={value === props.value}>{text}</option>;
  return (
    <span class="hs-field">
      <label for={id}>{props.label}</label>
      <select id={id} value={props.value} onChange={(event) => props.onChange(event.currentTarget.value as T)}>
        {props.options.map((item) => ("group" in item ? <optgroup label={item.group}>{item.options.map(option)}</optgroup> : option(item)))}
      </select>
    </span>
  );
}

export function Slider(props: { label: string; value: number; min: number; max: number; step: number; text?: string; onChange: (value: number) => void }): JSX.Element {
  const id = useUnique();
  return (
    <span class="hs-field">
      <label for={id}>{props.label}</label>
      <input id={id} type="range" min={props.min} max={props.max} step={props.step} value={props.value} onInput={(event) => props.onChange(Number(event.currentTarget.value))} />
      <output for={id}>{props.text ?? props.value}</output>
    </span>
  );
}

export function Toggle(props: { label: string; value: boolean; onChange: (value: boolean) => void }): JSX.Element {
  const id = useUnique();
  return (
    <span class="hs-field">
      <input id={id} type="checkbox" checked={props.value} onChange={(event) => props.onChange(event.currentTarget.checked)} />
      <label for={id}>{props.label}</label>
    </span>
  );
}

/** A number as the tables print it: two decimals, or a dash. */
export const show = (value: number | null | undefined, digits = 2): string => (value === null || value === undefined || Number.isNaN(value) ? "–" : value.toFixed(digits));

/** A value with its interval: `0.46 [0.45 0.47]`. */
export const interval = (value: number | null, low: number | null, high: number | null): string =>
  value === null ? "–" : low === null || high === null ? show(value) : `${show(value)} [${show(low)} ${show(high)}]`;
