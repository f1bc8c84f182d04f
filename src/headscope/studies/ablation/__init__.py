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
    """A study of what a model loses without some of its heads. The score may be a user's function."""

    name = "ablation"
    verb = "ablate"
    function = "ablate"
    folder = "ablation"
    spec_class = "AblationSpec"
    work_class = "AblationWork"
    help = """Switch heads off and measure the loss: one by one, all but one, layer by layer and cumulatively (Michel et al. 2019).

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
        "BERT. Compare shapes, not decimals: model, task and texts differ."
    )
    figures = (
        StudyFigure(
            "michel1",
            "Michel et al. 2019, Table 1: how the score changes without each head",
            "heads",
            "ablation",
            "ablate --parts heads",
            "Each head switched off",
            "How the score changes if one head is switched off and all others stay. A frame marks heads with p < .01, tested one by one: "
            "of a hundred heads without any effect, about one gets a frame.",
        ),
        StudyFigure(
            "histogram",
            "distribution of the change in score over heads",
            "histogram",
            "ablation",
            "ablate --parts heads",
            "Change in score over all heads",
            "Most heads are near 0: switched off alone, they are not needed.",
        ),
        StudyFigure(
            "importance",
            "importance of each head against the loss of score without it",
            "importance",
            "importance_correlation",
            "ablate --parts heads,importance",
            "Importance and loss",
            "Importance, estimated for all heads in one pass, is the size of the gradient of the loss with respect to a gate on the "
            "head. It is compared with the measured effect of switching the head off.",
        ),
        StudyFigure(
            "michel3",
            "Michel et al. 2019, Figure 3: the score as more heads are switched off",
            "pruning",
            "pruning",
            "ablate --parts heads,importance,pruning",
            "More and more heads switched off",
            "Heads are switched off in order of importance, in order of the loss measured for each alone, or at random. Orders are found "
            "on one half of the documents and tested on the other.",
        ),
    )
    compared = (
        ComparedTable("summary", ("kind", "what"), {"value": None}, "what was found", drawn=True),
        ComparedTable("ablation_layers", ("kind", "layer"), {"difference": BOUNDS}, "the score without a layer"),
        ComparedTable("ablation", ("kind", "layer", "head"), {"difference": BOUNDS}, "the score without a head"),
        ComparedTable("pruning", ("order", "share"), {"difference": BOUNDS}, "the score as more heads are removed"),
    )

    def refuse_rerun(self, results: Results) -> None:
        """Raise an error if the results were scored by a user's function, because functions are not saved."""
        from headscope.studies.ablation.spec import OWN

        if results.manifest["settings"]["score"] == OWN:
            problem = f"{results.path} was scored by your own function, which is not saved"
            raise RunError(problem, "Call headscope.ablate with the function again")

    def findings(self, results: Results) -> list[str]:
        """What was found, in plain sentences."""
        from headscope.studies.ablation.findings import sentences

        return sentences(results, results.manifest["settings"]["score"])

    def compare_further(self, results: Sequence[Results]) -> tuple[str, Table]:
        """A title, and the correlation over heads of the loss without each head, for each pair of studies."""
        from headscope.studies.ablation.tasks import task_correlations

        return "loss without each head: correlation over heads between two studies", task_correlations(results)

    def draw_compared(self, results: Sequence[Results], change: bool = False) -> Drawing:
        """A figure of the scores without each head on each task; with `change`, of the losses in percent."""
        from headscope.studies.ablation.tasks import draw_tasks

        return draw_tasks(results, change)

    def replicates(self, results: Results) -> ReplicatedTables:
        """Replicates of the change in score without each head and without each layer."""
        from headscope.studies.ablation.tables import replicates

        return replicates(results)
