"""Shared fixtures of the tests of studies."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headscope.studies.base import Study
from headscope.studies.registry import REGISTRY
from headscope.studies.spec import StudySpec
from helpers.small import TOY, SmallStudies, registered_toy, small_studies
from helpers.study_laws import OTHERS, STUDIES, Caught, Headscope


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> SmallStudies:
    """The small version of every study; each is executed once."""
    return small_studies(tmp_path_factory.getbasetemp())


@pytest.fixture
def toy() -> Iterator[Study]:
    """The toy study, registered."""
    with registered_toy() as study:
        yield study


@pytest.fixture(params=STUDIES)
def study(request: pytest.FixtureRequest) -> Study:
    """Each study in turn."""
    if request.param == TOY.name:
        request.getfixturevalue("toy")
    return REGISTRY[request.param]


@pytest.fixture
def folder(study: Study, small: SmallStudies, tmp_path: Path) -> Path:
    """A copy of the folder of a finished study, which a test may change."""
    return Path(shutil.copytree(small.folder(study.name), tmp_path / "study"))


@pytest.fixture(params=[*STUDIES, *OTHERS])
def any_folder(request: pytest.FixtureRequest, small: SmallStudies, tmp_path: Path) -> Path:
    """A copy of the folder of a finished study, a replication or joined studies."""
    if request.param == TOY.name:
        request.getfixturevalue("toy")
    made = getattr(small, request.param)() if request.param in OTHERS else small.folder(request.param)
    return Path(shutil.copytree(made, tmp_path / "study"))


@pytest.fixture
def specified(monkeypatch: pytest.MonkeyPatch, headscope: Headscope, tmp_path: Path) -> Callable[..., Caught | str]:
    """A function that runs a command and returns the settings it would execute a study with, or its error message."""
    monkeypatch.chdir(tmp_path)

    def catch(study: Study | str, settings: StudySpec, out: Path | None = None, **_: Any) -> None:
        raise Caught(settings, out)

    monkeypatch.setattr("headscope.studies.execute.execute", catch)

    def call(*arguments: str | Path) -> Caught | str:
        try:
            return headscope(*arguments)[2]
        except Caught as caught:
            return caught

    return call
