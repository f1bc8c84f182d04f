"""Make the documentation's figures again that come from what is in the box: `make figures`. Those of long studies on
other data stay.

With HEADSCOPE_DATA, the folder that the tests use, also those of the embedded model on Wikipedia and EWT. With a
Chromium and playwright, also the pictures of pages.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from importlib import import_module
from pathlib import Path

import try_it
from matplotlib.figure import Figure
from PIL import Image

import headscope as hs
from headscope.drawing.theme import render
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
    keep(run["saliency"].plot("clark3"), "clark3.svg")
    keep(run["distances"].plot("clark6"), "clark6.svg")
    keep(run["relations"].plot("heatmap", quantity="obj"), "obj.svg")
    keep(run["coreference"].plot("table2"), "table2.svg")
    keep(run["relations"].plot("clark5", width="page"), "clark5.svg")
    keep(run["entropy"].plot("clark4", width="column", style="grey"), "clark4_grey.svg")
    document = next(iter(hs.read("sampler")))
    keep(hs.view("mini", document.part(2, 3), heads=["8-4"], highlight=["obj"]).figure(), "objects.svg")
    keep(hs.run("mini", "sampler", ["keywords"], gallery=0)["keywords"].plot("heatmap", quantity="relative"), "relative.svg")
    keywords = hs.probe_keywords("mini", "sampler")
    for name in ("keyword_curves", "keyword_losses"):
        keep(keywords.plot(name), f"{name}.svg")
    retrieval = hs.retrieval("mini-decoder", "needles:96x40")
    keep(retrieval.plot("retrieval_ranked"), "retrieval.svg")
    keep(retrieval.plot("retrieval_ablation"), "retrieval_ablation.svg")
    by_map = [hs.run("mini", "sampler", ["tokens"], folder / name, gallery=0, map=name) for name in ("weights", "norm")]
    keep(hs.compare(*by_map).plot("layers"), "maps.svg")
    keep(hs.view("mini", TEXT, heads=["8-4", "8-11", "5-5"]).figure(), "lines.svg")
    keep(hs.view("mini-decoder", "The keys to the cabinet are on the", heads=["5-3", "4-3"], generate=16).figure(), "generated.svg")
    keep(hs.view("mini", TEXT, measure=["A", "G", "G*"], specials="hide").figure(), "influence.svg")
    keep(hs.view("mini", *PAIR, heads="all", layer=range(1, 7)).figure(), "heads.png")
    smaller(IMG / "heads.png")
    example = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert example is not None
    (folder / "reach.py").write_text(example.group(1), encoding="utf-8")
    keep(hs.run("mini", "sampler", [find(f"{folder / 'reach.py'}:Reach")])["reach"].plot(), "reach.svg")
    picture(run.report(folder / "report.html"), "report.png", ".opening")


def decoder() -> None:
    """Figures of the embedded language model: sinks, induction, and what it gains from its context."""
    keep(hs.run("mini-decoder", "sampler", ["sinks"], gallery=0)["sinks"].plot(), "sinks.svg")
    keep(hs.run("mini-decoder", "repeats:20", ["sequences"])["sequences"].plot("stripes"), "stripes.svg")
    sequences = hs.run("mini-decoder", "repeats:50", ["sequences"], gallery=0)["sequences"]
    keep(sequences.plot("heatmap", quantity="induction"), "induction.svg")
    keep(sequences.plot("sequences"), "sequence_heads.svg")
    learning = hs.in_context("mini-decoder", "repeats:50")
    for name in ("in_context", "in_context_effects"):
        keep(learning.plot(name), f"{name}.svg")


def real(data: Path) -> None:
    """Figures of the embedded model on pairs of Wikipedia paragraphs, and on EWT dev."""
    run = hs.run("mini", data / "text" / "enwiki_paragraph_pairs.jsonl.xz", limit=1000, gallery=0)
    keep(run["tokens"].plot("clark2"), "clark2.svg")
    keep(run["entropy"].plot("clark4"), "clark4.svg")
    run = hs.run("mini", data / "ud" / "en_ewt-ud-dev.conllu.xz", ["relations"], gallery=0)
    keep(run["relations"].plot("table1"), "table1.svg")


def keep(figure: Figure, name: str) -> None:
    """Write a figure, without its caption: the pages say what it shows."""
    (IMG / name).write_bytes(render(figure, name.rpartition(".")[2]))


def picture(page: Path, name: str, last: str, colours: int = 256) -> None:
    """The beginning of a page down to the element `last`, as a browser shows it."""
    chromium = os.environ.get("HEADSCOPE_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        print(f"no Chromium: {name} stays as it is", file=sys.stderr)
        return
    with import_module("playwright.sync_api").sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        opened = browser.new_page(viewport={"width": 1184, "height": 1200})
        opened.goto(page.resolve().as_uri())
        opened.wait_for_timeout(1000)
        opened.add_style_tag(content=".menu { display: none }")
        end = opened.locator(last).first.bounding_box()
        opened.screenshot(path=IMG / name, clip={"x": 0, "y": 0, "width": 1184, "height": end["y"] + end["height"] + 24})
        browser.close()
    smaller(IMG / name, colours)


def smaller(path: Path, colours: int = 256) -> None:
    """Write a picture again with few colours: with 256, a quarter of the size."""
    with Image.open(path) as picture:
        picture.convert("RGB").quantize(colours, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(path, optimize=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        embedded(Path(made))
    try_it.write(try_it.kept_run())
    picture(try_it.PAGES["sentences"], "sentences.png", ".hs-looked > div:last-child", colours=128)
    decoder()
    if data := os.environ.get("HEADSCOPE_DATA"):
        real(Path(data))
