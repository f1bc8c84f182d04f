from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes

import headscope as hs
from headscope.drawing.theme import COLOURS, render
from headscope.errors import RunError
from headscope.figures import draw
from headscope.report import page


@pytest.fixture(scope="module")
def run() -> hs.Run:
    return hs.run("mini", "sampler", limit=20, replicates=20)


def legend(axes: Axes) -> list[str]:
    box = axes.get_legend()
    assert box is not None
    return [text.get_text() for text in box.get_texts()]


def test_figure_2_draws_every_head_and_the_layer_means(run: hs.Run) -> None:
    figure = draw("clark2", run.results)
    top, middle, bottom = figure.axes
    assert [len(legend(axes)) for axes in (top, middle, bottom)] == [4, 3, 4]
    sep = run["tokens"].table.where(quantity="to_sep")
    clouds = [line for line in top.lines if line.get_linestyle() == "None"]
    assert any(np.array_equal(line.get_ydata(), sep["value"]) for line in clouds)
    means = run["tokens"].layers.where(quantity="to_sep")["value"]
    assert any(np.array_equal(line.get_ydata(), means) for line in top.lines)
    assert legend(bottom) == ["previous", "next", "itself", "even attention"]
    even = run["tokens"].layers.where(quantity="to_punct")["baseline"]
    dashed = [line for line in top.lines if line.is_dashed() and np.array_equal(line.get_ydata(), even)]
    assert [line.get_color() for line in dashed] == [COLOURS[2]], "the baseline of even attention depends on the type of token"
    previous = run["positions"].layers.where(quantity="previous")["value"]
    line = next(line for line in bottom.lines if line.get_label() == "previous")
    assert np.array_equal(line.get_ydata(), previous), "these labels are swapped in the notebook of the paper, but not here"


def test_figure_4_has_the_line_of_even_attention(run: hs.Run) -> None:
    figure = run["entropy"].plot()
    even = next(line for line in figure.axes[0].lines if line.get_label() == "even attention")
    assert np.allclose(np.asarray(even.get_ydata()), run["entropy"].layers.where(quantity="entropy")["baseline"])


def test_figures_are_reproducible_and_contain_n_and_the_signature(run: hs.Run) -> None:
    svg = render(draw("clark4", run.results), "svg")
    assert svg == render(draw("clark4", run.results), "svg")
    assert b"n = 20 texts" in svg
    assert b"model:mini@" in svg


def test_a_figure_without_its_measures_is_refused_and_the_report_draws_the_others() -> None:
    run = hs.run("mini", "sampler", ["entropy"], limit=2, replicates=0, gallery=0)
    with pytest.raises(RunError, match="clark2 shows tokens and positions"):
        draw("clark2", run.results)
    assert "Clark et al. 2019, Figure 4" in page(run.results)


class Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.targets += [value for name, value in attrs if name in ("src", "href", "xlink:href", "action") and value]


def test_the_report_loads_nothing_from_other_hosts_and_contains_the_values(run: hs.Run, tmp_path: Path) -> None:
    path = run.report(tmp_path / "page.html")
    html = path.read_text(encoding="utf-8")
    links = Links()
    links.feed(html)
    assert all(target.startswith("#") for target in links.targets)
    assert links.tags.count("script") == 2  # the data, which is not executed, and the views
    assert "default-src 'none'" in html
    assert not re.search(r"@import|url\(\s*['\"]?http", html)
    assert "20 texts" in html
    sep = run["tokens"].table.where(quantity="to_sep").sort("value", descending=True)
    assert f"{sep['value'][0]:.4f}" in html
    assert run.signature in html.replace("&#34;", '"')


def test_a_figure_draws_only_measured_panels_in_the_unit_of_the_run(run: hs.Run) -> None:
    positions = hs.run("mini", "sampler", ["positions", "entropy"], limit=2, replicates=0, gallery=0)
    assert [axes.get_title(loc="left") for axes in positions["positions"].plot().axes] == ["Attention to neighbouring tokens"]
    bits = hs.run("mini", "sampler", {"entropy": {"base": "bits", "average": "token"}}, limit=2, replicates=0, gallery=0)
    figure = bits["entropy"].plot()
    assert figure.axes[0].get_ylabel() == "Entropy (bits)"
    rows = bits["entropy"].table.where(quantity="entropy")["n"][0]
    assert f"n = {rows} rows" in figure.caption.text


def test_the_report_escapes_html_in_names_of_groups(tmp_path: Path) -> None:
    maps = np.full((1, 1, 2, 2), 0.5)
    run = hs.measure(maps, ["a", "b"], {"tokens": {"groups": ["=<script>alert(1)</script>"], "flows": []}})
    html = run.report(tmp_path / "x.html").read_text(encoding="utf-8")
    assert "<script>" not in html
    assert "=<script" not in html


def test_the_report_of_a_run_without_a_folder_needs_a_file_name(run: hs.Run) -> None:
    with pytest.raises(RunError, match="Name a file"):
        run.report()


def test_plots_do_not_change_the_settings_of_matplotlib(run: hs.Run) -> None:
    import matplotlib

    before = dict(matplotlib.rcParams)
    run["tokens"].plot()
    assert dict(matplotlib.rcParams) == before


def test_a_home_folder_that_cannot_be_written_to_causes_no_warning() -> None:
    """matplotlib prints no warning about the folder, but still prints its other warnings."""
    code = """
import headscope.drawing.theme, logging, matplotlib.font_manager
logging.getLogger("matplotlib").warning("another")
"""
    found = {name: value for name, value in os.environ.items() if name not in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "MPLCONFIGDIR")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**found, "HOME": "/proc/none"})
    assert "another" in done.stderr
    assert "HOME" not in done.stderr.replace("/proc/none", "HOME")
