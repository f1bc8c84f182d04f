/** The ways in: a page with data inside (report, view, web app) and a notebook's widget. */
import { render } from "preact";
import type { ComponentChild } from "preact";
import { themeSheet } from "./charts/colour";
import { Compare } from "./comparison/comparison";
import { findHead } from "./data/heads";
import { Embedded } from "./data/maps";
import { ContestFigure } from "./run/contest";
import { Curves } from "./run/curves";
import { Explorer } from "./run/explorer";
import { HeadMapView } from "./run/head-map";
import { HeadTypes } from "./run/head-types";
import { HeadTreeView } from "./run/head-tree";
import { Sections } from "./run/sections";
import type { LiveData } from "./live/live";
import { Live } from "./live/live";
import { TextView } from "./text/text-view";
import type { Comparison, MapSource, Run, TextData } from "./types";
import sheet from "./style.css";

export { chosen, groups, links, unpack, wordMap } from "./data/maps";
export { default } from "./widget";

/** Draw into an element that brings its own style, so that several views on one page do not disturb each other. */
export function draw(element: HTMLElement, content: ComponentChild): () => void {
  element.classList.add("hs");
  render(
    <>
      <style>{themeSheet() + sheet}</style>
      {content}
    </>,
    element,
  );
  return () => render(null, element);
}

/** The maps that a run's page holds: those of whole texts, and those of examples, of one head each. */
export function runSource(run: Run): MapSource {
  return new Embedded((text) => {
    const number = run.texts.indexOf(text);
    const own = run.examples.filter((example) => example.text === number && example.map !== undefined).map((example) => [example.head, example.map!] as const);
    return { ...Object.fromEntries(own), ...run.stacks.find((stack) => stack.text === number)?.maps };
  });
}

export const textSource = (data: TextData): MapSource => new Embedded(() => data.maps, data.influence?.held);

/** What can be done to the views of a run once they are drawn. */
export interface Mounted {
  jump: (head: string) => void; // choose a head and go to its card
  reach: () => void; // go to the card of the chosen one
  close: () => void;
}

/** All the views of a run, each in the element that asks for it by `data-view` ("run": all of them, with headings); they share one chosen head. */
export function mountRun(root: ParentNode, run: Run, options: { head?: string | null; onSelect?: (head: string) => void } = {}): Mounted {
  for (const element of root.querySelectorAll<HTMLElement>("[data-view=run]")) draw(element, <Sections run={run} />);
  const source = runSource(run);
  let head = (options.head && findHead(options.head, run.sites)) || null;
  const redraw = (): void => {
    for (const element of root.querySelectorAll<HTMLElement>("[data-view]")) {
      const { view, figure, kind, measure } = element.dataset;
      if (view === "explorer") draw(element, <Explorer run={run} source={source} head={head} onSelect={select} />);
      if (view === "map" && run.map) draw(element, <HeadMapView run={run} selected={head} onSelect={jump} />);
      if (view === "types") draw(element, <HeadTypes run={run} onSelect={jump} />);
      if (view === "tree" && run.tree) draw(element, <HeadTreeView run={run} selected={head} onSelect={jump} />);
      const curves = run.curves.find((f) => f.name === figure && f.kind === kind);
      if (view === "curves" && curves) draw(element, <Curves run={run} figure={curves} onSelect={jump} />);
      const contest = run.contests.find((c) => c.measure === measure);
      if (view === "contest" && contest) draw(element, <ContestFigure run={run} contest={contest} onSelect={jump} />);
    }
  };
  const select = (name: string): void => {
    head = name;
    options.onSelect?.(name);
    redraw();
  };
  const jump = (called: string): void => {
    const name = findHead(called, run.sites);
    if (name === undefined) return;
    select(name);
    reach();
    card()?.focus({ preventScroll: true });
  };
  const card = (): HTMLElement | null => root.querySelector("[data-view=explorer] .hs-card");
  const reach = (): void => card()?.scrollIntoView({ block: "start" });
  redraw();
  return { jump, reach, close: () => root.querySelectorAll<HTMLElement>("[data-view]").forEach((element) => render(null, element)) };
}

interface PageData {
  run?: Run;
  head?: string | null;
  text?: TextData;
  comparison?: Comparison;
  served?: string; // the address of the run, on a server that has one for every head
  live?: LiveData;
}

/** The head that an address such as `report.html#head=8-4` names. */
function headIn(hash: string): string | null {
  try {
    return /^#head=(.+)$/.exec(decodeURIComponent(hash))?.[1] ?? null;
  } catch {
    return null; // an address that cannot be read names none
  }
}

/** A page that holds its data: `<script type="application/json" id="headscope-data">`. */
export function start(): void {
  const holder = document.getElementById("headscope-data");
  if (!holder) return;
  const data = JSON.parse(holder.textContent ?? "{}") as PageData;
  if (data.run) {
    const named = headIn(location.hash);
    const { jump, reach } = mountRun(document, data.run, {
      head: named ?? data.head ?? null,
      // The frame of a notebook has no address that could change.
      onSelect: (head) => location.protocol !== "about:" && history.replaceState(null, "", data.served ? `${data.served}/heads/${head}` : `#head=${head}`),
    });
    if (named || (data.served && data.head)) {
      reach();
      requestAnimationFrame(() => requestAnimationFrame(reach)); // again, when the views above it have found their width
    }
    const follow = (address: string): void => {
      const head = headIn(address);
      if (head) jump(head);
    };
    addEventListener("hashchange", () => follow(location.hash));
    // A link to the head that the address names already changes nothing that one could be told of.
    document.addEventListener("click", (event) => {
      const link = event.target instanceof Element ? event.target.closest("a") : null;
      if (link?.getAttribute("href")?.startsWith("#head=") && link.hash === location.hash) follow(link.hash);
    });
  }
  for (const element of document.querySelectorAll<HTMLElement>("[data-view=text]")) {
    if (data.text) draw(element, <TextView data={data.text} source={textSource(data.text)} />);
  }
  for (const element of document.querySelectorAll<HTMLElement>("[data-view=compare]")) {
    if (data.comparison) draw(element, <Compare data={data.comparison} />);
  }
  for (const element of document.querySelectorAll<HTMLElement>("[data-view=live]")) {
    if (data.live) draw(element, <Live {...data.live} />);
  }
}
