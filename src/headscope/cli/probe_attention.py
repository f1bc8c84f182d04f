"""`headscope probe attention`: how much of a tree all heads together hold."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from headscope.results.results import Results

Option = typer.Option
PROBES = "attention,attention-words,words-distances,random-attention,random-attention-words,right-branching"


def attention(
    model: Annotated[str, Option(help="mini (embedded), a local folder, or a hub id")] = "mini",
    corpus: Annotated[list[str] | None, Option(help="treebank to learn from; may be repeated [default: sampler (embedded)]")] = None,
    dev: Annotated[list[str] | None, Option(help="treebank to be tried on [default: documents held out of the other]")] = None,
    out: Annotated[Path | None, Option("--out", "-o", help="folder for the results [default: runs/attention-probe-MODEL-CORPUS]")] = None,
    probes: Annotated[str, Option(help="which, with commas between them")] = PROBES,
    words: Annotated[
        str | None, Option(help="what words are known by: glove, model, learned [default: glove, or model without it]")
    ] = None,
    vectors: Annotated[Path | None, Option(help="GloVe as text, or an npz with words and vectors")] = None,
    preset: Annotated[str, Option(help="recommended, or reference: as the released code trains")] = "recommended",
    root: Annotated[str, Option(help="the root's score: shared weights, as in the paper, or separate ones")] = "shared",
    alignment: Annotated[str | None, Option(help="word vectors of candidates: fixed, or reference: one off [default: fixed]")] = None,
    bias: Annotated[bool, Option(help="a weight for each head that does not depend on words")] = True,
    standardise: Annotated[bool | None, Option(help="make all heads' attention vary alike [default: no]")] = None,
    word_rows: Annotated[str | None, Option(help="attention of a word in pieces: mean, first, max [default: mean]")] = None,
    optimiser: Annotated[str, Option(help="adam or sgd")] = "adam",
    rate: Annotated[float | None, Option(help="learning rate [default: each probe its own]")] = None,
    decay: Annotated[str | None, Option(help="of the rate: linear, none [default: linear]")] = None,
    epochs: Annotated[int | None, Option(help="passes over the sentences [default: 4, more if they are few]", min=1)] = None,
    batch: Annotated[int | None, Option(help="sentences a step [default: 32]", min=1)] = None,
    patience: Annotated[int, Option(help="stop after so many epochs without gain on held-out documents; 0: never", min=0)] = 0,
    seeds: Annotated[int, Option(help="probes of each kind, from different first weights", min=1)] = 3,
    decode: Annotated[str, Option(help="argmax: each word alone; tree: also the best tree of all")] = "argmax",
    held_out: Annotated[float, Option(help="share of documents to be tried on, without --dev")] = 0.2,
    limit: Annotated[int, Option(help="sentences to learn from; 0: all of them", min=0)] = 0,
    limit_dev: Annotated[int, Option(help="sentences to be tried on; 0: all of them", min=0)] = 0,
    max_length: Annotated[int, Option(help="tokens a sentence may have")] = 128,
    format: Annotated[str | None, Option(help="corpus format, if the file name does not tell")] = None,
    replicates: Annotated[int, Option(help="bootstrap replicates for intervals", min=0)] = 1000,
    seed: Annotated[int, Option(help="the first seed, and that of what is drawn")] = 0,
    cache_bytes: Annotated[int, Option(help="bytes of maps kept between epochs; beyond, they are worked out anew", min=0)] = 8 << 30,
    device: Annotated[str | None, Option(help="cpu, cuda, cuda:1 [default: cuda if there is one]")] = None,
    resume: Annotated[bool, Option("--resume", help="go on with the study in the folder")] = False,
    overwrite: Annotated[bool, Option("--overwrite", help="replace the study in the folder")] = False,
    quiet: Annotated[bool, Option("--quiet", "-q", help="no progress bar, no summary, only warnings")] = False,
) -> None:
    """Train probes that find each word's governor from the attention of all heads (Clark et al. 2019, §5, Table 3).

    headscope probe attention --out PROBE
    headscope probe attention --corpus train.conllu --dev dev.conllu --vectors glove.6B.100d.txt --out PROBE
    headscope probe attention --probes attention,right-branching --root separate --decode tree --out PROBE
    headscope probe attention --preset reference --seeds 1 --out PROBE
    headscope show PROBE attention_probe_heads --sort pull
    headscope plot PROBE table3 -o table3.pdf
    headscope plot PROBE probe_heads -o heads.pdf
    """
    from headscope.cli.options import names
    from headscope.cli.summary import summarise
    from headscope.studies.attention_probe.spec import make_attention_probe_spec

    settings = {
        "model": model, "corpus": corpus or ["sampler"], "dev": dev or None, "probes": names(probes), "words": words,
        "vectors": None if vectors is None else str(vectors), "preset": preset, "root": root, "alignment": alignment, "bias": bias,
        "standardise": standardise, "word_rows": word_rows, "optimiser": optimiser, "rate": rate, "decay": decay, "epochs": epochs,
        "batch": batch, "patience": patience, "seeds": seeds, "decode": decode, "held_out": held_out, "limit": limit or None,
        "limit_dev": limit_dev or None, "max_length": max_length, "format": format, "replicates": replicates, "seed": seed,
        "cache_bytes": cache_bytes,
    }  # fmt: skip
    spec = make_attention_probe_spec(settings, "the options")
    usual = Path("runs") / "-".join(["attention-probe", *(Path(name).name.split(".")[0] for name in (spec.model, spec.corpus[0]))])
    results = _probe(spec, out or usual, device, resume, overwrite, quiet)
    summarise(results, quiet)


def _probe(spec: Any, out: Path, device: str | None, resume: bool, overwrite: bool, quiet: bool) -> Results:
    from headscope.cli.progress import bar, interrupted
    from headscope.studies.attention_probe.study import probe_attention

    with interrupted(out), bar("probing", hidden=quiet) as progress:
        return probe_attention(spec, out, device=device, resume=resume, overwrite=overwrite, progress=progress)
