"""The studies that laws are tried on: all that are registered, and a toy that is registered for as long as it is tried.

A plugin of the test modules that name it, and not a conftest.py: mypy knows one module of that name.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from small import SmallStudies
from toy import ToyStudy
from typer.main import get_command

from headscope.cli.main import app
from headscope.studies.base import Study
from headscope.studies.registry import REGISTRY

TOY = ToyStudy()


@cache
def command_of(*studies: str) -> Any:
    """The command line with these studies registered; made once, since that takes longer than most commands do."""
    return get_command(app)


@pytest.fixture
def quick_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command line as it would be made when it is called."""
    monkeypatch.setattr("headscope.cli.main.app", lambda: command_of(*REGISTRY)())


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> SmallStudies:
    """What makes the folders of small studies, each once per session."""
    return SmallStudies(tmp_path_factory.mktemp("studies"))


@pytest.fixture
def toy() -> Iterator[Study]:
    """The toy study, registered."""
    REGISTRY.add(TOY)
    yield TOY
    REGISTRY.remove(TOY.name)


@pytest.fixture(params=[*REGISTRY, TOY.name])
def study(request: pytest.FixtureRequest) -> Study:
    """Each study in turn."""
    if request.param == TOY.name:
        request.getfixturevalue("toy")
    return REGISTRY[request.param]
