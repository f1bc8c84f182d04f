"""Suggestions for names that are unknown."""

from __future__ import annotations

import pytest

from headscope.core.suggest import choose_from, choose_head, did_you_mean


@pytest.mark.parametrize(
    ("name", "meant"),
    [("nsub", "nsubj"), ("NSUBJ", "nsubj"), ("acl:relc", "acl:relcl"), ("comp", "compound"), ("moon", ""), ("x", ""), ("", "")],
)
def test_the_most_similar_name_is_suggested(name: str, meant: str) -> None:
    known = ("nsubj", "nsubj:pass", "acl:relcl", "compound", "compound:prt")
    assert did_you_mean(name, known) == (f"Did you mean {meant}? " if meant else "")


def test_remedies_suggest_a_name_and_list_the_choices() -> None:
    assert choose_from("clark22", ("clark2", "table1")) == "Did you mean clark2? Use one of clark2, table1"
    assert choose_from(3, (1, 2), "Take") == "Take 1, 2"
    assert choose_head("8-44", ("1-1", "8-4", "12-12")) == "Did you mean 8-4? Its heads are 1-1 to 12-12"
