"""Retrieval heads: which heads attend to the tokens that a model copies from a text (Wu et al. 2024)."""

from __future__ import annotations

from headscope.studies.base import BOUNDS, ComparedTable, Study, StudyFigure


class RetrievalStudy(Study):
    """A study of which heads copy from a passage while a model answers, and whether answers depend on them."""

    name = "retrieval"
    verb = "retrieval"
    function = "retrieval"
    folder = "retrieval"
    spec_class = "RetrievalSpec"
    work_class = "RetrievalWork"
    help = """Find the heads that copy from a passage while a language model answers, and switch them off (Wu et al. 2024).

    headscope retrieval --out RETRIEVAL
    headscope retrieval --corpus needles:200x100:0,50,100 --top 4,16 --out RETRIEVAL
    headscope retrieval --model ./my-llama --corpus questions.jsonl --max-length 1024 --out RETRIEVAL
    headscope retrieval --weights random --out CONTROL
    headscope show RETRIEVAL retrieval_heads --sort score
    headscope plot RETRIEVAL retrieval_ranked -o ranked.pdf
    """
    annotation = "passages"
    predicts = True
    doing = "answering"
    title = "Retrieval heads"
    about = (
        "Which heads attend to the token that the model copies next from the passage with the answer (Wu et al. 2024)? A head scores at "
        "a decoding step if the token that it attends to most is in the passage and equals the next token. The strongest heads, chosen on "
        "other documents than those answered, are then switched off, and compared with random heads."
    )
    published = (
        "Published: Wu et al. 2024. Fewer than 5 % of heads score over .1; from the released scores 3.2 % in llama-2-7b-80k (best "
        ".94), 5.2 % in Yi-6B, 4.2 % in Mistral-7B. Their texts are much longer (up to 50,000 tokens), and their answers are whole "
        "sentences."
    )
    figures = (
        StudyFigure(
            "retrieval_ranked",
            "retrieval scores of all heads, ranked, with intervals",
            "ranked",
            "retrieval_heads",
            "retrieval",
            "Retrieval scores, ranked",
            "One point per head, with its 95 % interval over texts. The dashed line is .1, above which Wu et al. call a head a retrieval "
            "head; the dotted line is the score of a head that attends most to a random token.",
        ),
        StudyFigure(
            "retrieval_ablation",
            "answers found and loss of the answer without the strongest heads and without random heads",
            "ablation",
            "retrieval_ablation",
            "retrieval",
            "Without retrieval heads",
            "Left: the share of answers that the model gives word for word. Right: the loss of the right answer, in nats per token. The "
            "strongest heads are chosen on other documents than those answered. Random heads are drawn several times from the others.",
        ),
    )
    compared = (
        ComparedTable("summary", ("what",), {"value": BOUNDS}, "answers, retrieval heads and what depends on them"),
        ComparedTable("retrieval_heads", ("decoding", "kind", "layer", "head"), {"score": BOUNDS}, "retrieval score of each head"),
    )
