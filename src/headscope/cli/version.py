"""`headscope --version`: what is installed, without importing any of it."""

from __future__ import annotations

import os
import platform
import re
from importlib.util import find_spec
from pathlib import Path

import typer

from headscope.core.versions import version_of

_DRIVER = Path("/proc/driver/nvidia/gpus")  # where the driver of NVIDIA lists its devices on Linux


def print_version(wanted: bool) -> None:
    """Print the versions and exit, if `wanted`."""
    if wanted:
        typer.echo("\n".join(lines()))
        raise typer.Exit


def lines() -> list[str]:
    """headscope, Python, torch and transformers with their versions, and the device that models run on by default."""
    versions = {"headscope": version_of("headscope"), "Python": platform.python_version()}
    versions |= {package: version_of(package) for package in ("torch", "transformers")}
    return [*(f"{name} {version}" for name, version in versions.items()), f"device {device()}"]


def device(driver: Path = _DRIVER) -> str:
    """`cuda` with the names of the devices if torch is built for it and the driver lists any that are not hidden from
    this process, and else `cpu`. If torch is built for a GPU and none is listed here, the text refers to `headscope
    doctor`, which asks torch.
    """
    models = [re.search(r"Model:\s*(.+)", file.read_text()) for file in sorted(driver.glob("*/information"))]
    names = [model.group(1).strip() for model in models if model is not None]
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES", "0") in ("", "-1")
    built = _built_for_gpu()
    if names and not hidden and built:
        return f"cuda ({', '.join(names)})"
    unsure = "; headscope doctor lists others" if built and not hidden else ""
    return f"cpu ({os.cpu_count()} processors{unsure})"


def _built_for_gpu() -> bool:
    """Whether the installed torch was built for CUDA or ROCm, as its file of versions says."""
    torch = find_spec("torch")
    if torch is None or torch.origin is None:
        return False
    versions = Path(torch.origin).with_name("version.py").read_text(encoding="utf-8")
    return re.search(r"^(?:cuda|hip)\b[^=]*=\s*['\"]", versions, re.MULTILINE) is not None
