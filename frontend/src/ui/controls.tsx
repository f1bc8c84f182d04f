/** Buttons, selects, sliders and switches with their labels. */
import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";

let ids = 0;

/** A unique id. The ids of Preact restart in every root, and a page has several roots. */
export function useUnique(): string {
  return useState(() => `hs-${(ids += 1)}`)[0];
}

/** A button that stays in place and keeps the focus while it is disabled. */
export function Button(props: { idle: boolean; onClick?: () => void; label?: string; type?: "button" | "submit"; children: ComponentChildren }): JSX.Element {
  const onClick = (event: Event): void => (props.idle ? event.preventDefault() : props.onClick?.());
  return <button type={props.type ?? "button"} aria-disabled={props.idle} aria-label={props.label} onClick={onClick}>{props.children}</button>;
}

export function Select<T extends string>(props: { label: string; value: T; options: readonly (readonly [T, string])[] | { group: string; options: readonly (readonly [T, string])[] }[]; onChange: (value: T) => void }): JSX.Element {
  const id = useUnique();
  const option = ([value, text]: readonly [T, string]): JSX.Element => <option value={value} selected={value === props.value}>{text}</option>;
  return (
    <span class="hs-field">
      <label for={id}>{props.label}</label>
      <select id={id} value={props.value} onChange={(event) => props.onChange(event.currentTarget.value as T)}>
        {props.options.map((item) => ("group" in item ? <optgroup label={item.group}>{item.options.map(option)}</optgroup> : option(item)))}
      </select>
    </span>
  );
}

export function Slider(props: { label: string; value: number; min: number; max: number; step: number; text?: string; onChange: (value: number) => void }): JSX.Element {
  const id = useUnique();
  return (
    <span class="hs-field">
      <label for={id}>{props.label}</label>
      <input id={id} type="range" min={props.min} max={props.max} step={props.step} value={props.value} aria-valuetext={props.text} onInput={(event) => props.onChange(Number(event.currentTarget.value))} />
      <output for={id}>{props.text ?? props.value}</output>
    </span>
  );
}

export function Toggle(props: { label: string; value: boolean; onChange: (value: boolean) => void }): JSX.Element {
  const id = useUnique();
  return (
    <span class="hs-field">
      <input id={id} type="checkbox" checked={props.value} onChange={(event) => props.onChange(event.currentTarget.checked)} />
      <label for={id}>{props.label}</label>
    </span>
  );
}

/** A choice between a few options, as adjacent buttons. */
export function Switch<T extends string>(props: { label: string; value: T; options: readonly (readonly [T, string])[]; onChange: (value: T) => void }): JSX.Element {
  return (
    <span class="hs-field" role="group" aria-label={props.label}>
      <span class="hs-faint" aria-hidden="true">{props.label}</span>
      <span class="hs-switch">
        {props.options.map(([value, text]) => (
          <button type="button" aria-pressed={value === props.value} onClick={() => props.onChange(value)}>{text}</button>
        ))}
      </span>
    </span>
  );
}
