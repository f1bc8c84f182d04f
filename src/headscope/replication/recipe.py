"""Recipes: the steps and the claims of a paper as data, with the place of our number for each claim."""

from __future__ import annotations

import hashlib
import tomllib
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from headscope.core.paths import problem_of
from headscope.core.suggest import choose_from
from headscope.errors import RunError
from headscope.studies.registry import REGISTRY

Take = Literal["one", "least", "most", "count", "share"]
Expect = Literal["sign", "above", "below", "within", "order", "curve", "correlation", "none"]
Source = Literal["printed", "notebook", "results", "by eye", "recalled", "recomputed"]
Value = str | int | float | bool
NONE = "none"  # the absence of a value in a recipe, because TOML has no null
SUFFIX = ".toml"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Theirs(_Part):
    """The paper's model, data and settings, shown in every row; `settings` are compared with the step's."""

    model: str
    data: str
    settings: dict[str, Any] = Field(default_factory=dict)


class Figure(_Part):
    """Our figure for one of the paper's figures."""

    name: str
    place: str


class Step(_Part):
    """A run or a study. `corpus` and `dev` are roles of corpora; `model` may be a step that trains one.

    `brief` are settings that keep the step short, and that --full omits. `default` is used if no corpus is named for
    the role, unless it is none.
    """

    name: str = Field(pattern=r"^[a-z][a-z0-9-]*$")
    title: str
    verb: str
    corpus: str
    default: str = "sampler"
    dev: str | None = None
    model: str | None = None
    settings: dict[str, Any] = Field(default_factory=dict)
    brief: dict[str, Any] = Field(default_factory=dict)
    theirs: Theirs
    figures: tuple[Figure, ...] = ()

    @field_validator("verb")
    @classmethod
    def _known(cls, value: str) -> str:
        if value not in (known := ["run", "train", *(study.verb for study in REGISTRY.values())]):
            raise ValueError(f"unknown kind of step {value!r}: use one of {', '.join(known)}")
        return value

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles of its corpora."""
        return (self.corpus, *([self.dev] if self.dev is not None else []))


class Where(_Part):
    """The place of our number: the rows of a step's table, what is taken of them, and its interval.

    `rows` are values of columns, or lists of alternatives. `any_of` takes the first value of a list that exists, for
    labels that have several names. `depth` = [6, 10, 12] takes layers 6 to 10 of 12, or the same part of a model of
    another depth. A direction is significant if the interval in the columns `difference_interval` (by default
    `interval`) excludes 0, and `p`, if it is named, is below .05. `test_rows` names values of columns of another row,
    which has that interval, p and n: those of a test that does not count layers as observations. `chosen_from` is the
    table of heads of which the row is the best, if it was chosen on the documents that it is scored on. `n_counts` says
    what n counts.
    """

    step: str
    table: str
    column: str
    rows: dict[str, Value | list[Value] | None] = Field(default_factory=dict)
    any_of: dict[str, list[Value]] = Field(default_factory=dict)
    depth: tuple[int, int, int] | None = None
    take: Take = "one"
    more_than: float | None = None
    interval: tuple[str, str] | None = None
    difference_interval: tuple[str, str] | None = None
    p: str | None = None
    test_rows: dict[str, Value] = Field(default_factory=dict)
    chosen_from: str | None = None
    baseline: str | None = None
    n: str = "n"
    n_counts: str = ""
    named: str | None = None
    scale: float = 1.0

    @model_validator(mode="after")
    def _counted(self) -> Where:
        if (self.take in ("count", "share")) != (self.more_than is not None):
            raise ValueError("more_than goes with take = count or share: of the rows whose column is above that")
        return self


class Item(_Part):
    """One of several numbers in an order: its name, its published value, and the place of ours."""

    name: str
    published: float
    where: Where


class Claim(_Part):
    """One claim of a paper: its number, the place of ours, and the condition under which it holds.

    `published_error` is the standard error of the published number (1 for a t): a number within 1.96 standard errors
    of 0 has no direction. `about` is "data" for a number that does not depend on a model. `same_as` is the claim whose
    number of ours equals this one by construction.
    """

    id: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_*:.-]*$")
    place: str
    says: str
    unit: str = ""
    source: Source = "printed"
    published: float | tuple[float, ...] | None = None
    published_error: float | None = None
    baseline: float | None = None
    named: str = ""
    remark: str = ""
    about: Literal["model", "data"] = "model"
    same_as: str = ""
    where: Where | None = None
    other: Where | None = None
    items: tuple[Item, ...] = ()
    expect: Expect = "none"
    threshold: float | None = None
    comparable_if: dict[str, Any] = Field(default_factory=dict)
    may_lack: bool = False
    differs: str = ""

    @model_validator(mode="after")
    def _fits(self) -> Claim:
        wanted = {
            "above": self.threshold is not None,
            "below": self.threshold is not None,
            "order": len(self.items) > 1,
            "curve": isinstance(self.published, tuple) and len(self.published) > 2,
            "correlation": self.other is not None and self.published is not None,
            "sign": isinstance(self.published, float),
            "within": isinstance(self.published, float),
        }
        needs = {"above": "threshold", "below": "threshold", "order": "items", "curve": "published, a list", "correlation": "other"}
        if not wanted.get(self.expect, True):
            raise ValueError(f'{self.id}: expect = "{self.expect}" needs {needs.get(self.expect, "published, a number")}')
        if self.expect == "sign" and self.where is not None and self.where.baseline is not None and self.where.difference_interval is None:
            raise ValueError(f"{self.id}: a sign beside a baseline needs difference_interval, the interval of the difference from it")
        if (self.where is None) == (not self.items):
            raise ValueError(f"{self.id}: give either where, the place of our number, or items, several of them")
        return self

    @property
    def places(self) -> tuple[Where, ...]:
        """The places of the numbers that it needs."""
        return tuple(place for place in (self.where, self.other, *(item.where for item in self.items)) if place is not None)

    @property
    def number(self) -> str:
        """The key of its number of ours: equal for claims that use the same number."""
        return "\n".join(sorted(place.model_dump_json() for place in self.places))


class Recipe(_Part):
    """A paper as steps and claims."""

    name: str
    title: str
    authors: str
    year: int | None = None
    venue: str
    about: str
    steps: tuple[Step, ...] = Field(min_length=1)
    claims: tuple[Claim, ...] = Field(min_length=1)

    @field_validator("claims", mode="before")
    @classmethod
    def _cases(cls, value: object) -> object:
        return [case for claim in value for case in _spread(claim)] if isinstance(value, list) else value

    @model_validator(mode="after")
    def _whole(self) -> Recipe:
        for what, names in (("step", [step.name for step in self.steps]), ("claim", [claim.id for claim in self.claims])):
            if twice := [name for name in names if names.count(name) > 1]:
                raise ValueError(f"two {what}s are called {twice[0]!r}")
        trained = [step.name for step in self.steps if step.verb == "train"]
        for step in self.steps:
            if step.model is not None and step.model not in trained:
                raise ValueError(f"step {step.name}: model = {step.model!r} is not a step that trains a model")
        for claim in self.claims:
            if unknown := [place.step for place in claim.places if place.step not in {step.name for step in self.steps}]:
                raise ValueError(f"claim {claim.id}: there is no step {unknown[0]!r}")
            if claim.same_as and claim.same_as not in {other.id for other in self.claims}:
                raise ValueError(f"claim {claim.id}: same_as = {claim.same_as!r} is not a claim")
        return self

    @cached_property
    def repeats(self) -> dict[str, str]:
        """The claims that use the same number of ours as an earlier claim, with that claim."""
        first: dict[str, str] = {}
        repeated: dict[str, str] = {}
        for claim in self.claims:
            earlier = claim.same_as or first.setdefault(claim.number, claim.id)
            if earlier != claim.id:
                repeated[claim.id] = earlier
        return repeated

    @cached_property
    def roles(self) -> tuple[str, ...]:
        """The roles for which corpora can be given."""
        return tuple(dict.fromkeys(role for step in self.steps for role in step.roles))

    def step(self, name: str) -> Step:
        """The step of that name."""
        return next(step for step in self.steps if step.name == name)


def _spread(claim: object) -> list[object]:
    """A claim, or one per `cases`: a case gives values for the names in the claim's braces, and further fields."""
    if not isinstance(claim, dict) or not isinstance(claim.get("cases"), list):
        return [claim]
    common = {name: value for name, value in claim.items() if name != "cases"}
    claims: list[object] = []
    for case in claim["cases"]:
        if not isinstance(case, dict):
            return [claim]
        filled = _filled(common, case)
        fields = {name: value for name, value in case.items() if name in Claim.model_fields}
        where = filled.get("where")
        for name in ("rows", "any_of", "step") if isinstance(where, dict) else ():
            if name in case:
                where[name] = {**where.get(name, {}), **case[name]} if isinstance(case[name], dict) else case[name]
        claims.append({**filled, **fields})
    return claims


def _filled(value: Any, case: dict[str, Any]) -> Any:
    if isinstance(value, dict):
        return {name: _filled(part, case) for name, part in value.items()}
    if isinstance(value, list):
        return [_filled(part, case) for part in value]
    if isinstance(value, str) and "{" in value:
        for name, filling in case.items():
            if value == f"{{{name}}}":
                return filling
            value = value.replace(f"{{{name}}}", str(filling))
    return value


def recipe_names() -> list[str]:
    """The recipes that come with headscope."""
    return sorted(file.name.removesuffix(SUFFIX) for file in (files("headscope") / "recipes").iterdir() if file.name.endswith(SUFFIX))


def read_recipe(name: str | Path) -> tuple[Recipe, str]:
    """A recipe by its name or in a TOML file, and a hash of it."""
    if str(name) in recipe_names():
        data, where = (files("headscope") / "recipes" / f"{name}{SUFFIX}").read_bytes(), f"{name}{SUFFIX}"
    else:
        path, where = Path(name), str(name)
        if path.suffix != SUFFIX:
            remedy = f"{choose_from(name, recipe_names())}, or your own file that ends in {SUFFIX}"
            raise RunError(f"there is no recipe {str(name)!r}", remedy)
        if problem := problem_of(path):
            raise RunError(f"{path}: {problem[0]}", f"{problem[1]}; or use one of {', '.join(recipe_names())}")
        try:
            data = path.read_bytes()
        except OSError as error:
            raise RunError(f"{path} cannot be read ({error.strerror})", "Check its permissions") from None
    try:
        content = tomllib.loads(data.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RunError(f"{where} is not a TOML file ({error})", "Start from a built-in recipe (docs/replication.md)") from None
    return checked(content, where), hashlib.sha256(data).hexdigest()


def checked(content: dict[str, Any], where: str) -> Recipe:
    """The recipe from plain values; an error says which key of which file is wrong, its value, and what to do."""
    try:
        return Recipe.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        kind, key = first["type"], _named(content, first["loc"])
        if kind == "extra_forbidden":
            raise RunError(f"{where}: unknown key {key}", "Keys are in docs/replication.md") from None
        if kind == "missing":
            raise RunError(f"{where}: {key} is missing", "Add it: keys are in docs/replication.md") from None
        problem = first["msg"].removeprefix("Value error, ")
        value = f" = {first['input']!r}" if key and not isinstance(first["input"], dict | list | BaseModel) else ""
        raise RunError(f"{where}: {key or 'the recipe'}{value}: {problem}", "Keys are in docs/replication.md") from None


def _named(content: dict[str, Any], place: tuple[int | str, ...]) -> str:
    """A readable place in a file: `claims.sep-share.where.column`."""
    claims = content.get("claims")
    spread = {**content, "claims": [case for claim in claims for case in _spread(claim)]} if isinstance(claims, list) else content
    names: list[str] = []
    value: Any = spread
    for part in place:
        if isinstance(part, str) and part in ("float", "tuple[float, ...]"):
            continue
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            value = None
        if isinstance(part, int) and isinstance(value, dict):
            names.append(str(value.get("id") or value.get("name") or part + 1))
        else:
            names.append(str(part + 1) if isinstance(part, int) else part)
    return ".".join(names)
