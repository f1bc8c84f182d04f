/** The best head and the best simple rule per label (Clark et al., Tables 1 and 2). */
import type { JSX } from "preact";
import { useCallback, useState } from "preact/hooks";
import { SERIES } from "../charts/colour";
import type { Row, Word } from "../charts/dot-rows";
import { DotRows } from "../charts/dot-rows";
import type { Entry } from "../charts/legend";
import type { Point } from "../charts/plot";
import { Plot } from "../charts/plot";
import { inWords } from "../data/directions";
import { show, signedInterval, valueAndInterval } from "../data/numbers";
import { withIntervals } from "../data/quantity";
import type { Best, Contest, Run } from "../types";
import { Switch } from "../ui/controls";
import { Frame } from "../ui/frame";
import { csvFile } from "../ui/save";

const HEAD = SERIES[0]!, RULE = SERIES[1]!;
const COLUMNS = ["kind", "label", "n", "heads", "direction", "value", "low", "high", "rule", "baseline", "baseline_low", "baseline_high", "lift", "lift_low", "lift_high", "in_sample_head", "in_sample", "chance"] as const;

/** One row per label, most frequent first: the chosen head, the rule, and the in-sample score. */
export function ContestFigure(props: { run: Run; contest: Contest; onSelect: (head: string) => void }): JSX.Element {
  const { run, contest, onSelect } = props;
  const kinds = [...new Set(contest.rows.map(({ kind }) => kind))];
  const [kind, setKind] = useState(kinds[0] ?? "encoder");
  const rows = contest.rows.filter((row) => row.kind === kind);
  const most = rows.reduce((a, { n }) => Math.max(a, n), 0);
  const entries: Entry[] = [
    { label: contest.fair ? "best head, chosen on other documents" : "best head, chosen on the same documents", colour: HEAD, symbol: 0 },
    { label: contest.rule, colour: RULE, symbol: 3 },
    ...(contest.fair ? [{ label: "best head in-sample", colour: "var(--hs-faint)", tick: true }] : []),
  ];
  const draw = useCallback(
    (width: number, point: Point) => (
      <DotRows rows={rows.map((row) => rowOf(row, contest))} domain={[0, 1]} axis={contest.axis} entries={entries} width={width} label={contest.axis} point={point} onSelect={onSelect} />
    ),
    [contest, kind, onSelect],
  );
  return (
    <Frame
      name={`best-${contest.measure}`}
      caption={`The best head of each label and the ${contest.rule}${withIntervals(rows.map(({ low }) => low))}, n = ${most.toLocaleString("en")} ${contest.counted}. ${contest.fair ? "Heads and rules are chosen on one half of the documents and scored on the other, and vice versa; two heads are named if the halves disagree." : "Heads and rules are scored on the documents they were chosen on, so the scores are biased high (selection bias)."}`}
      signature={run.signature}
      csv={() => csvFile([...COLUMNS], contest.rows.map((row) => COLUMNS.map((column) => row[column])))}
    >
      {kinds.length > 1 && <div class="hs-controls"><Switch label="attention" value={kind} options={kinds.map((name) => [name, name] as const)} onChange={setKind} /></div>}
      {rows.length ? <Plot label={`best heads: ${contest.measure}`}>{draw}</Plot> : <p>No label has enough cases to be listed.</p>}
    </Frame>
  );
}

/** The names of the chosen heads, which can be clicked, and the direction. */
function chosenWords(best: Best): Word[] {
  if (!best.heads) return [{ text: "cannot be split" }];
  const names = best.heads.split(" | ").flatMap((head, i): Word[] => [...(i ? [{ text: " | " }] : []), { text: head, head }]);
  return best.direction ? [...names, { text: `  ${inWords(best.direction).replaceAll(" | ", ", ")}` }] : names;
}

function rowOf(best: Best, contest: Contest): Row {
  return {
    label: best.label,
    extra: best.n.toLocaleString("en"),
    dots: [
      { value: best.value, low: best.low, high: best.high, colour: HEAD, symbol: 0 },
      { value: best.baseline, low: best.baseline_low, high: best.baseline_high, colour: RULE, symbol: 3 },
    ],
    tick: contest.fair ? best.in_sample : null,
    words: chosenWords(best),
    note: [
      `${best.label} (${best.n.toLocaleString("en")} ${contest.counted})`,
      `head ${best.heads || "–"} ${valueAndInterval(best.value, best.low, best.high)}`,
      `${contest.rule} (${best.rule}) ${valueAndInterval(best.baseline, best.baseline_low, best.baseline_high)}`,
      `difference ${signedInterval(best.lift, best.lift_low, best.lift_high)}`,
      ...(contest.fair ? [`in-sample ${best.in_sample_head} ${show(best.in_sample)}`] : []),
      ...(best.chance === null ? [] : [`chance ${show(best.chance)}`]),
    ],
  };
}
