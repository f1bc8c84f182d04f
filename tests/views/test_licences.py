"""The package contains the licences of all packages in the JavaScript bundle, in the versions that it is built from."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest

LOCK = Path(__file__).parents[2] / "frontend" / "package-lock.json"


@pytest.mark.skipif(not LOCK.is_file(), reason="the sources of the front end are missing: licences are not checked")
def test_every_package_of_the_bundle_is_named_with_its_version() -> None:
    text = (files("headscope.views") / "LICENSES.txt").read_text(encoding="utf-8")
    packages = json.loads(LOCK.read_text(encoding="utf-8"))["packages"]
    for path, package in packages.items():
        name = path.removeprefix("node_modules/")
        if path and not package.get("dev") and name != "internmap":  # not needed by the parts of d3-scale in the bundle
            assert f"{name} {package['version']}" in text
