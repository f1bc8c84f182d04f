"""The translation recipe, on a language of ten words: a sentence is translated word by word, in reverse order."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import pytest
import torch
from transformers import M2M100ForConditionalGeneration, PreTrainedTokenizerFast

import headscope
import train_translator as recipe
from headscope.encoding.tokenizer import Template

WORDS = ["rot", "blau", "Hund", "Katze", "läuft", "sieht", "alt", "neu", "Baum", "Haus"]
OTHER = dict(zip(WORDS, ["red", "blue", "dog", "cat", "runs", "sees", "old", "new", "tree", "house"], strict=True))


def sentences(count: int, seed: int) -> list[tuple[str, str]]:
    chosen = random.Random(seed)
    sources = [chosen.sample(WORDS, chosen.randint(2, 5)) for _ in range(count)]
    return [(" ".join(words), " ".join(OTHER[word] for word in reversed(words))) for words in sources]


def write(folder: Path, name: str, pairs: list[tuple[str, str]]) -> None:
    (folder / f"{name}.de").write_text("".join(f"{source}\n" for source, _ in pairs), encoding="utf-8")
    with gzip.open(folder / f"{name}.en.gz", "wt", encoding="utf-8") as file:
        file.writelines(f"{target}\n" for _, target in pairs)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, object]]:
    pytest.importorskip("sacrebleu")
    folder = tmp_path_factory.mktemp("translation")
    write(folder, "train", sentences(1000, 1))
    write(folder, "test", sentences(50, 2))
    options = f"--train {folder}/train --test {folder}/test --out {folder}/model --held-out 50 --device cpu"
    shape = "--layers 1 --heads 4 --width 64 --inner 64 --vocabulary 330 --dropout 0 --beams 2"
    return folder, recipe.main(f"{options} {shape} --epochs 20 --batch-tokens 256 --rate 3e-3 --warm-up 50".split())


def test_the_trained_model_translates_at_least_45_of_50_sentences(trained: tuple[Path, dict[str, object]]) -> None:
    folder, result = trained
    translations = (folder / "model" / "translations.en").read_text(encoding="utf-8").splitlines()
    right = sum(text == target for text, (_, target) in zip(translations, sentences(50, 2), strict=True))
    assert right >= 45
    assert result == json.loads((folder / "model" / "training.json").read_text(encoding="utf-8"))
    assert str(result["signature"]).startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp")


def test_headscope_reads_the_checkpoint(trained: tuple[Path, dict[str, object]]) -> None:
    folder, _ = trained
    model = headscope.load(folder / "model", device="cpu", head=True)
    assert [(site.kind, site.layer, site.heads) for site in model.sites] == [("encoder", 0, 4), ("decoder", 0, 4), ("cross", 0, 4)]
    assert isinstance(model.whole, M2M100ForConditionalGeneration)
    assert model.tokenizer.pair == Template((), (recipe.END,), (recipe.END,))
    assert recipe.translate(model.whole, model.tokenizer.hf, ["Hund rot", "neu sieht Katze Baum"], beams=1) == [
        "red dog",
        "tree cat sees new",
    ]


def test_batches_contain_every_pair_once_within_the_limit() -> None:
    chosen = random.Random(3)
    pairs = [([9, number, *[7] * chosen.randint(0, 8)], [8, number, *[6] * chosen.randint(0, 8)]) for number in range(100, 140)]
    for shuffled in (None, random.Random(0)):
        seen = []
        for batch in recipe.batches(pairs, 48, torch.device("cpu"), shuffled):
            assert max(batch.source.shape[1], batch.target.shape[1]) * len(batch.source) <= 48
            for source, mask, target in zip(*batch, strict=True):
                seen.append((source[mask.bool()].tolist(), target[target != recipe.IGNORED].tolist()))
        assert sorted(seen) == sorted(pairs)
        assert (seen == sorted(seen, key=lambda pair: max(map(len, pair)))) is (shuffled is None)


def test_the_held_out_loss_is_the_mean_over_tokens_given_the_tokens_before() -> None:
    model = recipe.make_model(20, recipe.Settings(layers=1, heads=2, width=8, inner=8)).eval()
    pairs = [([5, 6, 7, recipe.END], [8, 9, recipe.END]), ([5, recipe.END], [10, recipe.END])]
    nats, count = 0.0, 0
    model.requires_grad_(False)
    for source, target in pairs:
        for at, token in enumerate(target):
            read = torch.tensor([[recipe.START, *target[:at]]])
            logits = model(input_ids=torch.tensor([source]), decoder_input_ids=read).logits[0, -1]
            nats -= float(logits.log_softmax(-1)[token])
            count += 1
    assert recipe.held_out_loss(model, pairs, 100) == pytest.approx(nats / count, rel=1e-5)


def test_the_tokenizer_decodes_the_text_that_it_encoded() -> None:
    lines = ["Ein Mädchen läuft.", "A girl, running."]
    tokenizer = recipe.make_tokenizer(lines * 20, 320)
    assert isinstance(tokenizer, PreTrainedTokenizerFast)
    assert tokenizer.convert_tokens_to_ids(list(recipe.SPECIAL)) == [0, 1, 2, 3]
    for line in [*lines, "Ein Straßenhund – neu"]:
        ids = tokenizer(line)["input_ids"]
        assert ids[-1] == recipe.END
        assert tokenizer.decode(ids, skip_special_tokens=True) == line


def test_missing_files_and_files_of_different_lengths_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"train\.de is not there"):
        recipe.read(f"{tmp_path}/train", "de")
    write(tmp_path, "train", sentences(3, 1))
    (tmp_path / "train.de").write_text("Hund\n", encoding="utf-8")
    with pytest.raises(SystemExit, match="1 lines of de and 3 of en"):
        recipe.read_pairs(f"{tmp_path}/train", "de", "en")
