"""`headscope view`: what heads look at in one text, in the terminal, as a page, or as a figure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headscope.cli.figure_options import FontSize, Signature, Style, Width, figure_options
from headscope.models import MODEL_HELP

if TYPE_CHECKING:
    from headscope.core.document import Document
    from headscope.studies.flow.influence import Layer


def view(
    text: Annotated[str, typer.Argument(help="the text; with --sentence, a corpus file or sampler")],
    second: Annotated[str | None, typer.Argument(help="the other text of a pair, or what the decoder of an encoder-decoder reads")] = None,
    model: Annotated[str, typer.Option(help=MODEL_HELP)] = "mini",
    heads: Annotated[
        str | None,
        typer.Option(
            help="heads, counted from 1: 8-10,5-4 or cross/3-2; all: thumbnails of all heads [default: those that link distant words]"
        ),
    ] = None,
    measure: Annotated[
        str | None,
        typer.Option(help="heatmap of the influence between words: A, G, G*, rollout, norm, or several as in A,G (docs/flow.md)"),
    ] = None,
    layer: Annotated[
        str | None, typer.Option(help="layers of --measure or of --heads all: 3, 1-6 or, for a measure, mean [default: mean; all]")
    ] = None,
    level: Annotated[str | None, typer.Option(help="token or word [default: word]")] = None,
    specials: Annotated[str | None, typer.Option(help="special tokens: show, hide or renormalise [default: show]")] = None,
    highlight: Annotated[
        list[str] | None,
        typer.Option(
            help="in red: one link, as in opened→door (or opened->door); all attention of a word, as in door or the:2 (the second the); "
            "or a relation of an annotated sentence, as in obj; may be repeated"
        ),
    ] = None,
    sentence: Annotated[str | None, typer.Option(help="read this sentence of the corpus TEXT: its id, or its number from 1")] = None,
    relation: Annotated[
        str | None,
        typer.Option(help='relation of an annotated sentence, in red: obj (dependent to head), "head-to-dep obj", or coreferent'),
    ] = None,
    generate: Annotated[
        int | None, typer.Option(help="let a decoder continue the text by this many tokens, and show what each of them attended to", min=1)
    ] = None,
    temperature: Annotated[float, typer.Option(help="with --generate: sample tokens instead of the most probable one", min=0)] = 0.0,
    seed: Annotated[int, typer.Option(help="with --temperature: random seed")] = 0,
    max_length: Annotated[int | None, typer.Option(help="tokens to read at most [default: 512, or the model's limit]", min=1)] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="file to write: .html (a page), .svg, .pdf or .png")] = None,
    width: Width = None,
    font_size: FontSize = None,
    style: Style = "colour",
    signature: Signature = False,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, auto, ... [default: cuda if available]")] = None,
    dtype: Annotated[str, typer.Option(help="float32, float16 or bfloat16 weights")] = "float32",
) -> None:
    """See what heads look at in any text.

    headscope view "The keys to the cabinet are on the table."
    headscope view "The keys to the cabinet are on the table." --heads 8-10,5-4
    headscope view "The keys to the cabinet are on the table." -o page.html
    headscope view "The keys to the cabinet are on the table." --heads 8-11 --specials hide -o figure.pdf
    headscope view "She called." "He did not answer." --level token
    headscope view "The cat sleeps." "Die Katze schläft." --model Helsinki-NLP/opus-mt-en-de --heads cross/4-1

    All heads as thumbnails, and the influence between words:

    headscope view "the rabbit quickly hopped" "the turtle slowly crawled" --heads all -o heads.pdf
    headscope view "the rabbit quickly hopped" "the turtle slowly crawled" --heads all --layer 1-6 -o heads.html
    headscope view "The keys to the cabinet are on the table." --measure A,G,G* -o influence.pdf
    headscope view "The keys to the cabinet are on the table." --measure rollout --layer 3 --specials hide -o r.svg

    What a decoder looks back at while it writes, step by step:

    headscope view "The keys to the cabinet are on the" --model mini-decoder --generate 40 -o written.html
    headscope view "The keys to the cabinet are on the" --model mini-decoder --generate 12 --heads 5-3 -o written.pdf

    Words in red, named or from an annotated sentence:

    headscope view "She opened the old door." --heads 8-4 --highlight "door→opened" -o figure.pdf
    headscope view sampler --sentence 3 --highlight obj --heads 8-4 -o objects.pdf --width column
    """
    from headscope.cli.options import names
    from headscope.drawing.look import Look
    from headscope.errors import RunError

    options: dict[str, Any] = figure_options(width, font_size, style, signature)
    if out is not None:
        from headscope.widget.shown import suffix_of

        suffix = suffix_of(out)  # an error here saves loading a model
        if options and suffix == "html":
            raise RunError(
                f"{next(iter(options)).replace('_', '-')} is only for figures", "Write a figure, as in -o figure.pdf, or omit the option"
            )
        Look(**options)
    elif heads == "all":
        raise RunError("all heads can only be drawn as thumbnails", "Write a page or a figure: -o page.html, -o figure.pdf")
    if relation is not None and sentence is None:
        raise RunError(
            "a relation can only be marked in an annotated sentence", "Name one: headscope view FILE --sentence 3 --relation obj"
        )
    if generate is None and (temperature or seed):
        raise RunError("--temperature and --seed are only for generated text", "Give a number of tokens: --generate 40")
    from headscope.api import load
    from headscope.api import view as look

    shown = look(
        load(model, device=device, dtype=dtype, head=generate is not None),
        text if sentence is None else _sentence(text, sentence),
        second,
        names(heads) if heads not in (None, "all") else heads,
        level=level,  # type: ignore[arg-type]
        specials=specials,  # type: ignore[arg-type]
        max_length=max_length,
        measure=names(measure) if measure is not None else None,
        layer=_layers(layer) if layer is not None else None,
        highlight=highlight or (),
        relation=relation,
        generate=generate,
        temperature=temperature,
        seed=seed,
    )
    for note in shown.notes(out):
        typer.echo(f"headscope: {note}", err=True)
    if out is not None:
        typer.echo(shown.save(out, **options))
        return
    from headscope.cli.printing.terminal import print_grids

    print_grids(shown.grids(), shown.signature)


def _layers(named: str) -> list[Layer]:
    """`mean`, or layers by number: `1-3,8`."""
    from headscope.cli.options import names, numbers

    layers: list[Layer] = []
    for part in names(named):
        layers += ["mean"] if part == "mean" else numbers(part)
    return layers


def _sentence(corpus: str, name: str) -> Document:
    from headscope.corpora import read
    from headscope.corpora.corpus import pick_sentence

    return pick_sentence(read(corpus), name)
