/** What stands around the views of a page: links to sections that keep the state, the section in view, buttons that copy. */
import type { Location } from "./address";

/** Links to sections of the page keep what the address says of the views; without scripts they are plain links. */
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

/** Go to a section, and put the focus there, so that Tab moves on from it. */
export function reach(root: Document, name: string): boolean {
  const section = root.getElementById(name);
  if (!section) return false;
  section.scrollIntoView({ block: "start" });
  if (!section.matches("a, button, input, [tabindex]")) section.tabIndex = -1;
  section.focus({ preventScroll: true });
  return true;
}

/** Mark in the list of sections the one that is read. */
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

/** Buttons that copy the text of an element: `<button data-copy="signature" hidden>`. They show themselves, since they need a script. */
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
    getSelection()?.selectAllChildren(source); // where the clipboard is closed to pages, the text is at least selected
    return root.execCommand("copy");
  }
}
