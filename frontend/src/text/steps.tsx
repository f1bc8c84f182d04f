/** The steps of a generation: the token that each step chose, and the row of attention whose output chose it. */
import type { JSX } from "preact";
import { fit, visible } from "../charts/labels";
import type { Choice, Position } from "../data/maps";
import type { Text } from "../types";
import { Slider } from "../ui/controls";

/** A step: the row of the chosen token, and the row before it, whose output chose the token. */
export interface Step {
  number: number; // from 1
  of: number;
  chosen: number;
  row: number;
}

/** All steps whose rows are shown: none at the word level, and none for a text without generated tokens. */
export function stepsOf(rows: readonly Position[], choice: Choice, { source, window }: Text): Step[] {
  if (choice.level === "word") return [];
  const of = (window ? window[1] - window[0] : source.tokens.length) - (source.generated ?? 0);
  return rows.flatMap(({ generated: number }, at) => (number && rows[at - 1]?.generated === number - 1 ? [{ number, of, chosen: at, row: at - 1 }] : []));
}

const named = (position: Position | undefined): string => `“${fit(visible(position ?? { text: "" }), 160, 13)}”`;

/** A step in words: `step 3 of 40: “hand”`. */
export const stepName = (step: Step, rows: readonly Position[]): string => `step ${step.number} of ${step.of}: ${named(rows[step.chosen])}`;

/** The slider for the steps. At 0 all rows are shown. */
export function Steps(props: { steps: readonly Step[]; rows: readonly Position[]; value: number; onChange: (value: number) => void }): JSX.Element | null {
  const { steps, rows, value } = props;
  const step = steps[value - 1];
  if (!rows.some((position) => position.generated)) return null;
  if (!steps.length) return <p class="hs-note">The model wrote tokens, not words: choose the level “tokens” to go through its steps.</p>;
  return (
    <div class="hs-steps">
      <Slider label="generation" value={step ? value : 0} min={0} max={steps.length} step={1} text={step ? stepName(step, rows) : `all ${steps[0]!.of} steps`} onChange={props.onChange} />
      <p class="hs-note" aria-live="polite">
        {step
          ? <>Shown is the row of <bdi>{named(rows[step.row])}</bdi>: its output chose <bdi>{named(rows[step.chosen])}</bdi>.</>
          : "Shaded tokens were written by the model. Each was chosen by the output at the token before it."}
      </p>
    </div>
  );
}
