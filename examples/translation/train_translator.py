r"""Train a small translation model from scratch: six layers of eight heads in encoder and decoder, on a parallel
corpus, in one command.

    python examples/translation/train_translator.py --train multi30k/train --test multi30k/val \
        --source de --target en --out model

It trains a tokenizer (byte-level BPE over both languages), and a plain Transformer (M2M-100's, small) with label
smoothing, and scores beam search with sacrebleu. Needs torch, transformers and sacrebleu. The folder it writes is a
usual checkpoint, which headscope reads.
"""

from __future__ import annotations

import argparse
import gzip
import json
import lzma
import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from torch.nn.functional import cross_entropy
from transformers import GenerationConfig, M2M100Config, M2M100ForConditionalGeneration, PreTrainedTokenizerFast
from transformers.utils.logging import disable_progress_bar

SPECIAL = ("<pad>", "<s>", "</s>", "<unk>")
PAD, START, END, UNKNOWN = range(len(SPECIAL))
LONGEST = 256  # tokens of a sentence, its end included
IGNORED = -100  # what cross-entropy is not taken of

Ids = Sequence[int]
Pairs = Sequence[tuple[Ids, Ids]]


def _said(value: Any, meaning: str) -> Any:
    """A setting with what the command line says of it."""
    return field(default=value, metadata={"help": meaning})


@dataclass(frozen=True)
class Settings:
    """The shape of the model and how it is trained."""

    layers: int = _said(6, "layers of the encoder, and of the decoder")
    heads: int = _said(8, "heads of a layer")
    width: int = _said(256, "numbers a token has between layers, all heads together")
    inner: int = _said(512, "numbers a token has inside a feed-forward block")
    dropout: float = _said(0.3, "share of values left out while training")
    vocabulary: int = _said(8000, "tokens of both languages together")
    epochs: int = _said(35, "passes over the training pairs")
    batch_tokens: int = _said(4096, "tokens of one language in a batch, with padding")
    rate: float = _said(1e-3, "the highest learning rate")
    warm_up: int = _said(1000, "steps until the rate is highest; at most a quarter of all")
    smoothing: float = _said(0.1, "label smoothing")
    beams: int = _said(5, "beams when translating")
    seed: int = _said(1, "of weights, dropout, order of pairs and what is held out")


class Batch(NamedTuple):
    """Padded sources with their mask, and what the decoder is to say."""

    source: torch.Tensor
    mask: torch.Tensor
    target: torch.Tensor


def read(prefix: str, language: str) -> list[str]:
    """The lines of PREFIX.LANGUAGE, which may end in .gz or .xz."""
    path = Path(f"{prefix}.{language}")
    for ending, opened in (("", open), (".gz", gzip.open), (".xz", lzma.open)):
        found = path.with_name(path.name + ending)
        if found.is_file():
            with opened(found, "rt", encoding="utf-8") as lines:
                return [line.strip() for line in lines]
    raise SystemExit(f"{path} is not there, nor with .gz or .xz. Give the part of the name before .{language}, with its folder")


def read_pairs(prefix: str, source: str, target: str) -> list[tuple[str, str]]:
    """The sentences of both languages, line by line."""
    sides = read(prefix, source), read(prefix, target)
    if len(sides[0]) != len(sides[1]):
        raise SystemExit(f"{prefix} has {len(sides[0])} lines of {source} and {len(sides[1])} of {target}. Take files that belong together")
    return list(zip(*sides, strict=True))


def make_tokenizer(lines: Sequence[str], size: int) -> PreTrainedTokenizerFast:
    """Byte-level BPE of `size` tokens, learnt from the lines of both languages; a sentence ends in </s>."""
    tokenizer = Tokenizer(models.BPE(unk_token=SPECIAL[UNKNOWN]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        lines, trainers.BpeTrainer(vocab_size=size, special_tokens=list(SPECIAL), initial_alphabet=alphabet, show_progress=False)
    )
    end = SPECIAL[END]
    tokenizer.post_processor = processors.TemplateProcessing(single=f"$A {end}", pair=f"$A {end} $B {end}", special_tokens=[(end, END)])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=SPECIAL[PAD],
        bos_token=SPECIAL[START],
        eos_token=end,
        unk_token=SPECIAL[UNKNOWN],
        model_max_length=LONGEST,
        clean_up_tokenization_spaces=False,
    )


def make_model(vocabulary: int, settings: Settings) -> M2M100ForConditionalGeneration:
    """An untrained encoder-decoder: as many layers and heads on either side, embeddings shared by both languages and
    the output.

    Layers normalise what they read rather than what they write, and positions are sinusoids: a small corpus is
    learnt from more surely so.
    """
    torch.manual_seed(settings.seed)
    config = M2M100Config(
        vocab_size=vocabulary,
        d_model=settings.width,
        encoder_layers=settings.layers,
        decoder_layers=settings.layers,
        encoder_attention_heads=settings.heads,
        decoder_attention_heads=settings.heads,
        encoder_ffn_dim=settings.inner,
        decoder_ffn_dim=settings.inner,
        dropout=settings.dropout,
        attention_dropout=0.0,
        encoder_layerdrop=0.0,
        decoder_layerdrop=0.0,
        max_position_embeddings=LONGEST,
        init_std=settings.width**-0.5,
        pad_token_id=PAD,
        bos_token_id=START,
        eos_token_id=END,
        decoder_start_token_id=START,
    )
    model = M2M100ForConditionalGeneration(config)
    model.generation_config = GenerationConfig(
        num_beams=settings.beams,
        early_stopping=settings.beams > 1,
        max_length=LONGEST,
        pad_token_id=PAD,
        bos_token_id=START,
        eos_token_id=END,
        decoder_start_token_id=START,
    )
    return model


def encode(tokenizer: PreTrainedTokenizerFast, pairs: Sequence[tuple[str, str]]) -> list[tuple[Ids, Ids]]:
    """The sentences as token ids, without pairs that are empty or too long on one side."""
    sources, targets = (tokenizer([pair[side] for pair in pairs])["input_ids"] for side in (0, 1))
    return [(s, t) for s, t in zip(sources, targets, strict=True) if all(1 < len(ids) <= LONGEST for ids in (s, t))]


def pad(rows: Sequence[Ids], value: int) -> torch.Tensor:
    """The rows as one tensor, filled up on the right."""
    width = max(map(len, rows))
    return torch.tensor([[*row, *[value] * (width - len(row))] for row in rows])


def batches(pairs: Pairs, tokens: int, device: torch.device, shuffled: random.Random | None = None) -> Iterator[Batch]:
    """Pairs of like length together, at most `tokens` tokens of either language with padding; in another order each
    time if `shuffled`.
    """
    order = list(range(len(pairs)))
    if shuffled is not None:
        shuffled.shuffle(order)  # sorting keeps the order of equals: other neighbours in each epoch
    size = {at: max(map(len, pairs[at])) for at in order}
    order.sort(key=size.__getitem__)
    groups: list[list[int]] = [[]]
    for at in order:
        if groups[-1] and (len(groups[-1]) + 1) * size[at] > tokens:
            groups.append([])
        groups[-1].append(at)
    if shuffled is not None:
        shuffled.shuffle(groups)
    for group in groups:
        source, target = pad([pairs[at][0] for at in group], PAD), pad([pairs[at][1] for at in group], IGNORED)
        yield Batch(source.to(device), (source != PAD).long().to(device), target.to(device))


def summed_loss(model: M2M100ForConditionalGeneration, batch: Batch, smoothing: float = 0.0) -> tuple[torch.Tensor, torch.Tensor]:
    """The cross-entropy of all target tokens, in nats, and their number."""
    # Given labels, the model lets its decoder read them shifted by one.
    logits = model(input_ids=batch.source, attention_mask=batch.mask, labels=batch.target).logits
    loss = cross_entropy(
        logits.flatten(0, 1).float(), batch.target.flatten(), ignore_index=IGNORED, reduction="sum", label_smoothing=smoothing
    )
    return loss, (batch.target != IGNORED).sum()


@torch.inference_mode()
def held_out_loss(model: M2M100ForConditionalGeneration, pairs: Pairs, tokens: int) -> float:
    """Nats a token, without smoothing and dropout."""
    model.eval()
    sums = [torch.stack([part.double() for part in summed_loss(model, batch)]) for batch in batches(pairs, tokens, model.device)]
    loss, count = torch.stack(sums).sum(0).tolist()
    return float(loss / count)


def train(
    model: M2M100ForConditionalGeneration, pairs: Pairs, held_out: Pairs, settings: Settings, say: Callable[[str], object] = print
) -> list[dict[str, float]]:
    """Losses of each epoch; the model has the weights of the epoch that does best on what was held out."""
    torch.manual_seed(settings.seed)
    shuffled = random.Random(settings.seed)
    fused = model.device.type == "cuda"
    optimiser = torch.optim.AdamW(model.parameters(), lr=settings.rate, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.01, fused=fused)
    steps = settings.epochs * sum(1 for _ in batches(pairs, settings.batch_tokens, torch.device("cpu")))
    warm_up = min(settings.warm_up, steps // 4)

    def share(step: int) -> float:
        """Of the full rate: a linear warm-up, then half a cosine down to nothing."""
        if step < warm_up:
            return (step + 1) / warm_up
        return 0.5 + 0.5 * math.cos(math.pi * (step - warm_up) / max(1, steps - warm_up))

    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, share)
    history: list[dict[str, float]] = []
    best: dict[str, torch.Tensor] = {}
    for epoch in range(1, settings.epochs + 1):
        started = time.perf_counter()
        model.train()
        total, seen = torch.zeros((), device=model.device), torch.zeros((), device=model.device)
        for batch in batches(pairs, settings.batch_tokens, model.device, shuffled):
            loss, count = summed_loss(model, batch, settings.smoothing)
            (loss / count).backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            optimiser.zero_grad()
            schedule.step()
            total += loss.detach()
            seen += count
        row = {"epoch": epoch, "loss": float(total / seen), "held_out": held_out_loss(model, held_out, settings.batch_tokens)}
        history.append(row)
        if row["held_out"] <= min(past["held_out"] for past in history):
            best = {name: weights.detach().clone() for name, weights in model.state_dict().items()}
        took = time.perf_counter() - started
        losses = f"loss {row['loss']:.3f} with smoothing, {row['held_out']:.3f} nats a token held out"
        say(f"epoch {epoch}/{settings.epochs}: {losses}, {took:.1f} s")
    model.load_state_dict(best)
    model.eval()
    return history


@torch.inference_mode()
def translate(
    model: M2M100ForConditionalGeneration,
    tokenizer: PreTrainedTokenizerFast,
    lines: Sequence[str],
    beams: int | None = None,
    size: int = 64,
) -> list[str]:
    """Each line in the other language, by beam search; `size` lines are translated at once."""
    ids = tokenizer(list(lines), truncation=True, max_length=LONGEST)["input_ids"]
    order = sorted(range(len(lines)), key=lambda at: len(ids[at]))
    said = [""] * len(lines)
    for start in range(0, len(order), size):
        group = order[start : start + size]
        source = pad([ids[at] for at in group], PAD).to(model.device)
        beam = {} if beams is None else {"num_beams": beams, "early_stopping": beams > 1}
        # Captions and their translations are about as long; whoever repeats himself is cut short.
        longest = min(LONGEST, 2 * source.shape[1] + 10)
        output = model.generate(input_ids=source, attention_mask=(source != PAD).long(), max_length=longest, **beam)
        for at, text in zip(group, tokenizer.batch_decode(output, skip_special_tokens=True), strict=True):
            said[at] = text.strip()
    return said


def bleu(translations: Sequence[str], references: Sequence[str]) -> tuple[float, str]:
    """Cased BLEU of running text, and sacrebleu's signature."""
    from sacrebleu.metrics.bleu import BLEU

    metric = BLEU()
    score = metric.corpus_score(list(translations), [list(references)]).score
    return float(score), str(metric.get_signature())


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--train", required=True, metavar="PREFIX", help="parallel files to learn from: PREFIX.de, PREFIX.en (.gz, .xz)")
    parser.add_argument("--test", required=True, metavar="PREFIX", help="parallel files to score translations on; nothing is chosen by it")
    parser.add_argument("--source", default="de", help="the language to translate from (%(default)s)")
    parser.add_argument("--target", default="en", help="the language to translate into (%(default)s)")
    parser.add_argument("--out", required=True, type=Path, metavar="FOLDER", help="where the checkpoint goes")
    parser.add_argument("--limit", type=int, metavar="N", help="learn from the first N pairs only, for a try")
    parser.add_argument(
        "--held-out", type=int, default=1000, metavar="N", help="pairs of --train to choose the best epoch by (%(default)s)"
    )
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", help="where to compute (%(default)s)")
    for setting in fields(Settings):
        kind = type(setting.default)
        name, meaning = f"--{setting.name.replace('_', '-')}", f"{setting.metadata['help']} (%(default)s)"
        parser.add_argument(name, type=kind, default=setting.default, metavar="N" if kind is int else "X", help=meaning)
    return parser.parse_args(given)


def main(given: Sequence[str] | None = None) -> dict[str, Any]:
    """Train, save, translate the test set, and say how well; what is also kept as training.json."""
    options = arguments(given)
    try:
        import sacrebleu  # noqa: F401
    except ImportError:
        raise SystemExit("BLEU is computed by sacrebleu, which is not installed: pip install sacrebleu") from None
    settings = Settings(**{name: getattr(options, name) for name in asdict(Settings())})
    if options.out.exists() and any(options.out.iterdir()):
        raise SystemExit(f"{options.out} is not empty. Name another folder with --out, or remove it")
    if torch.device(options.device).type == "cuda":
        torch.set_float32_matmul_precision("high")
    pairs = read_pairs(options.train, options.source, options.target)[: options.limit]
    test = read_pairs(options.test, options.source, options.target)
    random.Random(settings.seed).shuffle(pairs)
    if not 0 < options.held_out < len(pairs):
        raise SystemExit(f"--held-out {options.held_out} of {len(pairs)} pairs leaves nothing to learn from or to choose by")
    held_out, pairs = pairs[: options.held_out], pairs[options.held_out :]
    tokenizer = make_tokenizer([line for pair in pairs for line in pair], settings.vocabulary)
    model = make_model(len(tokenizer), settings).to(options.device)
    print(
        f"{len(pairs)} pairs, {len(tokenizer)} tokens, {model.num_parameters() / 1e6:.1f} million weights, on {options.device}", flush=True
    )

    started = time.perf_counter()
    history = train(model, encode(tokenizer, pairs), encode(tokenizer, held_out), settings, lambda line: print(line, flush=True))
    took = time.perf_counter() - started
    model.save_pretrained(options.out)
    tokenizer.save_pretrained(options.out)

    started = time.perf_counter()
    own = bleu(translate(model, tokenizer, [s for s, _ in held_out]), [t for _, t in held_out])[0]
    translations = translate(model, tokenizer, [s for s, _ in test])
    score, signature = bleu(translations, [t for _, t in test])
    result = {
        "bleu": score,
        "signature": signature,
        "held_out_bleu": own,
        "training_seconds": took,
        "translating_seconds": time.perf_counter() - started,
        "direction": f"{options.source}-{options.target}",
        "settings": asdict(settings),
        "history": history,
    }
    (options.out / "training.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    (options.out / f"translations.{options.target}").write_text("".join(f"{line}\n" for line in translations), encoding="utf-8")
    print(f"BLEU {score:.2f} on {len(test)} sentences of {options.test} ({signature}); {own:.2f} on the {len(held_out)} held out")
    print(f"Trained in {took / 60:.1f} minutes. Load it with headscope.load({str(options.out)!r}, head=True)")
    return result


if __name__ == "__main__":
    disable_progress_bar()
    main()
