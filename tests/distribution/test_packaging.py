"""The metadata of the package: versions, extras and links. `make check-wheel` tests the wheel."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

import headscope as hs
from distribution.check_wheel import look_at, package_files
from headscope.cli import version as command
from helpers.pages import README, ROOT

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
NOT_FOR_USERS = {"all", "dev", "docs", "quantised"}  # `quantised` delays the start of every process by seconds: see pyproject.toml
BASE = "https://github.com/headscope/headscope"


def test_version_is_printed_without_importing_torch() -> None:
    code = "import sys; sys.argv = ['headscope', '--version']\nfrom headscope.cli.main import main\ntry: main()\nfinally: "
    code += "assert not {'torch', 'transformers', 'numpy', 'pyarrow'} & {*sys.modules}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    expected = [f"headscope {version('headscope')}", f"Python {sys.version.split()[0]}"]
    expected += [f"{name} {version(name)}" for name in ("torch", "transformers")]
    assert done.stdout.splitlines()[:-1] == expected
    assert done.stdout.splitlines()[-1].startswith("device c")
    assert hs.__version__ == version("headscope")
    assert "__version__" in dir(hs)


def test_a_gpu_is_named_only_if_torch_and_the_driver_support_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    (tmp_path / "0000:01:00.0").mkdir()
    (tmp_path / "0000:01:00.0" / "information").write_text("Model: \t\t NVIDIA H200\nIRQ:   \t\t 74\n")
    monkeypatch.setattr(command, "_built_for_gpu", lambda: True)
    assert command.device(tmp_path) == "cuda (NVIDIA H200)"
    assert re.fullmatch(r"cpu \(\d+ processors; headscope doctor lists others\)", command.device(tmp_path / "none"))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert re.fullmatch(r"cpu \(\d+ processors\)", command.device(tmp_path))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    monkeypatch.setattr(command, "_built_for_gpu", lambda: False)
    assert re.fullmatch(r"cpu \(\d+ processors\)", command.device(tmp_path))


def test_built_for_gpu_agrees_with_the_version_of_torch() -> None:
    import torch

    assert command._built_for_gpu() == (torch.version.cuda is not None or torch.version.hip is not None)


def test_the_extra_all_has_every_extra_for_users() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    (whole,) = extras["all"]
    names = re.fullmatch(r"headscope\[(.*)\]", whole)
    assert names is not None
    assert set(names.group(1).split(",")) == set(extras) - NOT_FOR_USERS


def packaged_readme() -> str:
    """The README as a package index shows it."""
    text = README.read_text(encoding="utf-8")
    for rule in PROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(rule["pattern"], rule["replacement"], text)
    return text


def test_links_of_the_packaged_readme_lead_into_the_repository() -> None:
    text = packaged_readme()
    pictures, links = (re.findall(rf"{begin}\[(?:[^\]\[]|\[[^\]]*\])*\]\(([^)\s]+)\)", text) for begin in ("!", "(?<!!)"))
    assert pictures
    assert len(links) > 20
    for address, way in [*((picture, "raw") for picture in pictures), *((link, "blob") for link in links)]:
        if address.startswith(BASE):
            path = address.removeprefix(f"{BASE}/{way}/main/").partition("#")[0]
            assert (ROOT / path).is_file(), address
        else:
            assert address.startswith("https://"), f"{address} is relative"
    assert not re.search(r"<(?:img|a)\s", text)


def test_the_packaged_readme_differs_only_in_its_links() -> None:
    text = packaged_readme()
    assert re.sub(rf"\({BASE}/(?:raw|blob)/main/", "(", text) == README.read_text(encoding="utf-8")


def test_project_urls_and_citation_have_the_same_address_and_version() -> None:
    assert {url.removeprefix(BASE)[:1] for url in PROJECT["project"]["urls"].values()} == {"", "/"}
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nrepository-code: {BASE}\n" in citation
    assert f"\nversion: {PROJECT['project']['version']}\n" in citation


def test_the_package_has_a_py_typed_file() -> None:
    assert (ROOT / "src" / "headscope" / "py.typed").is_file()


def wheel(path: Path, names: set[str], readme: str) -> Path:
    """Write a wheel of empty files with the README in its metadata, and return its path."""
    urls = "".join(f"Project-URL: {name}, {url}\n" for name, url in PROJECT["project"]["urls"].items())
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, b"")
        archive.writestr("headscope-1.dist-info/METADATA", f"{urls}\n{readme}")
    return path


def test_a_wheel_with_wrong_files_or_relative_links_is_refused(tmp_path: Path) -> None:
    files = package_files()
    look_at(wheel(tmp_path / "good.whl", files, packaged_readme()))
    for names, says in (
        (files - {"headscope/views/headscope.js"}, r"lacking: \['headscope/views/headscope.js'\]; too much: \[\]"),
        (files | {"tests/conftest.py"}, r"too much: \['tests/conftest.py'\]"),
    ):
        with pytest.raises(AssertionError, match=says):
            look_at(wheel(tmp_path / "bad.whl", names, packaged_readme()))
    with pytest.raises(AssertionError, match=r"docs/tour\.md"):
        look_at(wheel(tmp_path / "bad.whl", files, README.read_text(encoding="utf-8")))


def test_ci_runs_check_wheel() -> None:
    assert "\nmake check-wheel\n" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
