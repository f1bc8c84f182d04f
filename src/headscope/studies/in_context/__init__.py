"""What a language model gains from its context, and whether induction heads cause it (Olsson et al. 2022)."""

from __future__ import annotations

from headscope.studies.base import BOUNDS, ComparedTable, Study, StudyFigure


class InContextStudy(Study):
    """A study of in-context learning with and without the strongest induction heads, and without random heads."""

    name = "in_context"
    verb = "in-context"
    function = "in_context"
    folder = "in-context"
    spec_class = "InContextSpec"
    work_class = "InContextWork"
    help = """Measure what a language model gains from its context, with and without its strongest induction heads (Olsson et al. 2022).

    headscope in-context --out CONTEXT
    headscope in-context --model gpt2 --corpus repeats:100x64 --heads 1,4,8 --out CONTEXT
    headscope in-context --corpus books.txt --max-length 512 --out CONTEXT
    headscope in-context --by previous_token --heads 1 --out PREVIOUS
    headscope show CONTEXT in_context_effects
    headscope plot CONTEXT in_context -o loss.pdf
    """
    corpora = ("corpus", "chosen_on")
    predicts = True
    doing = "reading"
    title = "In-context learning"
    about = (
        "Does the model predict better late in a text than early in it, or in the second copy of a random sequence than in the first, "
        "and do induction heads cause that? Heads are chosen on some texts and scored on others. As a control, as many random heads of "
        "the same layers are switched off."
    )
    published = (
        "Published: Olsson et al. 2022, for Anthropic's models, trained on other data: about −0.4 nats from token 50 to token 500 in all "
        "models of more than one layer, most of which goes when induction heads are switched off in small models."
    )
    figures = (
        StudyFigure(
            "in_context",
            "loss by position in the text, with and without heads",
            "loss_by_position",
            "in_context_loss",
            "in-context",
            "Loss by position",
            "The mean loss at each position of the text: of the whole model, without the strongest heads, and without as many random heads "
            "of the same layers. Bands are 95 % intervals.",
        ),
        StudyFigure(
            "in_context_effects",
            "how much in-context learning the model loses without heads",
            "effects",
            "in_context_effects",
            "in-context",
            "Without heads",
            "How much less the model gains from its context without the strongest heads, and without random heads of the same layers "
            "(one small point per draw). At 0 the heads do not matter.",
        ),
    )
    compared = (
        ComparedTable("summary", ("quantity", "off", "heads"), {"value": BOUNDS}, "loss and in-context learning", drawn=True),
        ComparedTable("in_context_effects", ("quantity", "heads", "effect"), {"difference": BOUNDS}, "what heads do for it"),
        ComparedTable("in_context_heads", ("kind", "layer", "head"), {"value": BOUNDS}, "what heads were chosen by"),
    )
