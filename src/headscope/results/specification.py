"""The base of all specifications: which settings count in the identity of results, and which a signature shows.

A setting counts as changing numbers unless its field is declared otherwise: `Annotated[int, Role.NEUTRAL]` changes
none, and `Annotated[str, Role.CONTENT]` names something, such as a corpus, whose content is hashed instead. A signature
shows each setting that is not neutral and differs from the preset and the default. If the default is None, this is the
value that the corpus or the model decides.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from headscope.core.paths import title
from headscope.core.suggest import choose_from, did_you_mean
from headscope.errors import RunError

Spec = TypeVar("Spec", bound=BaseModel)


class Role(Enum):
    """The role of a setting that does not change numbers by its value."""

    NEUTRAL = "changes no number"
    CONTENT = "names something whose content is hashed"


class Specification(BaseModel):
    """The settings of a run or a study. `presets` has, by preset, the values of settings that are None by default."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}

    @classmethod
    def having(cls, role: Role) -> list[str]:
        """The names of the settings of a role."""
        return [name for name, field in cls.model_fields.items() if role in field.metadata]

    def counted(self) -> dict[str, Any]:
        """The settings that change numbers by their value, as values of JSON."""
        return self.model_dump(mode="json", exclude={*self.having(Role.NEUTRAL), *self.having(Role.CONTENT)})

    def by_preset(self) -> dict[str, Any]:
        """The settings that the preset decides: the given values, or else those of the preset."""
        decided = self._preset()
        return {name: value if (chosen := getattr(self, name)) is None else chosen for name, value in decided.items()}

    def shown(self) -> dict[str, str]:
        """The settings that a signature shows, as text, in the order of their declaration."""
        preset, parts = self._preset(), {}
        for name in self.counted():
            usual = type(self).model_fields[name].get_default(call_default_factory=True, validated_data=dict(self))
            value, *others = map(_plain, (getattr(self, name), usual, preset.get(name, usual)))
            if value not in others:
                parts[name] = text_of(value)
        return parts

    def contents(self, hashes: Mapping[str, str | None]) -> dict[str, str]:
        """The settings whose content is hashed, as a signature shows them: the names of files without folders, and the
        beginning of the hash. A field with a title appears under its title.
        """
        parts = {}
        for name in self.having(Role.CONTENT):
            if digest := hashes.get(name):
                value = getattr(self, name)
                files = value if isinstance(value, tuple) else () if value is None else (value,)
                called = "+".join(title(str(file)) for file in files)
                parts[type(self).model_fields[name].title or name] = f"{called}@{digest[:8]}"
        return parts

    def _preset(self) -> Mapping[str, Any]:
        decided = self.presets.get(getattr(self, "preset", ""), {})
        return {name: value for name, value in decided.items() if name in type(self).model_fields}


def _plain(value: Any) -> Any:
    """A value to compare: for measures only their names, since options are separate parts of a signature."""
    return tuple(value) if isinstance(value, dict) else value


def text_of(value: Any) -> str:
    """A value as text in a signature."""
    return ",".join(map(str, value)) if isinstance(value, tuple | list) else "none" if value is None else str(value)


def validated(kind: type[Spec], settings: Mapping[str, Any], where: str = "the settings") -> Spec:
    """A specification of any kind from plain values, with errors a person can act on."""
    try:
        return kind(**settings)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"]))
        if first["type"] == "extra_forbidden":
            raise RunError(f"{where}: there is no setting {name!r}", choose_from(name, kind.model_fields, "Use")) from None
        if not name:
            problem = first["msg"].removeprefix("Value error, ")
            raise RunError(f"{where}: {problem}", "Name at least one" if problem.endswith("is empty") else "") from None
        meant = did_you_mean(str(first["input"]), re.findall("'([^']+)'", first["msg"])) if first["type"] == "literal_error" else ""
        raise RunError(f"{where}: {name} = {first['input']!r}: {first['msg']}", meant.strip()) from None
