"""Specifications with one setting changed, and their signatures."""

from __future__ import annotations

from typing import Any, Literal, get_args, get_origin

from headscope.results.signature import identity, key, signature
from headscope.results.specification import Role, Specification


def changed(annotation: Any, value: Any) -> Any:
    """Another value of a type than this one."""
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
    """The value of a setting, or what the preset makes of it."""
    value = getattr(spec, name)
    return value if value is not None else spec.by_preset().get(name)


def signed(spec: Specification, hashes: dict[str, str | None] | None = None) -> tuple[str, str]:
    """The readable part of a signature, and the hash of everything."""
    contents = dict.fromkeys(spec.having(Role.CONTENT), "0123456789abcdef")
    now = identity(spec, "cpu", {**contents, **(hashes or {})})
    whole = signature(spec, now)
    assert whole.endswith(f"|run:{key(now)[:8]}")
    return whole.rpartition("|run:")[0], key(now)


def usual(kind: type[Specification]) -> Specification:
    """A specification with the default settings."""
    needed = {name: 3 if field.annotation is int else "some" for name, field in kind.model_fields.items() if field.is_required()}
    return kind(**needed)


def shows_nothing_usual(kind: type[Specification]) -> None:
    """The signature of default settings shows the version and what was read, nothing else."""
    spec = usual(kind)
    shown = signed(spec)[0]
    assert len(shown.split("|")) == 1 + len(spec.having(Role.CONTENT)), shown


def shows_what_is_changed(kind: type[Specification]) -> None:
    """Every setting is in the signature and in the identity when it is changed, unless it is neutral or names
    something hashed.
    """
    spec = usual(kind)
    readable, whole = signed(spec)
    for name, field in kind.model_fields.items():
        other, other_whole = signed(spec.model_copy(update={name: changed(field.annotation, current(spec, name))}))
        if Role.NEUTRAL in field.metadata:
            assert (other, other_whole) == (readable, whole), name
        elif Role.CONTENT in field.metadata:  # its content counts, not what it is called
            assert other_whole == whole, name
            content, content_whole = signed(spec, {name: "fedcba9876543210"})
            (part,) = {*content.split("|")} - {*readable.split("|")}
            assert part.startswith(f"{field.title or name}:"), name
            assert part.endswith("@fedcba98"), name
            assert content_whole != whole, name
        else:
            shown = [part.split(":")[0] for part in {*other.split("|")} - {*readable.split("|")}]
            # What is usual for some settings depends on others: kept as they were, they are no longer usual.
            own = [part for part in shown if part == name or kind.model_fields[part].default_factory is None]
            assert own == [name], f"{name} is changed, and the signature shows {own}"
            assert other_whole != whole, name
