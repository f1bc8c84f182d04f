/** Hooks: maps that arrive one by one, the width that there is, the theme. */
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { RefObject } from "preact";
import type { MapSource, Text } from "./types";

type Arrived = Map<string, Float32Array | string>; // a map, or why there is none

/** The maps of a text's heads that have arrived so far, by head; a string says why one did not. Maps of an earlier text are never among them. */
export function useMaps(source: MapSource, text: Text, heads: readonly string[]): Arrived {
  const [, redraw] = useState(0);
  const kept = useRef<{ source: MapSource; text: Text; arrived: Arrived; asked: Set<string> } | null>(null);
  if (kept.current?.text !== text || kept.current.source !== source) kept.current = { source, text, arrived: new Map(), asked: new Set() };
  const current = kept.current;
  useLayoutEffect(() => {
    for (const head of heads) {
      if (current.asked.has(head)) continue;
      current.asked.add(head);
      const arrive = (result: Float32Array | string): void => {
        current.arrived.set(head, result);
        if (typeof result === "string") current.asked.delete(head); // asked again when it is chosen again
        if (kept.current === current) redraw((n) => n + 1);
      };
      source.map(text, head).then(arrive, (error: unknown) => arrive(String(error instanceof Error ? error.message : error)));
    }
  }, [current, heads.join(" ")]);
  return current.arrived;
}

/** The width in pixels of an element, followed as it changes; 0 before it is on the page. */
export function useWidth(element: RefObject<HTMLElement | null>): number {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const target = element.current;
    if (!target) return undefined;
    setWidth(Math.floor(target.clientWidth));
    const observer = new ResizeObserver(() => setWidth(Math.floor(target.clientWidth)));
    observer.observe(target);
    return () => observer.disconnect();
  }, []);
  return width;
}

/** A number that changes when the page turns light or dark, for what is painted and cannot follow a style sheet. */
export function useTheme(): number {
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const next = (): void => setTurn((n) => n + 1);
    const system = matchMedia("(prefers-color-scheme: dark)");
    const page = new MutationObserver(next);
    system.addEventListener("change", next);
    page.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"], subtree: true });
    return () => {
      system.removeEventListener("change", next);
      page.disconnect();
    };
  }, []);
  return turn;
}
