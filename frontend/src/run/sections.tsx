/** The sections of a run with their headings, for notebooks, which have no page around the views. */
import type { JSX } from "preact";
import type { Run } from "../types";

const CURVES: Record<string, string> = { clark2: "Surface patterns", clark4: "Focus" };
const CONTESTS: Record<string, string> = { relations: "Heads as parsers: dependency relations", coreference: "Heads as resolvers: coreference", pronouns: "Heads as resolvers: pronouns" };

/** One section per view of a run: a heading, and an element with the `data-view` of the view. */
export function Sections({ run }: { run: Run }): JSX.Element {
  const kinds = (name: string): number => run.curves.filter((figure) => figure.name === name).length;
  return (
    <>
      <section class="hs-part"><h2>Every head</h2><div data-view="explorer" /></section>
      {run.types && <section class="hs-part"><h2>Types of heads</h2><div data-view="types" /></section>}
      {run.curves.map(({ name, kind }) => (
        <section class="hs-part"><h2>{CURVES[name] ?? name}{kinds(name) > 1 && `: ${kind} attention`}</h2><div data-view="curves" data-figure={name} data-kind={kind} /></section>
      ))}
      {run.contests.map(({ measure }) => <section class="hs-part"><h2>{CONTESTS[measure] ?? measure}</h2><div data-view="contest" data-measure={measure} /></section>)}
      {run.map && <section class="hs-part"><h2>Which heads are alike</h2><div data-view="map" />{run.tree && <div data-view="tree" />}</section>}
    </>
  );
}
