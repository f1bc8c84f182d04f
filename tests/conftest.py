"""Settings and fixtures that all tests share."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch
from hypothesis import settings

if TYPE_CHECKING:
    from headscope.models.model import Model

# Tests run in parallel, one process per core, so each process uses one thread. The number of threads changes only the
# time, not the results. `make test` sets the same limit for numpy.
torch.set_num_threads(1)
os.environ["OMP_NUM_THREADS"] = "1"
settings.register_profile("any machine", deadline=None)  # an example takes longer on a busy machine
settings.load_profile("any machine")
# A background job of a script ignores these signals, and so would the processes that the tests start: Ctrl-C could not
# be tested.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real corpora. If HEADSCOPE_DATA is not set, the tests that need it are skipped with a message."""
    folder = os.environ.get("HEADSCOPE_DATA")
    if not folder:
        pytest.skip("HEADSCOPE_DATA is not set: real-corpus tests skipped")
    path = Path(folder)
    if not path.is_dir():
        pytest.fail(f"HEADSCOPE_DATA is {folder!r}, which is not a folder")
    return path


@pytest.fixture(scope="session")
def mini() -> Model:
    """The embedded model. All tests share it: a test that changes a model loads a separate copy."""
    from helpers.small_models import load_mini

    return load_mini()


@pytest.fixture(scope="session")
def mini_decoder() -> Model:
    """The embedded language model, shared like `mini`."""
    from helpers.small_models import load_mini_decoder

    return load_mini_decoder()


@pytest.fixture(scope="session")
def writer() -> Model:
    """The embedded language model with its prediction head, shared like `mini`."""
    from helpers.small_models import load_writer

    return load_writer()


@pytest.fixture(scope="session")
def small_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a model with two layers of two heads. No test writes to it."""
    from helpers.small_models import save_small

    return save_small(tmp_path_factory.mktemp("models") / "small")


@pytest.fixture(scope="session")
def small_model(small_folder: Path) -> Model:
    """The model in `small_folder`. All tests share it: a test that changes a model loads a separate copy."""
    from headscope.models.load import load

    return load(small_folder)


@pytest.fixture
def workers_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the workers of the engine `processes` in this process."""
    from headscope.engine import processes
    from helpers.workers import WorkersHere

    monkeypatch.setattr(processes, "ProcessPool", WorkersHere)


@cache
def _command(*studies: str) -> Callable[[], None]:
    """The command line with these studies registered. It is built once: that takes longer than most commands."""
    from typer.main import get_command

    from headscope.cli.main import app

    return get_command(app)


@pytest.fixture
def headscope(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str, str]]:
    """Return a function that calls `headscope` as its script does, but in this process: a new one takes seconds to
    start. The function returns the exit code, the standard output and the standard error.
    """
    from headscope.cli import main
    from headscope.studies.registry import REGISTRY

    def call(*arguments: str | Path) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["headscope", *map(str, arguments)])
        command = _command(*REGISTRY)
        capsys.readouterr()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(main, "app", command)
            with pytest.raises(SystemExit) as ended:
                main.main()
        assert isinstance(ended.value.code, int)
        return ended.value.code, *capsys.readouterr()

    return call
