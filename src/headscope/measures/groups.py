"""Groups of tokens by name: those of `to_sep` and `to_punct`, and groups that the user defines."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from headscope.core.batch import ANY, CLS, IS_WORD, SEP, WORD, PlaceTest, RoleTest
from headscope.core.rows import Test
from headscope.core.suggest import choose_from
from headscope.errors import MeasureError

BUILT_IN: Mapping[str, Test] = MappingProxyType(
    {
        "all": ANY,
        "cls": RoleTest(frozenset({CLS})),
        "sep": RoleTest(frozenset({SEP})),
        "punct": lambda form, role: role == WORD and form in (".", ","),
        "special": RoleTest(ANY.roles - {WORD}),
        "word": IS_WORD,
        "notsep": RoleTest(ANY.roles - {SEP}),
        "first": PlaceTest(stop=1),
        "notfirst": PlaceTest(start=1),
    }
)

SPECIAL_GROUPS = frozenset({"cls", "sep", "special"})


def group(name: str) -> Test:
    """The test of a named group. `=the|a` is the group of exactly these forms, ignoring case."""
    if name.startswith("="):
        forms = frozenset(form.casefold() for form in name[1:].split("|"))
        return lambda form, role: role == WORD and form.casefold() in forms
    if name not in BUILT_IN:
        raise MeasureError(f"token group {name!r} is unknown", choose_from(name, BUILT_IN) + ", or forms as in '=the|a|an'")
    return BUILT_IN[name]
