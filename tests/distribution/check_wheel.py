"""`make check-wheel`: test the package as a user installs it. Build the wheel, check its content, and run the commands
and the Python of the README in another folder, in an environment that cannot see the source tree.

The environment uses the dependencies of the one that runs this script, so that none is installed again: a `.pth` file
names their folder. The `.pth` files in that folder, which name the source tree, are not read.
"""

from __future__ import annotations

import os
import re
import resource
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import tomllib
import urllib.error
import urllib.request
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from helpers.pages import FROM_THE_READER, README, ROOT, commands, python_of

SOURCES = ROOT / "src"
EXCLUDED = ("__pycache__", ".mypy_cache")
# Names that the README uses. In the working folder, a folder and a file have these names.
MODEL, CORPUS = "bert-base-uncased", "en.conllu"
TYPED = """import headscope as hs

run = hs.run("mini", "sampler", ["entropy"])
reveal_type(run)
reveal_type(run["entropy"].table.to_csv())
reveal_type(hs.load("mini"))
reveal_type(hs.__version__)
run.mesures
"""
REVEALED = ("headscope.api.results.Run", "str", "headscope.models.model.Model", "str")


def build(folder: Path) -> Path:
    """Build the wheel from the source tree, and return its path."""
    subprocess.run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT], check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def package_files() -> set[str]:
    """The files of the package in the source tree, as a wheel names them."""
    files = (path.relative_to(SOURCES) for path in SOURCES.rglob("*") if path.is_file())
    return {path.as_posix() for path in files if not {*path.parts} & {*EXCLUDED} and path.suffix not in (".pyc", ".tmp")}


def look_at(wheel: Path) -> None:
    """Raise an error unless the wheel has exactly the files of the package, and a README without relative links."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (about,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        metadata = archive.read(about).decode()
    expected = package_files()
    content = {name for name in names if ".dist-info/" not in name}
    assert content == expected, f"lacking: {sorted(expected - content)}; too much: {sorted(content - expected)}"
    for needed in ("py.typed", "models/mini/config.json", "corpora/sampler/LICENSE", "views/headscope.js", "recipes/clark2019.toml"):
        assert f"headscope/{needed}" in content, needed
    links = re.findall(r"\]\(([^)\s]+)\)", metadata)
    assert links
    relative = [link for link in links if not re.match(r"https://|#", link)]
    assert not relative, f"the README has relative links: {relative}"
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]
    assert all(f"Project-URL: {name}, {url}" in metadata for name, url in urls.items())


def install(wheel: Path, folder: Path) -> Path:
    """Install the wheel into a new environment with the dependencies of this one, and return its `bin` folder."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin" / "python"
    pip: list[str | Path] = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--no-compile",
        wheel,
    ]
    subprocess.run(pip, check=True)
    (place,) = folder.glob("lib/*/site-packages")
    (place / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return python.parent


def environment(bin: Path, home: Path) -> dict[str, str]:
    """The environment variables of the commands: the new environment is first on the path, the source tree is not
    found, and the hub is off. Each command has one thread, since two run at a time.
    """
    hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "MYPYPATH")
    kept = {name: value for name, value in os.environ.items() if name not in hidden}
    return {**kept, "PATH": f"{bin}{os.pathsep}{kept['PATH']}", "HOME": str(home), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}


class Commands:
    """Commands that run in one folder and must succeed; each is printed with the time it took."""

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        self.folder = folder
        self.env = env

    def __call__(self, *command: str | Path, shown: str = "", fails: bool = False) -> str:
        """Run a command, and return what it printed; with `fails`, it must end with an error."""
        started = time.perf_counter()
        done = subprocess.run(command, cwd=self.folder, env=self.env, capture_output=True, text=True)
        print(f"{time.perf_counter() - started:6.1f} s  {shown or shlex.join(map(str, command))}", flush=True)
        if bool(done.returncode) != fails:
            raise SystemExit(f"ended with {done.returncode}:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
        return done.stdout

    def serve(self, *command: str) -> None:
        """Run a command that serves pages, read its first page, and stop it."""
        started = time.perf_counter()
        with subprocess.Popen([*command, "--port", "0"], cwd=self.folder, env=self.env, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                line = process.stdout.readline()
                address = re.search(r"http://\S+", line)
                assert address is not None, line
                assert b"headscope" in first_answer(address.group())
            finally:
                process.terminate()
        print(f"{time.perf_counter() - started:6.1f} s  {shlex.join(['headscope', *command[1:]])}", flush=True)


def first_answer(address: str, tries: int = 240) -> bytes:
    """The page at an address. The server prints the address a moment before it answers, so the request is repeated."""
    for left in reversed(range(tries)):
        try:
            with urllib.request.urlopen(address, timeout=60) as page:
                content: bytes = page.read()
                return content
        except urllib.error.URLError:
            if not left:
                raise
            time.sleep(0.25)
    raise AssertionError


def check_commands(run: Commands, bin: Path) -> None:
    """Run the commands of the README in order, and check the files that they write."""
    for command in commands(README, inline=False):
        verb, *rest = shlex.split(command)
        run.serve(str(bin / verb), *rest) if rest[0] == "serve" else run(bin / verb, *rest, shown=command)
    assert (run.folder / "figure2.pdf").stat().st_size > 1000
    assert (run.folder / "RUN" / "report.html").stat().st_size > 100_000


def check_python(run: Commands, bin: Path) -> None:
    """Run the Python code of the README, and check a script with mypy."""
    for block in python_of(README):
        run(bin / "python", "-c", FROM_THE_READER + block, shown="Python of the README")
    check_types(run, bin / "python")


def check_types(run: Commands, python: Path) -> None:
    """Raise an error unless mypy finds the types of the installed package, and the wrong attribute in the script."""
    script = run.folder / "typed.py"
    script.write_text(TYPED, encoding="utf-8")
    (run.folder / "mypy.ini").write_text(
        "[mypy]\n[mypy-torch.*,transformers.*,numpy.*,pandas.*,polars.*,matplotlib.*]\nfollow_imports = skip\n", encoding="utf-8"
    )
    output = run(sys.executable, "-m", "mypy", "--python-executable", python, script.name, shown="mypy typed.py", fails=True)
    assert re.findall(r'Revealed type is "(?:builtins\.)?([\w.]+)"', output) == [*REVEALED], output
    assert '"Run" has no attribute "mesures"' in output, output


def main() -> None:
    """Build, install and test the wheel."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="headscope-wheel-") as name:
        folder = Path(name)
        wheel = build(folder / "wheel")
        look_at(wheel)
        bin = install(wheel, folder / "environment")
        place = folder / "elsewhere"
        place.mkdir()
        run = Commands(place, environment(bin, folder))
        print(f"{time.perf_counter() - started:6.1f} s  built and installed {wheel.name}", flush=True)
        package = Path(run(bin / "python", "-c", "import headscope; print(headscope.__file__)", shown="import headscope").strip()).parent
        assert package.is_relative_to(folder / "environment"), f"{package} is not what was installed"
        shutil.copytree(package / "models" / "mini", place / MODEL)
        shutil.copy(package / "corpora" / "sampler" / "01_news_ferry.conllu", place / CORPUS)
        version = run(bin / "headscope", "--version", shown="headscope --version")
        assert version.startswith(f"headscope {wheel.name.split('-')[1]}\n"), version
        with ThreadPoolExecutor(2) as pool:
            for checked in [pool.submit(check, run, bin) for check in (check_commands, check_python)]:
                checked.result()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{time.perf_counter() - started:6.1f} s  in all, {used.ru_utime + used.ru_stime:.1f} s of processor time: the wheel works")


if __name__ == "__main__":
    main()
