"""The time until a head is on screen: `python benchmarks/views.py`, with a Chromium installed.

The server runs on this machine; the browser is real, headless, and draws without a GPU. The texts have 128 and 512
tokens; the model has the embedded one's size and reads up to 512 tokens.
- request to drawn: from sending the text to the head being on screen, including the model's pass;
- data to drawn: from the arrival of the head's map to the head being on screen, for the first and for further heads;
- bare: the model's forward pass on the text, with all maps kept, in this process.
Numbers are medians of several rounds, after one warm-up.
"""

from __future__ import annotations

import argparse
import random
import shutil
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch

import headscope as hs
from common import untrained
from headscope.app.create import create_app
from headscope.app.limits import Limits
from headscope.app.server import bind
from headscope.engine.typed_text import typed
from headscope.models.capture import implementation
from headscope.models.model import Model

LENGTHS = (128, 512)
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
# Resolves once the caption names another head than `before` and a frame with it is on screen. The result is that head,
# the time, and the time at which its map arrived.
DRAWN = """(before) => new Promise((done, fail) => {
  const text = (part) => document.querySelector(part)?.textContent ?? "";
  const named = () => (text(".hs-busy") ? null : /head (\\S+),/.exec(text("figcaption"))?.[1]);
  const look = () => {
    const head = named();
    if (performance.now() > 60000) return fail(new Error("nothing is drawn"));
    if (!head || head === before) return requestAnimationFrame(look);
    requestAnimationFrame(() => setTimeout(() => {
      const drawn = performance.now();
      const account = () => {  // the browser writes it down when it finds the time
        const map = performance.getEntriesByType("resource").find(({ name }) => name.endsWith(`/heads/${head}`));
        if (map) done([head, drawn, map.responseEnd]);
        else setTimeout(account, 20);
      };
      account();
    }));
  };
  look();
})"""


def text_of(model: Model, tokens: int) -> str:
    """Words of the embedded corpus that make exactly `tokens` tokens."""
    words = [word.form for document in hs.read("sampler") for word in document.words if word.form.isalpha()]
    chosen: list[str] = []
    for word in words:
        if len(typed(model, " ".join([*chosen, word])).encoded) > tokens:
            continue
        chosen.append(word)
        if len(typed(model, " ".join(chosen)).encoded) == tokens:
            return " ".join(chosen)
    raise AssertionError("the corpus is too short")


@contextmanager
def served(model: Model) -> Iterator[str]:
    """The address of a server that has the model."""
    import uvicorn

    app = create_app({}, {"long": model}, Limits(max_tokens=512))
    bound = bind("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", access_log=False, ws="none"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        bound.close()


def bare(model: Model, text: str, rounds: int) -> float:
    """The milliseconds of the forward pass that keeps every map."""
    inputs = model.inputs([typed(model, text).encoded])
    times = []
    with torch.inference_mode(), implementation(model.network, "eager"):
        for _ in range(rounds + 1):
            start = time.perf_counter()
            model.network(**inputs, output_attentions=True)
            times.append(1000 * (time.perf_counter() - start))
    return statistics.median(times[1:])


def main() -> None:
    """Print the table."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        raise SystemExit("no Chromium is installed")
    model = untrained(hs.load(device="cpu"), max_position_embeddings=max(LENGTHS))
    print(f"{'tokens':>7} {'bare ms':>9} {'request to drawn ms':>21} {'ratio':>7} {'data to drawn ms':>18} {'next heads ms':>15}")
    with served(model) as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        for length in LENGTHS:
            text = text_of(model, length)
            requested, arrived, switched = [], [], []
            for number in range(rounds + 1):
                page = browser.new_page()
                page.goto(f"{server}/live")
                words = text.split()
                random.Random(number).shuffle(words)  # a different text each time, since the server caches maps
                page.locator(".hs-live textarea").fill(" ".join(words))
                start = page.evaluate("() => { document.querySelector('.hs-live form').requestSubmit(); return performance.now(); }")
                head, end, data = page.evaluate(DRAWN, "")
                further = []
                for _ in range(3):
                    page.get_by_role("button", name="the head after").first.click()
                    head, drawn, came = page.evaluate(DRAWN, head)
                    further.append(drawn - came)
                if number:
                    requested.append(end - start)
                    arrived.append(end - data)
                    switched += further
                page.close()
            pass_alone = bare(model, text, rounds)
            waited = statistics.median(requested)
            print(
                f"{length:7d} {pass_alone:9.0f} {waited:21.0f} {waited / pass_alone:7.1f} "
                f"{statistics.median(arrived):18.0f} {statistics.median(switched):15.0f}",
                flush=True,
            )
        browser.close()


if __name__ == "__main__":
    main()
