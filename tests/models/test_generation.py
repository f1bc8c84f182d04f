"""Generated text, compared with a plain loop of full passes, and attention per step, compared with decoding with a
cache.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from transformers import AutoConfig, AutoModelForCausalLM

import headscope as hs
from headscope.errors import HeadscopeError, ModelError, RunError
from headscope.models import generation
from headscope.models.generation import Decoding, Generated, generate, greedy
from headscope.models.model import Model
from helpers.architectures import DECODERS, build

PROMPTS = ("The keys to the cabinet", "She opened the old door and", "Water is", "The ferry was late again, so")


def ids_of(model: Model, text: str) -> list[int]:
    return [*model.tokenizer.single.before, *model.tokenizer.hf(text, add_special_tokens=False)["input_ids"]]


def plain(model: Model, prompt: list[int], count: int) -> list[int]:
    """The tokens of `greedy`, computed with one full pass per token, for one text at a time and without a cache."""
    assert model.whole is not None
    text = list(prompt)
    with torch.inference_mode():
        for _ in range(count):
            text.append(int(model.whole(input_ids=torch.tensor([text]), use_cache=False).logits[0, -1].argmax()))
    return text[len(prompt) :]


@pytest.fixture(scope="module")
def prompts(writer: Model) -> list[list[int]]:
    return [ids_of(writer, text) for text in PROMPTS]


@pytest.fixture(scope="module")
def written(writer: Model, prompts: list[list[int]]) -> list[Generated]:
    return greedy(writer, prompts, 8)


def test_each_generated_token_is_the_most_probable_one(writer: Model, prompts: list[list[int]], written: list[Generated]) -> None:
    assert [list(text.ids) for text in written] == [plain(writer, prompt, 8) for prompt in prompts]
    assert {text.stopped for text in written} == {"length"}


@pytest.mark.parametrize("batch_tokens", [1, 100_000])
def test_generated_text_does_not_depend_on_the_batches(
    writer: Model, prompts: list[list[int]], written: list[Generated], batch_tokens: int
) -> None:
    reordered = [*prompts[::-1], prompts[0], prompts[0]]
    again = generate(writer, reordered, Decoding(8), batch_tokens)
    assert again == [*written[::-1], written[0], written[0]]


def test_near_ties_are_decided_by_an_uncached_pass_of_the_single_text(
    writer: Model, prompts: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Logits rounded to whole numbers often tie. Noise, such as that of another batch, must not decide between them."""
    exact = generation._next_logits
    drawn = np.random.default_rng(0)
    alone = 0

    def rough(model: Model, ids: torch.Tensor, cache: Any, cached: bool = True) -> tuple[torch.Tensor, Any]:
        nonlocal alone
        logits, cache = exact(model, ids, cache, cached)
        alone += not cached
        noise = torch.from_numpy(drawn.normal(size=logits.shape, scale=5e-5)).float() if cached else 0.0
        return logits.round() + noise, cache

    monkeypatch.setattr(generation, "_next_logits", rough)
    first, second = (greedy(writer, prompts[:3], 6) for _ in range(2))
    assert first == second
    assert alone > 4


def test_half_precision_text_does_not_depend_on_other_texts_of_the_batch(prompts: list[list[int]]) -> None:
    model = hs.load("mini-decoder", dtype="bfloat16", head=True)
    pair = [prompts[0], prompts[0][::-1]]  # of equal length
    assert greedy(model, pair, 4) == [greedy(model, [prompt], 4)[0] for prompt in pair]


def test_a_generated_text_stops_before_its_end_token(
    writer: Model, prompts: list[list[int]], written: list[Generated], monkeypatch: pytest.MonkeyPatch
) -> None:
    last = written[0].ids[3]
    place = written[0].ids.index(last)
    monkeypatch.setattr(generation, "end_tokens", lambda model: frozenset({last}))
    ended, other = greedy(writer, [prompts[0], prompts[2]], 8)
    assert ended == Generated(written[0].ids[:place], "end")
    assert other.ids == written[2].ids[: len(other.ids)]


def tiny(name: str, **options: Any) -> Model:
    """A small random decoder with a prediction head and the tokenizer of the embedded decoder."""
    tokenizer = hs.load("mini-decoder").tokenizer.hf
    config = AutoConfig.for_model(name, **{**DECODERS[name], "pad_token_id": 0, "vocab_size": len(tokenizer), "eos_token_id": 0, **options})
    torch.manual_seed(0)
    network = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.dim() > 1:
                parameter.mul_(4)
    return hs.load(network, tokenizer, head=True)


def test_a_generated_text_stops_when_the_context_is_full() -> None:
    model = tiny("llama", max_position_embeddings=16)
    prompt = ids_of(model, "The keys to the cabinet are")
    (text,) = greedy(model, [prompt], 40)
    assert (len(prompt) + len(text.ids), text.stopped) == (16, "context")
    assert greedy(model, [(prompt * 4)[:16]], 5) == [Generated((), "context")]
    assert greedy(model, [prompt], 16 - len(prompt))[0].stopped == "length"
    with pytest.raises(HeadscopeError, match="the prompt fills the 16 tokens that "):
        hs.view(model, "The keys to the cabinet are on the table and so on and on and on and on", generate=3)


@pytest.mark.parametrize("name", ["llama", "gpt2", "gemma2", "gpt_neox", "gpt_oss"])
def test_attention_rows_of_one_pass_equal_those_of_decoding_step_by_step(name: str) -> None:
    """All heads are compared with eager attention while decoding one token at a time with a key-value cache."""
    model = tiny(name)
    _compare_steps(model, hs.view(model, PROMPTS[0], generate=7))


def test_attention_rows_of_the_embedded_decoder_equal_those_of_its_steps(writer: Model) -> None:
    model = hs.load("mini-decoder", head=True)  # a separate copy, because eager attention is set on it
    view = hs.view(writer, PROMPTS[0], generate=8)
    prompt = ids_of(writer, PROMPTS[0])
    assert view.generated == writer.tokenizer.decode_after(prompt[-1], plain(writer, prompt, 8))
    _compare_steps(model, view)


def _compare_steps(model: Model, view: Any) -> None:
    assert model.whole is not None
    whole, ids, start = model.whole, view.text.ids.tolist(), view.text.generated_from
    whole.set_attn_implementation("eager")
    cache, read = None, torch.tensor([ids[:start]])
    with torch.inference_mode():
        for step in range(1, len(ids) - start + 1):
            output = whole(input_ids=read, past_key_values=cache, use_cache=True, output_attentions=True)
            cache = output.past_key_values
            assert int(output.logits[0, -1].argmax()) == ids[start + step - 1], "the token is chosen from the output of the last row"
            for head in view.model.layout.ids():
                row = output.attentions[head.layer][0, head.head, -1].float().numpy()
                shown = view.step(step, head)
                assert len(shown) == start + step - 1
                seen = shown[-len(row) :]  # the cache of a sliding window contains only the tokens of the window
                assert_allclose(seen, row[-len(seen) :], atol=1e-5)
                assert_allclose(shown[: -len(row)], 0, atol=1e-5)
            read = torch.tensor([[ids[start + step - 1]]])


def test_sampled_tokens_follow_the_probabilities(writer: Model) -> None:
    """The shares of tokens over 500 seeds are within four standard errors of the probabilities, at two temperatures."""
    logits = torch.tensor([[2.0, 1.0, 0.0, -1.0]])
    for temperature in (1.0, 0.5):
        expected = torch.softmax(logits[0] / temperature, 0).numpy()
        drawn = [generation._choose(writer, logits, [[5]], [[5]], 0, Decoding(1, temperature, seed))[0] for seed in range(500)]
        # A near-tie would be decided by a pass of the model, which does not use these logits. None occurs in 500 draws.
        shares = np.bincount(drawn, minlength=4) / len(drawn)
        assert_allclose(shares, expected, atol=4 * np.sqrt(0.25 / len(drawn)))


def test_sampled_text_depends_only_on_the_seed_and_the_prompt(writer: Model, prompts: list[list[int]]) -> None:
    together = generate(writer, prompts, Decoding(4, 1.0, 3))
    assert together == [generate(writer, [prompt], Decoding(4, 1.0, 3), 1)[0] for prompt in prompts]
    assert together != generate(writer, prompts, Decoding(4, 1.0, 4))
    assert together != greedy(writer, prompts, 4)


def test_models_and_settings_that_cannot_generate_are_refused(mini_decoder: Model) -> None:
    with pytest.raises(ModelError, match="mini guesses masked words: it cannot continue a text"):
        greedy(hs.load("mini", head=True), [[1, 2]], 3)
    with pytest.raises(ModelError, match="was loaded without its prediction head"):
        greedy(mini_decoder, [[1, 2]], 3)
    bart = build("bart", len(mini_decoder.tokenizer.hf))
    with pytest.raises(ModelError, match="is an encoder-decoder, and only decoders continue a text"):
        greedy(hs.load(bart, mini_decoder.tokenizer.hf), [[1, 2]], 3)
    with pytest.raises(RunError, match="0 tokens cannot be generated"):
        Decoding(0)
    with pytest.raises(RunError, match="a temperature of nan"):
        Decoding(1, float("nan"))


def test_logits_cover_only_the_tokens_of_the_tokenizer(writer: Model) -> None:
    logits, _ = generation._next_logits(tiny("llama", vocab_size=writer.tokenizer.size + 64), torch.tensor([[0, 5]]), None)
    assert logits.shape == (1, writer.tokenizer.size)
