/** The types of heads: a table of all heads with a label, which can be sorted and filtered; and the labels of one head. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { allHeads } from "../data/heads";
import { show, valueAndInterval } from "../data/numbers";
import type { HeadLabel, Run } from "../types";
import { Select, useUnique } from "../ui/controls";
import { csvFile, download } from "../ui/save";

const COLUMNS = ["head", "label", "value", "baseline", "survives"] as const;
type Column = (typeof COLUMNS)[number];
const TITLES: Record<Column, string> = { head: "head", label: "label", value: "value [95% interval]", baseline: "baseline", survives: "survives" };

/** A label as in the tables: `syntactic: obj`. */
export const named = ({ type, what }: HeadLabel): string => (what ? `${type}: ${what}` : type);
const percent = (share: number | null): string => (share === null ? "–" : `${Math.round(share * 100)}%`);
const numbers = (label: HeadLabel): string => valueAndInterval(label.value, label.low, label.high);
const sized = (label: HeadLabel): string => `${label.about}; baseline ${show(label.baseline)}, n = ${label.n.toLocaleString("en")}, ${label.documents} documents; holds in ${percent(label.survives)} of the samples of documents`;

/** The labels of one head, most informative first. */
export function Labels({ run, at }: { run: Run; at: number }): JSX.Element | null {
  const labels = run.types?.labels.filter(({ head }) => head === at) ?? [];
  if (!run.types) return null;
  if (!labels.length) return <p class="hs-about">No label of this head is significant.</p>;
  return (
    <ul class="hs-labels" aria-label="labels">
      {labels.map((label) => (
        <li class="hs-chip" title={sized(label)}>
          <b>{named(label)}</b> <span>{numbers(label)}, baseline {show(label.baseline)}</span>
        </li>
      ))}
    </ul>
  );
}

interface TypesState {
  type: string; // "" for all
  find: string;
  by: Column;
  down: boolean;
}

/** The state of the table in the values of an address. */
function typesState(run: Run, values: Record<string, string>): TypesState {
  const { type = "", "find.types": find = "", "sort.types": sort = "" } = values, by = COLUMNS[Math.abs(Number(sort)) - 1];
  return { type: run.types?.labels.some((label) => label.type === type) ? type : "", find, by: by ?? "head", down: by !== undefined && sort.startsWith("-") };
}

/** The table of heads with a label. `values` are from the address of the page; `onState` is called with changes. */
export function HeadTypes({ run, onSelect, values, onState }: { run: Run; onSelect: (head: string) => void; values: Record<string, string>; onState: (values: Record<string, string>) => void }): JSX.Element | null {
  const [state, setState] = useState(() => typesState(run, values));
  useEffect(() => setState(typesState(run, values)), [values]); // the address changed
  const { type, find } = state, order = state;
  const box = useUnique();
  const change = (part: Partial<TypesState>): void => {
    const next = { ...state, ...part };
    setState(next);
    onState({ type: next.type, "find.types": next.find, "sort.types": next.by === "head" && !next.down ? "" : `${next.down ? "-" : ""}${COLUMNS.indexOf(next.by) + 1}` });
  };
  if (!run.types) return <p class="hs-about">The states of this run cannot be read: there are no labels without them.</p>;
  const heads = allHeads(run.sites), all = run.types.labels;
  const types = [...new Set(all.map((label) => label.type))];
  const count = (name: string): number => new Set(all.filter((label) => label.type === name).map(({ head }) => head)).size;
  const rows = heads.flatMap((_, at) => {
    const labels = all.filter((label) => label.head === at);
    const lead = labels.find((label) => !type || label.type === type);
    return lead ? [{ at, lead, rest: labels.filter((label) => label !== lead) }] : [];
  });
  const key = ({ at, lead }: (typeof rows)[number]): number | string => (order.by === "head" ? at : order.by === "label" ? named(lead) : (lead[order.by] ?? -1));
  const wanted = find.trim().toLowerCase();
  const found = rows.filter(({ at, lead, rest }) => !wanted || [heads[at]!.name, ...[lead, ...rest].map(named)].some((text) => text.toLowerCase().includes(wanted)));
  const sorted = [...found].sort((a, b) => {
    const [x, y] = [key(a), key(b)], sign = x < y ? -1 : x > y ? 1 : 0;
    return (order.down ? -sign : sign) || a.at - b.at;
  });
  const unnamed = heads.filter((_, at) => !all.some((label) => label.head === at));
  const csv = (): string =>
    csvFile(
      ["head", "label", "what", "quantity", "value", "low", "high", "n", "documents", "baseline", "survives"],
      all.map((label) => [heads[label.head]!.name, label.type, label.what, label.quantity, label.value, label.low, label.high, label.n, label.documents, label.baseline, label.survives]),
    );
  const link = (at: number): JSX.Element => <button type="button" class="hs-small" onClick={() => onSelect(heads[at]!.name)}>{heads[at]!.name}</button>;
  return (
    <div>
      {all.length > 0 && (
        <>
          <div class="hs-controls">
            <Select label="type" value={type} options={[["", `all (${heads.length - unnamed.length} heads)`], ...types.map((name): [string, string] => [name, `${name} (${count(name)})`])]} onChange={(type) => change({ type })} />
            <span class="hs-field">
              <label for={box}>find</label>
              <input id={box} type="search" placeholder="head or label" value={find} onInput={(event) => change({ find: event.currentTarget.value })} />
            </span>
            <span role="status" class="hs-faint">{wanted && `${found.length} of ${rows.length} heads`}</span>
            <button type="button" class="hs-small" onClick={() => download("head-types.csv", csv(), "text/csv")} aria-label="save the types of heads as CSV">CSV</button>
          </div>
          <div class="hs-wide" tabIndex={0} role="region" aria-label="types of heads">
            <table class="hs-types">
              <thead>
                <tr>
                  {COLUMNS.map((name) => (
                    <th scope="col" aria-sort={order.by === name ? (order.down ? "descending" : "ascending") : "none"}>
                      <button type="button" onClick={() => change({ by: name, down: order.by === name ? !order.down : name !== "head" && name !== "label" })}>
                        {TITLES[name]}<span class="hs-sort" aria-hidden="true">{order.by === name ? (order.down ? " ↓" : " ↑") : ""}</span>
                      </button>
                    </th>
                  ))}
                  <th scope="col">also</th>
                </tr>
              </thead>
              <tbody>
                {sorted.map(({ at, lead, rest }) => (
                  <tr key={at}>
                    <td>{link(at)}</td>
                    <td title={sized(lead)}>{named(lead)}</td>
                    <td>{numbers(lead)}</td>
                    <td>{show(lead.baseline)}</td>
                    <td>{percent(lead.survives)}</td>
                    <td>{rest.map((label, i) => <span title={sized(label)}>{i > 0 && ", "}{named(label)} {show(label.value)}</span>)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </>
      )}
      <p class="hs-about">
        {all.length ? `${heads.length - unnamed.length} of ${heads.length} heads have a label` : `None of ${heads.length} heads has a label`}; {run.types.rule}. {run.types.unmeasured && `${run.types.unmeasured[0]!.toUpperCase()}${run.types.unmeasured.slice(1)}.`}
      </p>
      {all.length > 0 && unnamed.length > 0 && (
        <details class="hs-about">
          <summary>{unnamed.length} heads without a label</summary>
          <p class="hs-labels">{unnamed.map(({ name }) => <button type="button" class="hs-small" onClick={() => onSelect(name)}>{name}</button>)}</p>
        </details>
      )}
    </div>
  );
}
