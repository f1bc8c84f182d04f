"""The page of a replication, opened from disk without a network, in a wide dark window and in a narrow light one."""

from __future__ import annotations

from pathlib import Path

import pytest

from headscope.replication import read_recipe
from headscope.replication.numbers import Number
from headscope.replication.verdicts import VERDICTS, Outcome, row
from headscope.report import write_report
from headscope.results.results import Results
from headscope.results.table import Table
from helpers.browsing import Visitor, violations


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a page with every claim of Clark et al., all verdicts in turn, long cells, and steps not done."""
    recipe, _ = read_recipe("clark2019")
    numbers = [Number(0.12345, 0.1, 0.2, n=12_345, named="10-11"), None]
    claims = []
    for place, claim in enumerate(recipe.claims):
        outcome = Outcome(
            VERDICTS[place % len(VERDICTS)], "for a reason that takes a while to tell" if place % 3 else "", numbers[place % 2]
        )
        claims.append(row(claim, outcome, f"model: mini, not bert-base-uncased; data: a-file-with-a-long-name.conllu.xz; {claim.differs}"))
    steps = [{"step": s.name, "title": s.title, "verb": s.verb, "done": False, "why": "no trees", "signature": ""} for s in recipe.steps]
    manifest = {
        **{"study": "replication", "signature": "headscope:0|recipe:clark2019@0", "settings": {"model": "mini", "corpus": ["sampler"]}},
        **{"paper": recipe.model_dump(include={"name", "title", "authors", "year", "venue", "about"}), "findings": ["Of some claims."]},
        **{"figures": {}, "identity": {}, "sites": [], "dropped": []},
    }
    tables = {"claims": claims, "steps": steps}
    made = {name: Table.of({key: [one[key] for one in rows] for key in rows[0]}) for name, rows in tables.items()}
    return write_report(Results(manifest, made), tmp_path_factory.mktemp("page") / "report.html").as_uri()


@pytest.mark.parametrize(("width", "dark"), [(1280, True), (390, False)])
def test_the_page_is_accessible_and_fits_the_window(page: str, width: int, dark: bool, visitor: Visitor) -> None:
    shown = visitor.open(page, width=width, dark=dark, offline=True, drawn=False)
    assert shown.locator("h1").inner_text() == "Replication of Clark et al. 2019 with mini"
    assert shown.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    rows = shown.locator("#claims tbody tr:not(.group)")
    assert rows.count() == len(read_recipe("clark2019")[0].claims)
    assert rows.first.is_visible()
    assert shown.locator("#claims .verdict").first.is_visible()
    assert violations(shown) == []


def test_claims_are_linked_to_their_steps(page: str, visitor: Visitor) -> None:
    shown = visitor.open(page, offline=True, drawn=False)
    shown.locator("#claims .group a").first.click()
    assert shown.url.endswith("#step-surface")
    assert "Not done: no trees." in shown.locator("#step-surface").inner_text()
    assert Path(page.removeprefix("file://")).stat().st_size < 1_500_000
