"""Specifications with one setting changed, and their signatures."""

from __future__ import annotations

from typing import Any, Literal, get_args, get_origin

from headscope.results.signature import identity, key, signature
from headscope.results.specification import Role, Specification


def changed(annotation: Any, value: Any) -> Any:
    """A value of the type that differs from `value`."""
    options = [option for option in get_args(annotation) if option is not type(None)]
    if get_origin(annotation) is Literal:
        return next(option for option in options if option != value)
    if get_origin(annotation) is tuple:
        some = changed(options[0], value and value[0])
        return (some,) * (1 if options[-1] is Ellipsis else len(options))
    if get_origin(annotation) is dict:
        return {"entropy": {}}
    if options and get_origin(annotation) not in (tuple, dict):
        return changed(options[0], value)
    if annotation is bool:
        return not value
    return "another" if annotation is str else (value or 0) + annotation(3)


def current(spec: Specification, name: str) -> Any:
    """The value of a setting; if it is None, the value that the preset chooses."""
    value = getattr(spec, name)
    return value if value is not None else spec.by_preset().get(name)


def signed(spec: Specification, hashes: dict[str, str | None] | None = None) -> tuple[str, str]:
    """The readable part of the signature, and the hash of the identity."""
    contents = dict.fromkeys(spec.having(Role.CONTENT), "0123456789abcdef")
    now = identity(spec, "cpu", {**contents, **(hashes or {})})
    whole = signature(spec, now)
    assert whole.endswith(f"|run:{key(now)[:8]}")
    return whole.rpartition("|run:")[0], key(now)


def usual(kind: type[Specification]) -> Specification:
    """A specification with the default settings, and with some value for each required setting."""
    needed = {name: 3 if field.annotation is int else "some" for name, field in kind.model_fields.items() if field.is_required()}
    return kind(**needed)


def shows_nothing_usual(kind: type[Specification]) -> None:
    """Check that the signature of default settings shows only the version and the content that was read."""
    spec = usual(kind)
    shown = signed(spec)[0]
    assert len(shown.split("|")) == 1 + len(spec.having(Role.CONTENT)), shown


def shows_what_is_changed(kind: type[Specification]) -> None:
    """Check that every changed setting is in the signature and changes the identity, unless it is neutral or names
    content that is hashed.
    """
    spec = usual(kind)
    readable, whole = signed(spec)
    for name, field in kind.model_fields.items():
        other, other_whole = signed(spec.model_copy(update={name: changed(field.annotation, current(spec, name))}))
        if Role.NEUTRAL in field.metadata:
            assert (other, other_whole) == (readable, whole), name
        elif Role.CONTENT in field.metadata:  # its content counts, not its name
            assert other_whole == whole, name
            content, content_whole = signed(spec, {name: "fedcba9876543210"})
            (part,) = {*content.split("|")} - {*readable.split("|")}
            assert part.startswith(f"{field.title or name}:"), name
            assert part.endswith("@fedcba98"), name
            assert content_whole != whole, name
        else:
            shown = [part.split(":")[0] for part in {*other.split("|")} - {*readable.split("|")}]
            # Some defaults depend on other settings. If a default changes and the setting keeps its value, the setting
            # appears in the signature, too.
            independent = [part for part in shown if part == name or kind.model_fields[part].default_factory is None]
            assert independent == [name], f"{name} is changed, and the signature shows {independent}"
            assert other_whole != whole, name
