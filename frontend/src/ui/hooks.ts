/** Hooks for the width of an element and for the theme of the page. */
import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import type { RefObject } from "preact";

/** The current width of an element in pixels; 0 before it is on the page. */
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

/** A number that changes with the theme of the page, for canvases, which do not follow style sheets. */
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
