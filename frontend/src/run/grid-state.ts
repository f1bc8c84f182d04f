/** The state of the grid of heads, and its conversion from and to values of an address. */
import { first, keyOf } from "../data/quantity";
import type { Run } from "../types";

export interface GridState {
  quantity: string; // "tokens/to_sep"
  slice: string; // name of the slice; "" for all documents
  mode: "number" | "map";
  scale: "value" | "above";
  order: "model" | "value";
  least: number | null; // least value that passes; null for no limit
  only: boolean; // only heads above the baseline, or below it
  layers: string; // "3, 5-8"; "" for all
  text: number; // index into `stacks`
}

/**
 * The state in the values of an address. Values that are missing, or that the run does not have, get their defaults.
 * The default quantity is `begin`.
 */
export function gridState(run: Run, values: Record<string, string> = {}, begin = ""): GridState {
  const { quantity = "", slice = "", least = "", layers = "" } = values, text = Number(values["text"]);
  const known = (key: string): boolean => run.quantities.some((other) => keyOf(other) === key);
  return {
    quantity: known(quantity) ? quantity : known(begin) ? begin : first(run.quantities),
    slice: run.slices?.values.some(({ name }) => name === slice) ? slice : "",
    mode: values["show"] === "map" ? "map" : "number",
    scale: values["colour"] === "above" ? "above" : "value",
    order: values["order"] === "value" ? "value" : "model",
    least: least !== "" && Number.isFinite(Number(least)) ? Number(least) : null,
    only: values["only"] === "1",
    layers,
    text: Number.isInteger(text) && text > 0 && text <= run.stacks.length ? text - 1 : 0,
  };
}

/** A state as values of an address; "" for defaults. */
export function gridValues(run: Run, state: GridState, begin = ""): Record<string, string> {
  const start = gridState(run, {}, begin);
  return {
    quantity: state.quantity === start.quantity ? "" : state.quantity,
    slice: state.slice,
    show: state.mode === "map" ? "map" : "",
    colour: state.scale === "above" ? "above" : "",
    order: state.order === "value" ? "value" : "",
    least: state.least === null ? "" : String(Number(state.least.toPrecision(4))),
    only: state.only ? "1" : "",
    layers: state.layers,
    text: state.text ? String(state.text + 1) : "",
  };
}
