/** A control that selects one or more heads by name. */
import type { JSX } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { SERIES } from "../charts/colour";
import { allHeads, findHead, kindOf } from "../data/heads";
import type { Kind, Site } from "../types";
import { useUnique } from "../ui/controls";

const AMONG: Record<Kind, string> = { encoder: "within the source", decoder: "within the target", cross: "from the target to the source" };

/**
 * The heads in typed text such as `8-10, 5-4`, and a message about unknown names. A name without a kind means the kind
 * of the `current` head if it has such a head, else the first kind.
 */
export function readHeads(typed: string, sites: readonly Site[], current: string | undefined): { heads: string[]; trouble: string } {
  const names = typed.split(/[\s,;]+/).filter(Boolean);
  const found = names.map((name) => findHead(name, sites, current) ?? findHead(name, sites));
  const missing = names.filter((_, i) => found[i] === undefined);
  const known = allHeads(sites);
  const ranges = [...new Set(known.map(({ kind }) => kind))].map((kind) => known.filter((head) => head.kind === kind)).map((heads) => `${heads[0]!.name} to ${heads.at(-1)!.name}`);
  const trouble = missing.length ? `No head is called ${missing.map((name) => `“${name}”`).join(" or ")}: the heads are ${ranges.join(", ")}.` : "";
  return { heads: [...new Set(found.filter((name) => name !== undefined))], trouble };
}

/** The heads after adding some: all of one kind, because other kinds have other rows and columns, and at most one per colour. */
export function addHeads(shown: readonly string[], added: readonly string[]): { heads: string[]; note: string } {
  const kind = kindOf(added[0] ?? shown[0] ?? "");
  const same = [...new Set([...shown, ...added])].filter((head) => kindOf(head) === kind);
  const notes = [];
  if ([...shown, ...added].some((head) => kindOf(head) !== kind)) notes.push(`Only heads with the same rows and columns can be shown together: these attend ${AMONG[kind ?? "encoder"]}.`);
  if (same.length > SERIES.length) notes.push(`At most ${SERIES.length} heads at once: there are no more colours.`);
  return { heads: same.slice(0, SERIES.length), note: notes.join(" ") };
}

/** The selected heads as coloured chips with buttons for the previous and next head, and a field that adds heads. */
export function HeadPicker(props: { sites: readonly Site[]; heads: readonly string[]; onChange: (heads: string[]) => void }): JSX.Element {
  const id = useUnique();
  const [typed, setTyped] = useState("");
  const [note, setNote] = useState("");
  const names = allHeads(props.sites).map((head) => head.name);
  const kinds = new Set(props.sites.map((site) => site.kind));
  const step = (at: number, by: number): void => {
    const same = names.filter((name) => kindOf(name) === kindOf(props.heads[at]!));
    const free = same.filter((name) => name === props.heads[at] || !props.heads.includes(name));
    const next = free[(free.indexOf(props.heads[at]!) + by + free.length) % free.length]!;
    setNote("");
    props.onChange(props.heads.map((head, i) => (i === at ? next : head)));
  };
  const group = useRef<HTMLDivElement>(null), removed = useRef<number | null>(null);
  // The focus was on the removed chip. Move it to the next chip, or to the field.
  useLayoutEffect(() => {
    const at = removed.current, others = group.current?.querySelectorAll<HTMLElement>("[data-remove]") ?? [];
    removed.current = null;
    if (at !== null) (others[Math.min(at, others.length - 1)] ?? group.current?.querySelector("input"))?.focus();
  }, [props.heads]);
  const remove = (at: number): void => {
    removed.current = at;
    setNote("");
    props.onChange(props.heads.filter((_, i) => i !== at));
  };
  const add = (event: Event): void => {
    event.preventDefault();
    const read = readHeads(typed, props.sites, props.heads[0]);
    const { heads, note } = addHeads(props.heads, read.heads);
    setNote([read.trouble, note].filter(Boolean).join(" "));
    if (!read.heads.length) return;
    if (!read.trouble) setTyped("");
    props.onChange(heads);
  };
  return (
    <>
      <div ref={group} class="hs-heads" role="group" aria-label="heads">
        {props.heads.map((head, at) => (
          <span class="hs-chip" key={at} role="group" aria-label={`head ${head}`}>
            <span class="hs-swatch" style={{ background: SERIES[at] }} />
            <button type="button" onClick={() => step(at, -1)} aria-label={`the head before ${head}`} title="previous head">‹</button>
            <b>{head}</b>
            <button type="button" onClick={() => step(at, 1)} aria-label={`the head after ${head}`} title="next head">›</button>
            {props.heads.length > 1 && (
              <button type="button" data-remove onClick={() => remove(at)} aria-label={`remove head ${head}`} title="remove">×</button>
            )}
          </span>
        ))}
        <form class="hs-field" onSubmit={add}>
          <label for={id}>add heads</label>
          <input id={id} type="text" size={9} autocomplete="off" spellcheck={false} placeholder={kinds.has("cross") ? "cross/1-2" : "2-1, 5-4"} value={typed} onInput={(event) => setTyped(event.currentTarget.value)} />
          <button type="submit">add</button>
        </form>
      </div>
      {note && <p class="hs-note" role="status">{note}</p>}
    </>
  );
}
