"""A notebook that nbconvert has converted to a page: its views are visible without a kernel and without a network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

LIVE = "application/vnd.jupyter.widget-view+json"
CELLS = (
    'import headscope as hs\nhs.view("mini", "The keys to the cabinet are on the table.", heads=["8-4"])',
    'run = hs.run("mini", "sampler", ["entropy"], limit=2, replicates=0, gallery=1)\nrun.show("3-2")',
    'run["entropy"].plot()',
)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed: nbconvert's pages are not tried")
    nbconvert = pytest.importorskip("nbconvert", reason="nbconvert is not installed: its pages are not tried")
    pytest.importorskip("anywidget")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in CELLS])
    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
    assert sum(LIVE in output.get("data", {}) for cell in notebook.cells for output in cell.outputs) == 2, (
        "the two views are also stored as widgets"
    )
    assert "AnyModel" in str(notebook.metadata.widgets), "the state of the widgets is stored; nbconvert prefers such widgets"
    path = tmp_path_factory.mktemp("nbconvert") / "notebook.html"
    body, _ = nbconvert.HTMLExporter().from_notebook_node(notebook)
    path.write_text(body, encoding="utf-8")
    return path


def test_every_view_is_drawn_offline(page: Path, browser: Browser) -> None:
    context = browser.new_context(offline=True)
    context.set_default_timeout(600_000)
    shown = context.new_page()
    shown.goto(page.as_uri())
    frames = shown.locator("iframe")
    assert frames.count() == 2
    for number, words in enumerate(("cabinet", "All heads")):
        frames.nth(number).scroll_into_view_if_needed()
        inside = shown.frame_locator(f"iframe >> nth={number}")
        inside.get_by_text(words).first.wait_for()
        box = inside.locator("svg").first.bounding_box()
        assert box is not None
        assert min(box["width"], box["height"]) > 100, "the picture is not empty"
    figure = shown.locator(".jp-OutputArea-output svg, .jp-OutputArea-output img").last
    figure.scroll_into_view_if_needed()
    box = figure.bounding_box()
    assert box is not None
    assert box["width"] > 200
    context.close()
