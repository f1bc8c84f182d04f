"""Other tools that give attention, compared with a run of headscope (part i): `python benchmarks/peers.py`.

The embedded language model reads segments of 128 tokens. Each contestant ends with the entropy of every head: a run of
the three surface measures with 500 replicates; `output_attentions=True`, whose maps bertviz draws; TransformerLens,
which caches the patterns; inseq, which attributes one token at a time. The last two are included if they are installed.
All must give the same entropies, and inseq the same last row of a map, or the command fails.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.resources import files
from importlib.util import find_spec
from itertools import islice
from typing import Any

import numpy as np
import torch

from common import BATCH_TOKENS, LENGTH, Row, bare, documents, interleaved, ratio, runner, spread
from headscope.core.tally import Tally
from headscope.encoding.batches import batches
from headscope.encoding.texts import Encoded, Encoder
from headscope.measures import DEFAULT
from headscope.models.capture import implementation
from headscope.models.load import load
from headscope.models.model import Model

MODEL = "mini-decoder"
STEPWISE = 2  # segments for a tool that reads a text token by token


def segments(model: Model, count: int) -> list[Encoded]:
    """Texts of exactly `LENGTH` tokens, from documents in which a word ends there."""
    encoder = Encoder(model.tokenizer, unit="document", max_length=LENGTH, overlong="truncate")
    texts = (text for text in encoder.texts(documents(20 * count), Tally()) if len(text) == LENGTH)
    return list(islice(texts, count))


def entropies(maps: torch.Tensor) -> np.ndarray:
    """The entropy of rows [layer, text, head, row, key], summed over texts and rows: one number per layer and head."""
    return np.asarray(torch.special.entr(maps).sum(-1).sum((1, 3)).numpy())


def ids_of(texts: Sequence[Encoded]) -> list[torch.Tensor]:
    """Token ids, one tensor per batch."""
    return [torch.from_numpy(np.stack([text.ids for text in batch])) for batch in batches(texts, BATCH_TOKENS)]


def plain(model: Model, texts: Sequence[Encoded]) -> np.ndarray:
    """Entropies by `output_attentions=True`."""
    with torch.inference_mode(), implementation(model.network, "eager"):
        return sum(entropies(torch.stack(model.network(ids, output_attentions=True, use_cache=False).attentions)) for ids in ids_of(texts))  # type: ignore[return-value]


def lens(bridge: Any, texts: Sequence[Encoded]) -> np.ndarray:
    """Entropies by TransformerLens, which keeps the patterns of all layers."""
    with torch.inference_mode():
        totals = []
        for ids in ids_of(texts):
            cache = bridge.run_with_cache(ids, names_filter=lambda name: name.endswith("hook_pattern"), return_type=None)[1]
            totals.append(entropies(torch.stack([cache[f"blocks.{layer}.attn.hook_pattern"] for layer in range(len(cache))])))
    return np.asarray(sum(totals))


def stepwise(attributor: Any, tokenizer: Any, texts: Sequence[Encoded]) -> list[torch.Tensor]:
    """Attributions by inseq, of every token to those before it: [key, row, layer, head] for each text."""
    maps = []
    for text in texts:
        words = tokenizer.decode(text.ids[1:])
        output = attributor.attribute(tokenizer.decode(text.ids[1:2]), words, show_progress=False)
        maps.append(output.sequence_attributions[0].target_attributions)
    return maps


def language_model() -> Any:
    """The embedded language model as transformers loads it, its tokenizer, and its folder."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = files("headscope.models") / MODEL
    network = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32)
    return network, AutoTokenizer.from_pretrained(folder), str(folder)


def rows(quick: bool = False) -> list[Row]:
    """The time of each contestant, as a multiple of a run of headscope over the same texts."""
    model = load(MODEL, "cpu")
    texts = segments(model, 16 if quick else 64)
    run = runner(model, DEFAULT)
    expected = plain(model, texts)
    entropy = next(measure for measure in run.plan.measures if measure.name == "entropy")
    ours = np.asarray(entropy.tables(run(texts)["entropy"], run.plan.layout)["entropy"]["value"])[: run.plan.layout.size]
    _check("headscope", ours, expected.ravel() / len(texts) / LENGTH)
    contestants: dict[str, Callable[[], object]] = {
        "headscope": lambda: run(texts),
        "bare": lambda: bare(model, texts),
        "output_attentions=True, torch": lambda: plain(model, texts),
    }
    missing = []
    if find_spec("transformer_lens") is not None:
        from transformer_lens.model_bridge import TransformerBridge

        network, tokenizer, folder = language_model()
        bridge = TransformerBridge.boot_transformers(folder, hf_model=network, tokenizer=tokenizer, device="cpu")
        _check("TransformerLens", lens(bridge, texts), expected)
        contestants["TransformerLens, run_with_cache"] = lambda: lens(bridge, texts)
    else:
        missing.append(Row("i", "TransformerLens / a run of headscope", None, note="transformer-lens is not installed"))
    found = _ratios(contestants, 3 if quick else 5)
    if find_spec("inseq") is not None:
        found.append(_inseq(model, texts[:STEPWISE], 1 if quick else 3))
    else:
        missing.append(Row("i", "inseq / a run of headscope", None, note="inseq is not installed"))
    return found + missing


def _ratios(contestants: dict[str, Callable[[], object]], repeats: int) -> list[Row]:
    times = interleaved(contestants, repeats)
    return [
        Row("i", f"{name} / {', '.join(DEFAULT)} by headscope", ratio(times, name, "headscope"), note=spread(times, name, "headscope"))
        for name in contestants
        if name != "headscope"
    ]


def _inseq(model: Model, texts: Sequence[Encoded], repeats: int) -> Row:
    """The time of inseq's attention, as a multiple of a run, on few texts."""
    import inseq

    network, tokenizer, _ = language_model()
    attributor = inseq.load_model(network, "attention", tokenizer=tokenizer)
    run = runner(model, DEFAULT)
    ids = torch.tensor(tokenizer(tokenizer.decode(texts[0].ids[1:]))["input_ids"])[None]
    with torch.inference_mode():
        maps = torch.stack(network(ids, output_attentions=True).attentions)[:, 0]
    steps = stepwise(attributor, tokenizer, texts[:1])[0]
    _check("inseq", np.nan_to_num(steps[:, -1].permute(1, 2, 0).numpy()), maps[:, :, -2].numpy())
    times = interleaved({"inseq": lambda: stepwise(attributor, tokenizer, texts), "headscope": lambda: run(texts)}, repeats)
    what = f"inseq, attention of {len(texts)} texts / {', '.join(DEFAULT)} by headscope of the same"
    return Row("i", what, ratio(times, "inseq", "headscope"), note=spread(times, "inseq", "headscope"))


def _check(name: str, values: np.ndarray, expected: np.ndarray) -> None:
    if not np.allclose(values, expected, rtol=1e-4, atol=1e-5):
        raise AssertionError(f"{name} gives other numbers; the largest difference is {np.abs(values - expected).max():.1e}")


def main() -> None:
    """Measure and print."""
    import sys

    from common import machine, table

    torch.set_num_threads(2)
    print("\n".join([*(f"- {line}" for line in machine(2)), "", table(rows("--quick" in sys.argv[1:]))]))


if __name__ == "__main__":
    main()
