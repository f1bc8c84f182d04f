"""The notices of what the pages' JavaScript contains are in the package, for the versions that it is built from."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest

LOCK = Path(__file__).parents[2] / "frontend" / "package-lock.json"


@pytest.mark.skipif(not LOCK.is_file(), reason="the front end's sources are not here: notices not checked")
def test_every_package_of_the_bundle_is_named() -> None:
    text = (files("headscope.views") / "LICENSES.txt").read_text(encoding="utf-8")
    packages = json.loads(LOCK.read_text(encoding="utf-8"))["packages"]
    for path, package in packages.items():
        name = path.removeprefix("node_modules/")
        if path and not package.get("dev") and name != "internmap":  # which d3-scale's parts that we use do not need
            assert f"{name} {package['version']}" in text
