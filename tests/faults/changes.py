"""Changes during a run: its corpus, model and settings change, other processes use its folder, and signals arrive."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from kills import RUN, a_run
from trials import Tally, child, contents, different, ended, orphans, refusal

import headscope as hs
from headscope.errors import RunError
from headscope.models.model import Model
from headscope.results.folder import Folder
from headscope.results.results import Results

LONGER: dict[str, Any] = {**RUN, "limit": 80, "replicates": 20}


def texts(path: Path, n: int = 40) -> Path:
    """Write a corpus of `n` texts, one per line, and return its path."""
    lines = [json.dumps({"id": f"d{number}", "text": f"The cat number {number} sat on a mat. It slept well."}) for number in range(n)]
    path.write_text("\n".join(lines) + "\n")
    return path


def under_resume(place: Path, model: Model) -> Tally:
    """Stop a run, change everything that its results depend on, one thing at a time, and try to resume it."""
    tally = Tally("corpus, model, settings, measures or versions changed under `--resume`")
    place.mkdir(parents=True, exist_ok=True)
    corpus = texts(place / "texts.jsonl")
    settings: dict[str, Any] = {"measures": ["entropy"], "shard_tokens": 60, "replicates": 5, "gallery": 0}
    stop_after(2, lambda progress: hs.run(model, corpus, out=place / "run", progress=progress, **settings))
    weights = model.network.encoder.layer[3].attention.self.key.weight
    original = corpus.read_bytes()

    def check_refused(words: str, **changed: Any) -> None:
        message = refusal(lambda: hs.run(model, corpus, out=place / "run", resume=True, **{**settings, **changed}))
        tally.add("refused, naming what changed" if message else "not refused", words in str(message), f"{words}: {message}")

    for changed in (original[:-20], original + original[-80:], original.replace(b"cat", b"dog")):
        corpus.write_bytes(changed)
        check_refused("the corpus has changed")
        corpus.write_bytes(original)
    for weight_index in ((0, 0), (5, 7), (-1, -1)):
        before = float(weights[weight_index])
        weights[weight_index] = before + 1e-3
        model.__dict__.pop("fingerprint", None)
        check_refused("the model has changed")
        weights[weight_index] = before
        model.__dict__.pop("fingerprint", None)
    check_refused("seed was 0 and is 1", seed=1)
    check_refused("max_length was 128 and is 64", max_length=64)
    check_refused("limit was None and is 5", limit=5)
    check_refused("entropy was", measures={"entropy": {"base": "bits"}})
    manifest = Folder(place / "run").read_manifest()
    identity = manifest["identity"]
    for package in ("headscope", "torch", "transformers", "numpy"):
        other = {**identity, "versions": {**identity["versions"], package: "0.0"}}
        Folder(place / "run").write_manifest({**manifest, "identity": other})
        check_refused(f"{package} was '0.0'")
    Folder(place / "run").write_manifest(manifest)
    hs.run(model, corpus, out=place / "run", resume=True, **settings)
    hs.run(model, corpus, out=place / "whole", **settings)
    differs = different(contents(place / "whole"), contents(place / "run"))
    tally.add("resumed when all was as before, identical", not differs, str(differs))
    return tally


def stop_after(shards: int, make: Callable[[Any], Any]) -> None:
    """Stop a run at the first report of progress after this many."""
    calls = 0

    def on_progress(*_: object) -> None:
        nonlocal calls
        calls += 1
        if calls > shards:
            raise RunError("stopped")

    message = refusal(lambda: make(on_progress))
    assert message == "stopped", message


def during_the_run(place: Path, model: Model) -> Tally:
    """Change a corpus file while a run reads it."""
    tally = Tally("corpus file appended to, truncated, rewritten or replaced while it is read, or between hashing and reading")
    place.mkdir(parents=True, exist_ok=True)
    settings: dict[str, Any] = {"measures": ["entropy"], "shard_tokens": 60, "replicates": 5, "gallery": 0}

    def appended(path: Path) -> None:
        with path.open("ab") as stream:
            stream.write(b'{"text": "One more."}\n')

    def rewritten(path: Path) -> None:
        path.write_bytes(path.read_bytes().replace(b"slept", b"wept "))

    def replaced(path: Path) -> None:
        other = path.with_name("other")
        other.write_bytes(path.read_bytes().replace(b"cat", b"dog"))
        other.replace(path)

    changes: tuple[Callable[[Path], Any], ...] = (appended, lambda path: os.truncate(path, 500), rewritten, replaced)
    for number, change in enumerate(changes):
        for when in (0, 1, 3):
            corpus = texts(place / f"{number}-{when}.jsonl")
            original = corpus.read_bytes()
            out = place / f"run-{number}-{when}"
            named = hs.read(corpus)
            calls = 0

            def on_progress(
                share: Any, texts: int, tokens: int, change: Callable[[Path], Any] = change, corpus: Path = corpus, when: int = when
            ) -> None:
                nonlocal calls
                calls += 1
                if calls == when:
                    change(corpus)

            if when == 0:
                named.hash()
                change(corpus)
            message = refusal(partial(hs.run, model, named, out=out, progress=on_progress, **settings))
            noticed = "has changed" in str(message)
            corpus.write_bytes(original)  # with the file restored, no stored result may come from the changed file
            how: dict[str, Any] = {"resume": True} if (out / "partial").exists() else {}
            hs.run(model, corpus, out=out, **settings, **how)
            hs.run(model, corpus, out=place / "whole", overwrite=True, **settings)
            differs = different(contents(place / "whole"), contents(out))
            differs = [name for name in differs if name != "run.json"]
            outcome = "noticed, nothing of it kept" if noticed else "not noticed"
            tally.add(outcome, noticed and not differs, f"{number} {when}: {message} {differs}")
    return tally


def together(place: Path, engine: str) -> Tally:
    """Start a second run in the folder of a running one, and try to open the unfinished results."""
    tally = Tally(f"two runs into one folder at once; show and report meanwhile; engine {engine}")
    place.mkdir(parents=True, exist_ok=True)
    make = a_run(engine, **LONGER)
    assert ended(child(partial(make, place / "whole"))) == 0
    out = place / "both"
    first = child(partial(make, out))
    deadline = time.monotonic() + 120
    while not list(out.glob("partial/*")):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    for how in ({"overwrite": True}, {"resume": True}):
        log = place / f"{next(iter(how))}.log"
        code = ended(child(partial(a_run(engine), out, **how), log))
        text = log.read_text()
        right = code == 2 and ("another run is writing" in text or "other settings" in text)
        tally.add("the second was refused", right, f"{code} {text[-300:]}")
    message = refusal(lambda: Results.open(out))
    active = Folder(out).read_manifest()["status"] == "running"
    tally.add(
        "show and report were told that it is not finished" if active else "it had ended", message is not None or not active, str(message)
    )
    code = ended(first)
    differs = different(contents(place / "whole"), contents(out))
    tally.add("the first was undisturbed, identical", code == 0 and not differs, f"{code} {differs}")
    return tally


def overwritten_while_read(place: Path, times: int) -> Tally:
    """Overwrite a folder with two runs in turn, again and again, while its results are read and served."""
    from starlette.testclient import TestClient

    from headscope.app.create import create_app
    from headscope.app.limits import Limits

    tally = Tally("folder overwritten while `report` and `serve` read it")
    place.mkdir(parents=True, exist_ok=True)
    runs = {seed: place / f"seed-{seed}" for seed in (0, 1)}
    settings = {**RUN, "limit": 8, "gallery": 2}
    for seed, out in runs.items():  # each in a separate process: a process that has computed must not be forked
        assert ended(child(partial(hs.run, "mini", "sampler", out=out, seed=seed, **settings))) == 0
    expected = {hs.open_run(out).signature: Results.open(out)["entropy"].to_text("json") for out in runs.values()}
    out = place / "both"
    shutil.copytree(runs[0], out)
    served = TestClient(create_app({"run": Results.open(out)}, {}, Limits()), base_url="http://localhost")
    stop = place / "stop"

    def overwriting() -> None:
        model, seed = hs.load("mini"), 0
        while not stop.exists():
            seed = 1 - seed
            hs.run(model, "sampler", out=out, seed=seed, overwrite=True, **settings)

    writer = child(overwriting, place / "writer.log")
    try:
        for number in range(times):
            if number % 2:
                try:
                    results = Results.open(out)
                    whole = results["entropy"].to_text("json") == expected[results.signature]
                    _ = results["positions"], results.gallery
                    tally.add("one run or the other, whole" if whole else "mixed", whole)
                except RunError as error:
                    clear = any(word in str(error) for word in ("changed", "not finished", "not a run", "missing"))
                    tally.add("refused: it is being written", clear, str(error))
            else:
                answer = served.get("/api/runs/run/tables/entropy")
                right = answer.status_code == 409 or answer.text in expected.values()
                outcome = "refused: it is being written" if answer.status_code != 200 else "one run or the other, whole"
                tally.add(outcome, right, f"{answer.status_code} {answer.text[:200]}")
            time.sleep(0.03)
    finally:
        stop.touch()
        code, text = ended(writer), (place / "writer.log").read_text()
        tally.add("the writer went on" if code == 0 else "the writer failed", code == 0, text[-500:])
    return tally


def signals(
    place: Path,
    engine: str,
    numbers: tuple[signal.Signals, ...] = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT),
    groups: tuple[bool, ...] = (False, True),
    limit: int = 60,
) -> Tally:
    """Send SIGINT (Ctrl-C), SIGTERM (`kill`), SIGHUP (a closed terminal) and SIGQUIT in the middle of a run."""
    tally = Tally(f"{', '.join(number.name for number in numbers)}, to the process or to all of its group; engine {engine}")
    place.mkdir(parents=True, exist_ok=True)
    assert ended(child(partial(run_command, place / "whole", engine, limit))) == 0
    whole = contents(place / "whole")
    for number in numbers:
        for group in groups:
            out = place / f"{number.name}-{group}"
            log = place / f"{number.name}-{group}.log"
            pid = child(partial(run_command, out, engine, limit), log)
            deadline = time.monotonic() + 120
            while not list(out.glob("partial/*-*")) and time.monotonic() < deadline:
                time.sleep(0.005)
            (os.killpg if group else os.kill)(pid, number)
            code = ended(pid)
            text = log.read_text()
            right = code == 128 + number and "--resume continues" in text and "Traceback" not in text and not orphans(pid)
            outcome = f"exit {128 + number}, says how to go on, no process left"
            if right:
                code = ended(child(partial(run_command, out, engine, limit, "--resume"), log))
                differs = different(whole, contents(out))
                right, outcome = code == 0 and not differs, f"{outcome}; resumed, identical"
                text = f"{code} {differs}"
            tally.add(outcome, right, f"{number.name} {'to the group' if group else 'to the process'}: {code} {text[-500:]}")
    return tally


def run_command(out: Path, engine: str, limit: int, *more: str) -> None:
    """Call `headscope run` in this process, as a terminal starts it."""
    from headscope.cli.main import main

    signal.signal(signal.SIGINT, signal.default_int_handler)
    options = ["--out", str(out), "--engine", engine, "--measures", "positions,entropy", "--limit", str(limit)]
    sys.argv = ["headscope", "run", *options, "--shard-tokens", "60", "--replicates", "20", "--gallery", "4", "-q", *more]
    main()
