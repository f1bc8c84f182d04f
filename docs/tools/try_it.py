"""Make the pages that a visitor of the documentation can try without installing: `python docs/tools/try_it.py`. They
are the report of a run of the embedded model, and a page of sentences that the model has read. The run is kept in
demo/try, and is made again when the code that it depends on has changed.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
from pathlib import Path

import headscope as hs
from headscope.views.known import known_heads
from headscope.views.sentences import ExampleSentence, sentences_page

ROOT = Path(__file__).parents[2]
PAGES = {"report": ROOT / "docs" / "try" / "report.html", "sentences": ROOT / "docs" / "try" / "sentences.html"}
KEPT = ROOT / "demo" / "try"
# What the demo measures, without the gradients of the loss, which take half of its time.
MEASURES = ["positions", "tokens", "entropy", "relations", "coreference", "distances"]
WITHOUT = {"api", "app", "cli", "comparison", "drawing", "figures", "recipes", "replication", "report", "studies", "views", "widget"}
SENTENCES = (
    ExampleSentence(
        "objects",
        "The girl who had lost her keys opened the door with a card.",
        "The heads known for objects connect “door” with “opened”.",
    ),
    ExampleSentence("objects", "The dog chased the cat, and the cat chased the mouse.", "The cat is an object first and a subject then."),
    ExampleSentence("objects", "He gave his brother the book.", "Two objects: who receives, and what."),
    ExampleSentence("objects", "The letter was written by my sister.", "A passive: the subject is what was written."),
    ExampleSentence(
        "verbs and subjects",
        "The keys to the cabinet are on the table.",
        "The verb is plural as its subject is, and another noun is nearer.",
    ),
    ExampleSentence("verbs and subjects", "The key to the old cabinets is on the table.", "The same with a singular subject."),
    ExampleSentence("verbs and subjects", "There are three letters on the desk.", "The subject comes after the verb."),
    ExampleSentence("pronouns", "Anna told Mary that the committee had rejected her proposal.", "“her” can be Anna or Mary."),
    ExampleSentence("pronouns", "The doctor thanked the nurse because she had helped.", "Who had helped?"),
    ExampleSentence("pronouns", "Peter hurt himself when he fell.", "A reflexive and a pronoun for one person."),
    ExampleSentence("clauses", "The man that my sister married is a teacher.", "A relative clause between the subject and its verb."),
    ExampleSentence("clauses", "I know the girl who lost her keys.", "“who” and “her” are both the girl."),
    ExampleSentence("clauses", "If it rains, we will stay at home.", "A condition before the main clause."),
    ExampleSentence("two readings", "I saw the man with the telescope.", "Who has the telescope?"),
    ExampleSentence("two readings", "Time flies like an arrow.", "“flies” can be a noun, and “like” a verb."),
    ExampleSentence("two readings", "The old man the boats.", "A garden path: “man” is the verb."),
    ExampleSentence("two readings", "The horse raced past the barn fell.", "A garden path: “fell” is the verb of the main clause."),
    ExampleSentence("order and repetition", "What did you buy in the city?", "The object is the first word."),
    ExampleSentence("order and repetition", "They sang, danced and laughed all night.", "Three verbs of one subject."),
    ExampleSentence("order and repetition", "The rabbit hopped and hopped and hopped.", "The same word three times."),
)
BODY = """<main>
<h1>Twenty sentences, and what the heads of a small BERT make of them</h1>
<p>An attention head gives every word a set of weights over the words of the text. Choose a sentence, then one of the heads below
it. Lines go from the word that attends, on the left, to the words attended to, on the right; a darker line is a higher weight.
With <code>headscope serve</code> you type sentences, and read them by other models.</p>
<div data-view="sentences"></div>
<p><a href="report.html">The report of the run that knows these heads</a> · <a href="../try.html">About this page</a></p>
</main>"""


def fingerprint() -> str:
    """A hash of the package's files that a run depends on."""
    source = ROOT / "src" / "headscope"
    files = sorted(path for path in source.rglob("*") if path.is_file() and not WITHOUT & {*path.relative_to(source).parts})
    digest = hashlib.sha256("\n".join(MEASURES).encode())
    for path in files:
        if "__pycache__" not in path.parts:
            digest.update(path.relative_to(source).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def kept_run() -> hs.Run:
    """The run of the embedded model, kept or made now."""
    folder = KEPT / fingerprint() / "mini-sampler"
    if (folder / "run.json").exists():
        return hs.open_run(folder)
    shutil.rmtree(KEPT, ignore_errors=True)
    return hs.run("mini", "sampler", MEASURES, folder)


def write(run: hs.Run, sentences: tuple[ExampleSentence, ...] = SENTENCES, pages: dict[str, Path] = PAGES) -> None:
    """Write both pages."""
    for page in pages.values():
        page.parent.mkdir(parents=True, exist_ok=True)
    run.report(pages["report"])
    text = sentences_page(hs.load("mini"), sentences, known_heads(run.results, "mini-sampler"), pages["report"].name, BODY)
    pages["sentences"].write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(kept_run())
    sys.stdout.write("".join(f"{page.relative_to(ROOT)}: {page.stat().st_size / 1e6:.1f} MB\n" for page in PAGES.values()))
