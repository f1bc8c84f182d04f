/** The entry points: a page with embedded data (report, view, web app) and a notebook widget. */
import { render } from "preact";
import type { ComponentChild } from "preact";
import { themeSheet } from "./charts/colour";
import { Compare } from "./comparison/comparison";
import { findHead } from "./data/heads";
import { Embedded } from "./data/maps";
import { Location, parse } from "./page/address";
import { copyButtons, followSections, markSection, reach } from "./page/furniture";
import { enhanceTables } from "./page/tables";
import { ContestFigure } from "./run/contest";
import { Curves } from "./run/curves";
import { Explorer } from "./run/explorer";
import type { GridState } from "./run/grid-state";
import { gridState, gridValues } from "./run/grid-state";
import { HeadMapView } from "./run/head-map";
import { HeadTypes } from "./run/head-types";
import { HeadTreeView } from "./run/head-tree";
import { Sections } from "./run/sections";
import type { LiveData } from "./live/live";
import { Live } from "./live/live";
import type { SentencesData } from "./live/sentences";
import { Sentences } from "./live/sentences";
import type { SentenceData } from "./text/sentence";
import { Sentence } from "./text/sentence";
import { TextView } from "./text/text-view";
import type { Comparison, MapSource, Run, TextData } from "./types";
import sheet from "./style.css";

export { chosen, groups, links, unpack, wordMap } from "./data/maps";
export { default } from "./widget";

/** Render content into an element, with the style sheet. Returns a function that removes the content. */
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

/** The maps embedded in a run's page: the maps of all heads for whole texts, and the map of one head for examples. */
export function runSource(run: Run): MapSource {
  return new Embedded((text) => {
    const number = run.texts.indexOf(text);
    const own = run.examples.filter((example) => example.text === number && example.map !== undefined).map((example) => [example.head, example.map!] as const);
    return { ...Object.fromEntries(own), ...run.stacks.find((stack) => stack.text === number)?.maps };
  });
}

export const textSource = (data: TextData): MapSource => new Embedded(() => data.maps, data.influence?.held);

/** The actions on the views of a run after they are drawn. */
export interface Mounted {
  jump: (head: string) => void; // select a head and go to its card
  reach: () => void; // go to the card of the selected head, or to the message that the head does not exist
  show: (values: Record<string, string>) => void; // show the state in the values of an address
  close: () => void;
}

interface RunOptions {
  head?: string | null;
  values?: Record<string, string>; // values of the address: the state of the grid and of the table of types
  onSelect?: (head: string) => void;
  onState?: (values: Record<string, string>) => void; // called with the changed state of the grid or of the table of types
}

/**
 * Draw all views of a run, each in the element with its `data-view` ("run" stands for all views, with headings).
 * The views share one selected head.
 */
export function mountRun(root: ParentNode, run: Run, options: RunOptions = {}): Mounted {
  for (const element of root.querySelectorAll<HTMLElement>("[data-view=run]")) draw(element, <Sections run={run} />);
  const source = runSource(run), explorer = root.querySelector<HTMLElement>("[data-view=explorer]");
  let head = findHead(options.head || explorer?.dataset["head"] || "", run.sites) ?? null;
  let missing = options.head && !head ? options.head : "";
  const begin = explorer?.dataset["quantity"];
  let values = options.values ?? {}, grid = gridState(run, values, begin);
  const onGrid = (state: GridState): void => options.onState?.(gridValues(run, state, begin));
  const redraw = (): void => {
    for (const element of root.querySelectorAll<HTMLElement>("[data-view]")) {
      const { view, figure, kind, measure } = element.dataset;
      if (view === "explorer") draw(element, <Explorer run={run} source={source} head={head} missing={missing} onSelect={select} grid={grid} onGrid={onGrid} />);
      if (view === "map" && run.map) draw(element, <HeadMapView run={run} selected={head} onSelect={jump} />);
      if (view === "types") draw(element, <HeadTypes run={run} onSelect={jump} values={values} onState={(state) => options.onState?.(state)} />);
      if (view === "tree" && run.tree) draw(element, <HeadTreeView run={run} selected={head} onSelect={jump} />);
      const curves = run.curves.find((f) => f.name === figure && f.kind === kind);
      if (view === "curves" && curves) draw(element, <Curves run={run} figure={curves} onSelect={jump} />);
      const contest = run.contests.find((c) => c.measure === measure);
      if (view === "contest" && contest) draw(element, <ContestFigure run={run} contest={contest} onSelect={jump} />);
    }
  };
  const select = (name: string): void => {
    [head, missing] = [name, ""];
    options.onSelect?.(name);
    redraw();
  };
  const jump = (called: string): void => {
    const name = findHead(called, run.sites);
    if (name !== undefined) select(name);
    else {
      [head, missing] = [null, called];
      redraw();
    }
    reach();
    target()?.focus({ preventScroll: true });
  };
  const target = (): HTMLElement | null => root.querySelector("[data-view=explorer] .hs-missing") ?? root.querySelector("[data-view=explorer] .hs-card");
  const reach = (): void => target()?.scrollIntoView({ block: missing ? "center" : "start" });
  const show = (asked: Record<string, string>): void => {
    values = asked;
    grid = gridState(run, values, begin);
    redraw();
  };
  redraw();
  return { jump, reach, show, close: () => root.querySelectorAll<HTMLElement>("[data-view]").forEach((element) => render(null, element)) };
}

interface PageData {
  run?: Run;
  head?: string | null;
  text?: TextData;
  comparison?: Comparison;
  served?: string; // the address of the run on a server, which has an address per head
  live?: LiveData;
  sentences?: SentencesData;
}

/** Draw the views of a page with embedded data: `<script type="application/json" id="headscope-data">`. */
export function start(): void {
  const holder = document.getElementById("headscope-data");
  if (!holder) return;
  const data = JSON.parse(holder.textContent ?? "{}") as PageData;
  const address = new Location();
  for (const element of document.querySelectorAll<HTMLElement>("[data-view=sentence]")) {
    element.replaceChildren(); // remove the plain words, which are for pages without scripts
    draw(element, <Sentence data={JSON.parse(element.dataset["sentence"]!) as SentenceData} small={"small" in element.dataset} />);
  }
  if (data.run) startRun(data, data.run, address);
  copyButtons(document);
  enhanceTables(document, address);
  markSection(document);
  followSections(document, address);
  const { section } = address.address;
  if (section) settled(() => reach(document, section));
  for (const element of document.querySelectorAll<HTMLElement>("[data-view=text]")) {
    if (data.text) draw(element, <TextView data={data.text} source={textSource(data.text)} />);
  }
  for (const element of document.querySelectorAll<HTMLElement>("[data-view=compare]")) {
    if (data.comparison) draw(element, <Compare data={data.comparison} />);
  }
  for (const element of document.querySelectorAll<HTMLElement>("[data-view=live]")) {
    if (data.live) draw(element, <Live {...data.live} />);
  }
  for (const element of document.querySelectorAll<HTMLElement>("[data-view=sentences]")) {
    if (data.sentences) draw(element, <Sentences {...data.sentences} sourceOf={textSource} address={address} />);
  }
}

/** Draw the views of a run, with the selected head and the state of the grid in the address. */
function startRun(data: PageData, run: Run, address: Location): void {
  const { values, section } = address.address;
  const served = (head: string): string => `${data.served}/heads/${head}`; // a server has an address per head
  const views = mountRun(document, run, {
    head: values["head"] ?? data.head ?? null,
    values,
    onSelect: (head) => (data.served ? address.set({ head: "" }, served(head)) : address.set({ head })),
    onState: (state) => address.set(state),
  });
  if (!section && (values["head"] || (data.served && data.head))) settled(views.reach);
  let known = values;
  address.listen(({ values }) => {
    views.show(values);
    if (values["head"] && values["head"] !== known["head"]) views.jump(values["head"]);
    known = values;
  });
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest<HTMLAnchorElement>('a[href^="#head="]') : null;
    const head = link && parse(link.getAttribute("href")!).values["head"];
    if (!head) return;
    event.preventDefault();
    if (!data.served) address.go("", { head });
    views.jump(head);
  });
}

/** Run an action now, and again when the views have measured their widths. */
function settled(action: () => void): void {
  action();
  requestAnimationFrame(() => requestAnimationFrame(action));
}
