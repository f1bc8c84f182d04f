"""Views of a notebook in a real browser: widgets with a simulated kernel, and several pages in frames."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

import headscope as hs
from headscope.views.page import bundle, plain

TEXT = "The keys to the old cabinet that my sister bought are on the table."
# Does what anywidget does: it loads one module, and passes a model with the data and an element to draw into.
HOST = """<!doctype html><meta charset="utf-8"><body style="background:GROUND">
<style>button { display: none !important } .hs text { fill: red !important }</style>
<div id="one"></div><div id="two"></div></body>"""
START = """async ({ source, views }) => {
  const module = await import(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
  window.closers = {};
  window.models = {};
  for (const [id, values] of Object.entries(views)) {
    const heard = new Set();
    const model = {
      get: (name) => values[name], set: (name, value) => { values[name] = value; },
      save_changes: () => { window.saved = { ...values, data: null }; },
      on: (_, handler) => heard.add(handler), off: (_, handler) => heard.delete(handler), heard,
      send: async (message) => {
        const answer = await window.kernel(id, message);
        const bytes = answer.bytes ? Uint8Array.from(atob(answer.bytes), (c) => c.charCodeAt(0)) : null;
        const padded = bytes && new Uint8Array([0, 0, 0, ...bytes]);  // a view into a larger buffer, as the protocol may give
        for (const handler of [...heard]) handler(answer.content, bytes ? [new DataView(padded.buffer, 3)] : []);
      },
    };
    window.models[id] = model;
    window.closers[id] = module.default.render({ model, el: document.getElementById(id) });
  }
}"""


class Kernel:
    """Answers messages as the widget in Python does."""

    def __init__(self, views: dict[str, Any]) -> None:
        self.views = views
        self.requested: list[tuple[str, str]] = []

    def __call__(self, id: str, message: dict[str, Any]) -> dict[str, Any]:
        content = {"kind": message["kind"], "id": message["id"]}
        if message["kind"] == "influence":
            return {"content": {**content, "influence": plain(self.views[id].influence_of(message["measure"]))}}
        self.requested.append((id, message["head"]))
        return {"content": content, "bytes": base64.b64encode(self.views[id].bytes_of(message["head"])).decode()}


def notebook(visitor: Any, tmp_path: Path, views: dict[str, Any], ground: str = "#fff", dark: bool = False) -> tuple[Any, Kernel]:
    (tmp_path / "notebook.html").write_text(HOST.replace("GROUND", ground), encoding="utf-8")
    (tmp_path / "ready.html").write_text('<p class="hs">ready</p>', encoding="utf-8")
    page = visitor.open(f"file://{tmp_path}/ready.html", dark=dark)
    page.goto(f"file://{tmp_path}/notebook.html")
    kernel = Kernel(views)
    page.expose_function("kernel", kernel)
    page.evaluate(START, {"source": bundle(), "views": {id: {"data": plain(view.data()), "head": None} for id, view in views.items()}})
    return page, kernel


@pytest.fixture(scope="module")
def views() -> dict[str, Any]:
    model = hs.load("mini")
    return {"one": hs.view(model, TEXT, heads=["8-4"]), "two": hs.view(model, "Dogs and cats play in the garden all day.", heads=["2-1"])}


def test_two_live_views_fetch_maps_independently(visitor: Any, tmp_path: Path, views: dict[str, Any]) -> None:
    page, kernel = notebook(visitor, tmp_path, views)
    one, two = page.locator("#one"), page.locator("#two")
    one.get_by_text("cabinet").first.wait_for()
    two.get_by_text("garden").first.wait_for()
    assert kernel.requested == [], "the maps that are shown first come with the data"
    before = two.inner_html()
    one.get_by_role("textbox").fill("11-2")
    one.get_by_role("textbox").press("Enter")
    one.locator("figcaption").get_by_text("11-2").wait_for()  # the caption names a head once its map is drawn
    assert kernel.requested == [("one", "11-2")]
    assert two.inner_html() == before
    assert one.locator("button").first.is_visible(), "styles of the notebook do not apply inside the view"
    ids = page.evaluate("() => [...document.querySelectorAll('[id]')].map((element) => element.id)")
    assert sorted(ids) == ["one", "two"], "the views add no ids to the notebook"


def test_a_live_view_fetches_influence_and_all_heads(visitor: Any, tmp_path: Path, views: dict[str, Any]) -> None:
    page, kernel = notebook(visitor, tmp_path, {"two": views["two"]})
    two = page.locator("#two")
    two.get_by_role("button", name="influence").click()
    two.get_by_label("measure").select_option("rollout")
    two.locator("figcaption", has_text="Influence by rollout").wait_for()
    two.get_by_role("button", name="all heads").click()
    two.locator("figcaption", has_text="144 heads").wait_for()
    page.wait_for_function("() => document.querySelector('#two > div').shadowRoot.querySelectorAll('.hs-cell image').length === 144")
    assert len(kernel.requested) == 143, "one of the 144 maps came with the data"


def test_a_closed_view_removes_its_content_and_its_handlers(visitor: Any, tmp_path: Path, views: dict[str, Any]) -> None:
    page, _ = notebook(visitor, tmp_path, views)
    page.locator("#one").get_by_text("cabinet").first.wait_for()
    assert page.evaluate(
        "() => { closers.one(); return [document.getElementById('one').innerHTML, models.one.heard.size, models.two.heard.size]; }"
    ) == ["", 0, 1]
    assert page.locator("#two").get_by_text("garden").first.is_visible()


def test_several_heads_have_a_legend_in_the_saved_picture(visitor: Any, tmp_path: Path, views: dict[str, Any]) -> None:
    page, _ = notebook(visitor, tmp_path, {"one": views["one"]})
    one = page.locator("#one")
    one.get_by_role("textbox").fill("11-2")
    one.get_by_role("textbox").press("Enter")
    one.locator("figcaption").get_by_text("11-2").wait_for()
    with page.expect_download() as lines:
        one.get_by_role("button", name="SVG").click()
    saved = Path(lines.value.path()).read_text(encoding="utf-8")
    assert "head 8-4" in saved.split("Attention of")[0]
    assert "head 11-2" in saved.split("Attention of")[0]
    one.get_by_role("button", name="heatmap").click()
    with page.expect_download() as cells:
        one.get_by_role("button", name="SVG").click()
    assert cells.value.suggested_filename.startswith("attention-8-4-")
    saved = Path(cells.value.path()).read_text(encoding="utf-8")
    for words in ("attending ↓", "attended to →", "weight", "Rows attend to columns."):
        assert words in saved
    one.get_by_role("button", name="remove head 11-2").press("Enter")
    assert page.evaluate("() => document.querySelector('#one > div').shadowRoot.activeElement.tagName") == "INPUT"


@pytest.mark.parametrize(("ground", "dark", "theme"), [("#fff", True, "light"), ("#111", False, "dark")])
def test_the_theme_follows_the_notebook_not_the_system(
    visitor: Any, tmp_path: Path, views: dict[str, Any], ground: str, dark: bool, theme: str
) -> None:
    page, _ = notebook(visitor, tmp_path, views, ground, dark)
    page.locator("#one").get_by_text("cabinet").first.wait_for()
    assert page.evaluate("() => document.querySelector('#one > div').shadowRoot.querySelector('.hs').dataset.theme") == theme


def test_a_live_run_sends_the_chosen_head_to_python(visitor: Any, tmp_path: Path) -> None:
    run = hs.run("mini", "sampler", ["positions", "entropy"], limit=3, replicates=5)
    page, _ = notebook(visitor, tmp_path, {"one": run.show()})
    page.locator("#one").get_by_text("All heads").first.wait_for()
    page.locator("#one [data-head='3-2'], #one [aria-label*='3-2']").first.click()
    page.wait_for_function("() => window.saved?.head === '3-2'")
    for view in ("curves", "map"):  # below the heads, as in the report
        assert page.locator(f"#one [data-view={view}] svg").count() >= 1, view
    assert page.evaluate("() => { closers.one(); return document.getElementById('one').innerHTML; }") == ""


def test_pages_in_frames_are_drawn_used_and_saved(visitor: Any, tmp_path: Path, views: dict[str, Any]) -> None:
    run = hs.run("mini", "sampler", ["positions"], limit=3, replicates=5)
    frames = [view._repr_html_() for view in (*views.values(), run.show("3-2"))]
    (tmp_path / "frames.html").write_text('<!doctype html><p class="hs">notebook</p>' + "".join(frames), encoding="utf-8")
    page = visitor.open(f"file://{tmp_path}/frames.html", offline=True)
    first, last = page.frame_locator("iframe >> nth=0"), page.frame_locator("iframe >> nth=2")
    first.get_by_text("cabinet").first.wait_for()
    with page.expect_download() as saved:
        first.get_by_role("button", name="SVG").click()
    assert "bought" in Path(saved.value.path()).read_text(encoding="utf-8")
    page.locator("iframe").nth(2).scroll_into_view_if_needed()
    last.get_by_text("3-3 ›").click()
    last.get_by_text("Head 3-3").first.wait_for()
