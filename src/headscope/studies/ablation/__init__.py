"""Are all heads needed? Heads switched off one by one, all but one, by layer, and cumulatively (Michel et al. 2019)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headscope.errors import RunError
from headscope.studies.base import BOUNDS, ComparedTable, Study, StudyFigure

if TYPE_CHECKING:
    from headscope.drawing.figure import Drawing
    from headscope.results.results import Results
    from headscope.results.table import Table
    from headscope.studies.replicates import ReplicatedTables


class AblationStudy(Study):
    """What a model loses without some of its heads. The score may be a function of the user's."""

    name = "ablation"
    verb = "ablate"
    function = "ablate"
    folder = "ablation"
    spec_class = "AblationSpec"
    work_class = "AblationWork"
    help = """Switch heads off and see what the model loses: one by one, all but one, layer by layer, more and more (Michel et al. 2019).

    headscope ablate --limit 50 --out ABLATED
    headscope ablate --model ./sst2 --corpus dev.tsv --limit 500 --out ABLATED
    headscope ablate --model ./marian --corpus test.jsonl --score bleu --parts heads,all_but_one --out ABLATED
    headscope ablate --run RUN --by entropy,-to_sep --out ABLATED
    headscope show ABLATED ablation --sort difference
    headscope plot ABLATED michel1 -o table1.pdf
    headscope plot ABLATED michel3 -o figure3.pdf
    """
    files = ("run",)
    takes = ("function",)
    predicts = True
    doing = "switching off"
    title = "Which heads are needed"
    about = "What a model loses without some of its heads (Michel et al. 2019)."
    published = (
        "Published: Michel et al. 2019, for translation (8 of 96 encoder heads made a difference, half of them for the better) and for "
        "BERT. Compare shapes, not decimals: the model, the task and the texts are others."
    )
    figures = (
        StudyFigure(
            "michel1",
            "Michel et al. 2019, Table 1: how the score changes without each head",
            "heads",
            "ablation",
            "ablate --parts heads",
            "Each head switched off",
            "How the score changes if one head gives nothing and all others are as they were. A frame marks what could hardly be chance, "
            "head by head; of a hundred heads that do nothing, one has a frame.",
        ),
        StudyFigure(
            "histogram",
            "how many heads change the score by how much",
            "histogram",
            "ablation",
            "ablate --parts heads",
            "How many heads change the score by how much",
            "Most heads lie near 0: the others can do without them, one at a time.",
        ),
        StudyFigure(
            "importance",
            "importance of heads beside what the score loses without them",
            "importance",
            "importance_foretells",
            "ablate --parts heads,importance",
            "Importance and loss",
            "Importance is the size of the gradient of the loss with respect to a gate on the head, found for all heads at once; beside it "
            "what switching the head off really does.",
        ),
        StudyFigure(
            "michel3",
            "Michel et al. 2019, Figure 3: the score with more and more heads gone",
            "pruning",
            "pruning",
            "ablate --parts heads,importance,pruning",
            "More and more heads switched off",
            "Heads go in the order of their importance, of the loss that was measured for each alone, or by chance. Orders are found on "
            "one half of the documents and tried on the other.",
        ),
    )
    compared = (
        ComparedTable("summary", ("kind", "what"), {"value": None}, "what was found", drawn=True),
        ComparedTable("ablation_layers", ("kind", "layer"), {"difference": BOUNDS}, "the score without a layer"),
        ComparedTable("ablation", ("kind", "layer", "head"), {"difference": BOUNDS}, "the score without a head"),
        ComparedTable("pruning", ("order", "share"), {"difference": BOUNDS}, "the score without more and more heads"),
    )

    def refuse_rerun(self, results: Results) -> None:
        """An error for results that were scored by a function of the user's, which is not kept."""
        from headscope.studies.ablation.spec import OWN

        if results.manifest["settings"]["score"] == OWN:
            problem = f"{results.path} was scored by a function of your own, which is not kept"
            raise RunError(problem, "Call headscope.ablate with it again")

    def findings(self, results: Results) -> list[str]:
        """What was found, in plain sentences."""
        from headscope.studies.ablation.findings import sentences

        return sentences(results, results.manifest["settings"]["score"])

    def compare_further(self, results: Sequence[Results]) -> tuple[str, Table]:
        """Whether a model misses on one task what it misses on another: correlations over heads."""
        from headscope.studies.ablation.tasks import task_correlations

        return "what is lost without each head, on the one and on the other: correlation over heads", task_correlations(results)

    def draw_compared(self, results: Sequence[Results], change: bool = False) -> Drawing:
        """The scores without each head on each task, or with `change` what is lost of them in percent."""
        from headscope.studies.ablation.tasks import draw_tasks

        return draw_tasks(results, change)

    def replicates(self, results: Results) -> ReplicatedTables:
        """Differences of the score without a head, or a layer."""
        from headscope.studies.ablation.tables import replicates

        return replicates(results)
