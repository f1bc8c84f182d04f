"""Every study can be compared, shown, drawn and reported."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import unescape
from pathlib import Path

import headscope as hs
from headscope.errors import HeadscopeError
from headscope.results.results import Results
from headscope.results.table import Table
from headscope.studies.base import Study
from headscope.studies.registry import REGISTRY
from headscope.views.words import findings
from helpers.small import SmallStudies
from helpers.study_laws import Headscope, refusal

# Comparing


def compared(headscope: Headscope, *folders: Path) -> Mapping[str, Table]:
    """Compare folders in Python and on the terminal. Return the differences, or none if the comparison is refused in
    one line.
    """
    try:
        found = hs.compare(*folders)
    except HeadscopeError:
        refusal(headscope, "compare", *folders)
        return {}
    assert str(found)
    assert "\n" not in repr(found)
    code, out, error = headscope("compare", *folders)
    assert code == 0, error
    assert all(f"({name})" in out for name in found.differences)
    return found.differences


def test_a_study_compared_with_itself_has_differences_of_0(any_folder: Path, headscope: Headscope) -> None:
    differences = compared(headscope, any_folder, any_folder)
    assert differences, "the small study has no numbers to compare: change its entry in SMALL"
    for table in differences.values():
        assert set(table["difference"]) == {0.0}


def test_studies_with_different_seeds_are_compared_or_refused_in_one_line(
    study: Study, folder: Path, small: SmallStudies, tmp_path: Path, headscope: Headscope
) -> None:
    """On the terminal and on a page."""
    other, page = small.folder(study.name, seed=1), tmp_path / "compared.html"
    if compared(headscope, folder, other):
        code, _, error = headscope("compare", folder, other, "-o", page)
        assert (code, error, page.exists()) == (0, "", True)
    else:
        refusal(headscope, "compare", folder, other, "-o", page)


def test_studies_of_different_kinds_are_not_compared(study: Study, small: SmallStudies, headscope: Headscope) -> None:
    for other in (small.run(), small.replication()):
        assert "same kind" in refusal(headscope, "compare", small.folder(study.name), other)


# Showing, drawing, reporting


def test_every_table_is_shown_in_the_terminal(any_folder: Path, headscope: Headscope) -> None:
    results = Results.open(any_folder)
    code, out, error = headscope("show", any_folder)
    assert (code, error) == (0, "")
    assert all(f"{name} ({len(results[name])} rows)" in out for name in results)
    for name in results:
        code, out, error = headscope("show", any_folder, name)
        assert (code, error) == (0, ""), name
        assert headscope("show", any_folder, name, "--format", "csv")[0] == 0, name
    assert "It has" in refusal(headscope, "show", any_folder, "no_such_table")


def test_findings_are_shown(study: Study, folder: Path, headscope: Headscope) -> None:
    """Findings are sentences without missing numbers. A study without findings must have a warning."""
    results = Results.open(folder)
    found = findings(results)
    assert found or results.warnings
    for finding in found:
        assert re.fullmatch(r"\S.*[.:)]", finding), finding
        assert not re.search(r"\b(nan|None)\b", finding), finding
    shown = headscope("show", folder)[1]
    assert all(finding in shown for finding in found)
    assert all(finding in str(hs.open_study(folder)) for finding in found)


def test_a_figure_whose_table_the_study_lacks_is_refused(study: Study, folder: Path, tmp_path: Path, headscope: Headscope) -> None:
    """The error names the command that makes the table. (The other figures are drawn in test_imports.)"""
    results = Results.open(folder)
    for figure in study.figures:
        path = tmp_path / f"{figure.name}.svg"
        if figure.table not in results:
            assert f"headscope {figure.command}" in refusal(headscope, "plot", folder, figure.name, "-o", path)
            assert not path.exists()
    assert "is unknown" in refusal(headscope, "plot", folder, "no_such_figure", "-o", tmp_path / "none.svg")


def test_a_figure_of_a_study_is_refused_for_a_run(study: Study, small: SmallStudies, tmp_path: Path, headscope: Headscope) -> None:
    for figure in study.figures:
        assert f"headscope {figure.command}" in refusal(headscope, "plot", small.run(), figure.name, "-o", tmp_path / "none.svg")


def test_the_report_contains_the_texts_and_figures_of_the_study(any_folder: Path, headscope: Headscope) -> None:
    """The page has the texts that the study declares: titles, explanations, published values, findings and figures."""
    code, out, error = headscope("report", any_folder)
    assert (code, error) == (0, "")
    assert out.strip() == str((any_folder / "report.html").resolve())
    results = Results.open(any_folder)
    page = re.sub(r"<a [^>]*>|</a>", "", unescape((any_folder / "report.html").read_text()))
    wanted = [results.signature]
    if results.study is not None and results.study in REGISTRY:
        study = REGISTRY[results.study]
        shown = [figure for figure in study.figures if figure.title and figure.table in results and len(results[figure.table])]
        wanted += [study.title, study.about, study.published, *findings(results)]
        wanted += [text for figure in shown for text in (figure.title, figure.about)]
        assert page.count('src="data:image/svg+xml') == len(shown)
        published = any(name.startswith("published") and any(results["summary"][name]) for name in results["summary"].columns)
        assert ("All results in numbers, with published values" in page) == published
    for text in wanted:
        assert text in page, text
