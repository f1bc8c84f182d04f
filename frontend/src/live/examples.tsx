/** Example texts. A click puts a text into the form and submits it. */
import type { JSX } from "preact";
import type { ExampleText } from "../data/server";

export function ExampleTexts(props: { examples: readonly ExampleText[]; open: boolean; onChoose: (example: ExampleText) => void }): JSX.Element | null {
  if (!props.examples.length) return null;
  return (
    <details class="hs-starts" open={props.open}>
      <summary>Examples</summary>
      <ul>
        {props.examples.map((example) => (
          <li key={`${example.mode} ${example.text} ${example.generate}`}>
            <button type="button" onClick={() => props.onChoose(example)}>
              <span class="hs-start"><bdi>{example.text}</bdi>{example.second !== null && <> {example.mode === "compare" ? "↔" : "+"} <bdi>{example.second}</bdi></>}{example.generate !== null && " …"}</span>
              <span class="hs-faint">{example.about}</span>
            </button>
          </li>
        ))}
      </ul>
    </details>
  );
}
