/** The parts of a page around its views: links to sections, the mark of the current section, copy buttons. */
import type { Location } from "./address";

/** Make links to sections keep the state of the views in the address. Without scripts they are plain links. */
export function followSections(root: Document, address: Location): void {
  root.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest<HTMLAnchorElement>('a[href^="#"]') : null;
    const name = link?.getAttribute("href")?.slice(1) ?? "";
    if (!name || name.includes("=") || !reach(root, name)) return;
    event.preventDefault();
    address.go(name);
    link?.closest("details.menu")?.removeAttribute("open");
  });
  address.listen(({ section }) => section && reach(root, section));
}

/** Scroll to a section and move the focus there, so that Tab continues from it. Returns whether the section exists. */
export function reach(root: Document, name: string): boolean {
  const section = root.getElementById(name);
  if (!section) return false;
  section.scrollIntoView({ block: "start" });
  if (!section.matches("a, button, input, [tabindex]")) section.tabIndex = -1;
  section.focus({ preventScroll: true });
  return true;
}

/** Mark the current section in the list of sections. */
export function markSection(root: Document): void {
  const links = [...root.querySelectorAll<HTMLAnchorElement>("nav.side a")];
  const places = links.map((link) => root.getElementById(link.hash.slice(1)));
  if (!links.length) return;
  let waiting = false;
  const mark = (): void => {
    waiting = false;
    const line = innerHeight * 0.3;
    const at = places.reduce((last, place, i) => (place && place.getBoundingClientRect().top < line ? i : last), 0);
    links.forEach((link, i) => (i === at ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current")));
  };
  addEventListener("scroll", () => {
    if (!waiting) requestAnimationFrame(mark);
    waiting = true;
  }, { passive: true });
  mark();
}

/** Enable the buttons that copy the text of an element: `<button data-copy="signature" hidden>`. They stay hidden without scripts. */
export function copyButtons(root: Document): void {
  for (const button of root.querySelectorAll<HTMLButtonElement>("button[data-copy]")) {
    const source = root.getElementById(button.dataset["copy"]!);
    button.hidden = !source;
    button.addEventListener("click", async () => {
      const done = await copied(root, source!);
      button.textContent = done ? "Copied" : "Select it and copy";
      setTimeout(() => (button.textContent = "Copy"), 2_000);
    });
  }
}

async function copied(root: Document, source: HTMLElement): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(source.textContent ?? "");
    return true;
  } catch {
    getSelection()?.selectAllChildren(source); // without access to the clipboard, the text is at least selected
    return root.execCommand("copy");
  }
}
