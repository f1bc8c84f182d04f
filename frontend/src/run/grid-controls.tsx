/** Controls of the grid of heads: what it shows, the order, and the filters. */
import type { JSX } from "preact";
import type { Head } from "../data/heads";
import { present, show } from "../data/numbers";
import { plainText } from "../data/plain-text";
import { ruleOf } from "../data/quantity";
import type { Quantity, Run } from "../types";
import { Select, Slider, Switch, Toggle, useUnique } from "../ui/controls";
import { layersIn, side } from "./grid-filter";
import type { GridState } from "./grid-state";

/** The controls. `shown` are the values that the slider filters. */
export function GridControls(props: { run: Run; heads: readonly { head: Head }[]; quantity: Quantity | undefined; shown: (number | null)[]; state: GridState; onChange: (part: Partial<GridState>) => void }): JSX.Element {
  const { run, quantity, state, onChange: change } = props;
  const layers = useUnique();
  const known = present(props.shown);
  const low = Math.min(...known), high = Math.max(...known);
  const based = quantity ? present(quantity.baseline).length > 0 : false;
  return (
    <>
      {quantity && run.stacks.length > 0 && <Switch label="show" value={state.mode} options={[["number", "number"], ["map", "map"]]} onChange={(mode) => change({ mode })} />}
      {state.mode === "map" && run.stacks.length > 1 && (
        <Select label="text" value={String(state.text)} options={run.stacks.map((stack, i) => [String(i), `${i + 1}: ${plainText(run.texts[stack.text]!)}`] as const)} onChange={(text) => change({ text: Number(text) })} />
      )}
      {based && state.mode === "number" && <Switch label="colour" value={state.scale} options={[["value", "value"], ["above", "above baseline"]]} onChange={(scale) => change({ scale, least: null })} />}
      {quantity && <Switch label="order" value={state.order} options={[["model", "model"], ["value", "by value"]]} onChange={(order) => change({ order })} />}
      {known.length > 1 && high > low && (
        <Slider label="at least" value={state.least ?? low} min={low} max={high} step={(high - low) / 100} text={show(state.least ?? low)} onChange={(least) => change({ least: least > low ? least : null })} />
      )}
      {based && <Toggle label={`only ${side(quantity!)} ${ruleOf(run, quantity!)}`} value={state.only} onChange={(only) => change({ only })} />}
      <span class="hs-field">
        <label for={layers}>layers</label>
        <input id={layers} class="hs-layers" type="text" placeholder="all, or 3, 5-8" value={state.layers} onInput={(event) => change({ layers: event.currentTarget.value })} aria-describedby={`${layers}-note`} />
      </span>
      <span id={`${layers}-note`} role="status" class="hs-faint">{layersIn(state.layers, props.heads).trouble}</span>
    </>
  );
}
