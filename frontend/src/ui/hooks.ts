/** Hooks: the width of an element, the theme of the page. */
import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import type { RefObject } from "preact";

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
