/** The container of a drawing, with a tooltip for the hovered or focused part. */
import type { ComponentChildren, JSX, TargetedKeyboardEvent } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

/** The tooltip of an element: a heading and lines below it. */
export interface Note {
  element: Element;
  lines: string[];
}

export type Point = (note: Note | null) => void;

/** A drawing as wide as its container. A wider drawing scrolls horizontally. Hovering over a part does not redraw it. */
export function Plot(props: { label: string; children: (width: number, point: Point) => JSX.Element }): JSX.Element {
  const room = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(720);
  const [note, setNote] = useState<Note | null>(null);
  useLayoutEffect(() => {
    const element = room.current!;
    const measure = (): void => {
      if (element.clientWidth > 0) setWidth(element.clientWidth);
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const drawing = useMemo(() => props.children(width, setNote), [width, props.children]);
  return (
    <div class="hs-plot">
      <div class="hs-scroll" ref={room} role="group" aria-label={props.label} onScroll={() => setNote(null)}>
        {drawing}
      </div>
      {note && <Tip note={note} />}
    </div>
  );
}

function Tip({ note }: { note: Note }): JSX.Element {
  const tip = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const { current } = tip;
    const parent = current?.offsetParent;
    if (!current || !parent) return;
    const room = parent.getBoundingClientRect(), box = note.element.getBoundingClientRect();
    const left = box.left + box.width / 2 - current.offsetWidth / 2 - room.left;
    const above = box.top - room.top - current.offsetHeight - 6;
    current.style.left = `${Math.max(0, Math.min(left, room.width - current.offsetWidth))}px`;
    current.style.top = `${above >= 0 ? above : box.bottom - room.top + 6}px`;
  }, [note]);
  const [title, ...lines] = note.lines;
  return (
    <div class="hs-tip" ref={tip} aria-hidden="true">
      <b>{title}</b>
      {lines.map((line) => <span>{line}</span>)}
    </div>
  );
}

const WAYS = new Map<string, [right: number, down: number]>([["ArrowLeft", [-1, 0]], ["ArrowRight", [1, 0]], ["ArrowUp", [0, -1]], ["ArrowDown", [0, 1]]]);

/** Marks (elements with `data-at`) with tooltips, arrow-key navigation and selection. One mark is in the tab order. */
export function Marks(props: {
  first: number; // the mark in the tab order until another mark gets the focus
  has: (at: number) => boolean;
  note: (at: number) => string[];
  step: (at: number, right: number, down: number) => number | undefined;
  point: Point;
  onSelect?: ((at: number, key: boolean) => void) | undefined; // `key`: selected with the keyboard
  children: (current: number) => ComponentChildren;
}): JSX.Element {
  const [walked, setWalked] = useState<number | null>(null);
  const marked = (event: Event): SVGElement | null => (event.target as Element).closest<SVGElement>("[data-at]");
  const show = (event: Event): void => {
    const element = marked(event);
    props.point(element && { element, lines: props.note(Number(element.dataset["at"])) });
  };
  const keys = (event: TargetedKeyboardEvent<SVGGElement>): void => {
    const element = marked(event);
    if (!element) return;
    const at = Number(element.dataset["at"]);
    if ((event.key === "Enter" || event.key === " ") && props.onSelect) props.onSelect(at, true);
    else if (event.key === "Escape") props.point(null);
    else {
      const way = WAYS.get(event.key);
      if (!way) return;
      const next = props.step(at, ...way);
      if (next !== undefined) event.currentTarget.querySelector<SVGElement>(`[data-at="${next}"]`)?.focus();
    }
    event.preventDefault();
  };
  return (
    <g
      onPointerOver={show}
      onPointerLeave={() => props.point(null)}
      onFocusIn={(event) => {
        const element = marked(event);
        if (element) setWalked(Number(element.dataset["at"]));
        show(event);
      }}
      onFocusOut={() => props.point(null)}
      onKeyDown={keys}
      onClick={(event) => {
        const element = marked(event);
        if (element) props.onSelect?.(Number(element.dataset["at"]), false);
      }}
    >
      {props.children(walked !== null && props.has(walked) ? walked : props.first)}
    </g>
  );
}
