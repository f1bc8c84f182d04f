/** The frame of a figure: title, caption, signature, and buttons that save it. */
import type { ComponentChildren, JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { download, pngFile, svgFile } from "./save";

/**
 * A figure with its caption, and buttons that save it as SVG, PNG and CSV. The saved SVG is the first <svg> inside,
 * or the result of `svg`.
 */
export function Frame(props: {
  name: string;
  title?: string;
  caption: string; // includes n
  signature: string;
  brief?: boolean; // show only the end of the signature, as on pages that show all of it elsewhere; saved files have all of it
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
          {props.brief || document.getElementById("signature") ? props.signature.replace(/\S*\|([^|\s]+)/g, "$1") : props.signature}
        </span>
      </figcaption>
    </figure>
  );
}
