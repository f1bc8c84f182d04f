"""Make the documentation's figures again that come from what is in the box: `make figures`. Those of long studies on
other data stay.

With HEADSCOPE_DATA, the folder that the tests use, also those of the embedded model on Wikipedia and EWT. With a
Chromium and playwright, also the picture of a report.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from importlib import import_module
from pathlib import Path

from PIL import Image

import headscope as hs
from headscope.drawing.theme import save
from headscope.measures.own import find

IMG = Path(__file__).parents[1] / "img"
PAGE = Path(__file__).parents[1] / "adding-a-measure.md"
TEXT = "The keys to the old cabinet that my sister bought are on the table."
PAIR = ("the rabbit quickly hopped", "the turtle slowly crawled")
# Every measure of the demo, so that heads can be named by what they do.
MEASURES = ["positions", "tokens", "entropy", "saliency", "relations", "coreference", "distances"]


def embedded(folder: Path) -> None:
    """Figures of the embedded model on the embedded corpus."""
    run = hs.run("mini", "sampler", MEASURES, folder / "run")
    save(run["saliency"].plot("clark3"), IMG / "clark3.svg")
    save(run["distances"].plot("clark6"), IMG / "clark6.svg")
    save(run["relations"].plot("heatmap", quantity="obj"), IMG / "obj.svg")
    save(run["coreference"].plot("table2"), IMG / "table2.svg")
    save(hs.run("mini", "sampler", ["keywords"], gallery=0)["keywords"].plot("heatmap", quantity="relative"), IMG / "relative.svg")
    keywords = hs.probe_keywords("mini", "sampler")
    for name in ("keyword_curves", "keyword_losses"):
        save(keywords.plot(name), IMG / f"{name}.svg")
    retrieval = hs.retrieval("mini-decoder", "needles:96x40")
    save(retrieval.plot("retrieval_ranked"), IMG / "retrieval.svg")
    save(retrieval.plot("retrieval_ablation"), IMG / "retrieval_ablation.svg")
    by_map = [hs.run("mini", "sampler", ["tokens"], folder / name, gallery=0, map=name) for name in ("weights", "norm")]
    save(hs.compare(*by_map).plot("layers"), IMG / "maps.svg")
    hs.view("mini", TEXT, heads=["8-4", "8-11", "5-5"]).save(IMG / "lines.svg")
    hs.view("mini-decoder", "The keys to the cabinet are on the", heads=["5-3", "4-3"], generate=16).save(IMG / "generated.svg")
    hs.view("mini", TEXT, measure=["A", "G", "G*"], specials="hide").save(IMG / "influence.svg")
    smaller(hs.view("mini", *PAIR, heads="all", layer=range(1, 7)).save(IMG / "heads.png"))
    example = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert example is not None
    (folder / "reach.py").write_text(example.group(1), encoding="utf-8")
    save(hs.run("mini", "sampler", [find(f"{folder / 'reach.py'}:Reach")])["reach"].plot(), IMG / "reach.svg")
    picture(run.report(folder / "report.html"))


def decoder() -> None:
    """Figures of the embedded language model: sinks, induction, and what it gains from its context."""
    save(hs.run("mini-decoder", "sampler", ["sinks"], gallery=0)["sinks"].plot(), IMG / "sinks.svg")
    save(hs.run("mini-decoder", "repeats:20", ["sequences"])["sequences"].plot("stripes"), IMG / "stripes.svg")
    sequences = hs.run("mini-decoder", "repeats:50", ["sequences"], gallery=0)["sequences"]
    save(sequences.plot("heatmap", quantity="induction"), IMG / "induction.svg")
    save(sequences.plot("sequences"), IMG / "sequence_heads.svg")
    learning = hs.in_context("mini-decoder", "repeats:50")
    for name in ("in_context", "in_context_effects"):
        save(learning.plot(name), IMG / f"{name}.svg")


def real(data: Path) -> None:
    """Figures of the embedded model on pairs of Wikipedia paragraphs, and on EWT dev."""
    run = hs.run("mini", data / "text" / "enwiki_paragraph_pairs.jsonl.xz", limit=1000, gallery=0)
    save(run["tokens"].plot("clark2"), IMG / "clark2.svg")
    save(run["entropy"].plot("clark4"), IMG / "clark4.svg")
    run = hs.run("mini", data / "ud" / "en_ewt-ud-dev.conllu.xz", ["relations"], gallery=0)
    save(run["relations"].plot("table1"), IMG / "table1.svg")


def picture(report: Path) -> None:
    """The first screen of a report, as a browser shows it."""
    chromium = os.environ.get("HEADSCOPE_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        print("no Chromium: the picture of a report stays as it is", file=sys.stderr)
        return
    with import_module("playwright.sync_api").sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1184, "height": 1200})
        page.goto(report.resolve().as_uri())
        page.wait_for_timeout(1000)
        page.add_style_tag(content=".menu { display: none }")
        end = page.locator(".opening").bounding_box()
        page.screenshot(path=IMG / "report.png", clip={"x": 0, "y": 0, "width": 1184, "height": end["y"] + end["height"] + 24})
        browser.close()
    smaller(IMG / "report.png")


def smaller(path: Path) -> None:
    """Write a picture again with 256 colours: a quarter of the size."""
    with Image.open(path) as picture:
        picture.convert("RGB").quantize(256, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(path, optimize=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        embedded(Path(made))
    decoder()
    if data := os.environ.get("HEADSCOPE_DATA"):
        real(Path(data))
