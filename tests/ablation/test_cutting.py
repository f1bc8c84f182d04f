"""Heads are ordered and permanently removed from a model, in Python and on the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import headscope as hs
from headscope.cli.main import app
from headscope.core.tally import Tally
from headscope.encoding.texts import Encoder
from headscope.errors import RunError
from headscope.models.answers import ask
from headscope.models.prune import prune
from headscope.results.quantities import by_head
from headscope.studies.ablation.prune import ascending, parse_share, removed_heads, size_table, speed_table
from headscope.studies.ablation.tasks import draw_tasks, losses, task_correlations
from headscope.studies.execute import execute
from headscope.studies.registry import REGISTRY
from helpers.predicting import CORPUS, loaded, saved


def test_shares_are_parsed_and_heads_are_ordered_by_hand() -> None:
    assert [parse_share(text) for text in ("60%", "0.6", "1", "0%")] == [0.6, 0.6, 1.0, 0.0]
    for text in ("many", "140%", "-1", "7"):
        with pytest.raises(RunError, match="Write"):
            parse_share(text)
    assert ascending(np.array([3.0, 1.0, np.nan, 1.0, 2.0])) == [1, 3, 4, 0, 2]
    assert removed_heads(5, 0.6) == 2
    assert removed_heads(10, 0.65) == 3  # 6.5 heads are rounded up: seven of ten are kept
    assert removed_heads(10, 1.0) == 0


def test_tables_of_size_and_speed_compare_the_whole_and_the_pruned_model(tmp_path: Path) -> None:
    model = loaded(tmp_path, "bert")
    smaller = prune(model, model.layout.ids()[:6])
    table = size_table(model, smaller)
    assert table["heads"] == [12, 6]
    weights, width, features = table["weights"], 6, 24
    assert weights[0] - weights[1] == 6 * (4 * width * features + 3 * width)  # per head: four matrices and three biases
    texts = list(Encoder(model.tokenizer).texts(CORPUS, Tally()))
    timed = speed_table(model, smaller, texts, (1, 3), rounds=1)
    assert timed["batch"] == [1, 3]
    assert all(value > 0 for value in [*timed["whole"], *timed["pruned"]])


@pytest.mark.parametrize("by", ["importance", "drop", "random"])
def test_the_prune_command_saves_a_smaller_model_or_one_with_zeros(tmp_path: Path, by: str) -> None:
    model = saved(tmp_path, "bert classes")
    table = tmp_path / "texts.tsv"
    lines = [f"{document.sentences[0].text}\t{document.label}" for document in CORPUS] * 4
    table.write_text("sentence\tlabel\n" + "\n".join(lines) + "\n")
    out = tmp_path / "smaller"
    options = ["prune", str(model), "--keep", "50%", "--by", by, "--corpus", str(table), "--out", str(out)]
    done = CliRunner().invoke(app, options, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert "scores on documents that were not used for the choice" in done.output
    smaller = hs.load(out, head=True)
    assert smaller.layout.size == 6
    assert smaller.pruning is not None
    zeroed = [*options[:-1], str(tmp_path / "zeroed"), "--keep-shape"]
    done = CliRunner().invoke(app, zeroed, catch_exceptions=False)
    assert "with zeros for the removed heads" in done.output
    assert hs.load(tmp_path / "zeroed", head=True).layout.size == 12
    with pytest.raises(RunError, match="already exists"):
        CliRunner().invoke(app, options, catch_exceptions=False)


def test_heads_are_pruned_in_the_order_of_a_quantity_of_a_run(tmp_path: Path) -> None:
    model = loaded(tmp_path, "bert")
    folder = tmp_path / "run"
    run = hs.run(model, CORPUS, ["entropy", "tokens"], folder, replicates=0, gallery=0)
    values = by_head(run.results, "entropy", model.layout)
    assert values.tolist() == run["entropy"].table.where(quantity="entropy")["value"]
    settings = {"run": str(folder), "by": ["entropy", "-entropy"], "steps": 2, "orders": 0, "parts": ["pruning"], "replicates": 0}
    study = execute("ablation", {**settings, "reestimate": True}, model=model, corpus=CORPUS)
    assert list(dict.fromkeys(study["pruning"]["order"])) == ["importance", "importance, re-estimated", "entropy", "-entropy"]
    assert study["pruning"].where(order="entropy", heads=6)["score"] != study["pruning"].where(order="-entropy", heads=6)["score"]
    ends = [row["score"] for row in study["pruning"] if row["heads"] == 12]
    assert ends == pytest.approx([ends[0]] * 4), "without any head, all orders have the same score"
    with pytest.raises(RunError, match="run and by go together"):
        REGISTRY["ablation"].make({"by": ["entropy"]})
    with pytest.raises(RunError, match="for heads that this model does not have"):
        by_head(run.results, "entropy", loaded(tmp_path, "bart").layout)
    done = CliRunner().invoke(app, ["prune", "mini", "--keep", "50%", "--by", "size", "--out", str(tmp_path / "x")])
    assert isinstance(done.exception, RunError)
    assert "cannot be ordered by 'size'" in str(done.exception)


def test_effects_of_heads_on_two_tasks_are_correlated_and_drawn(tmp_path: Path) -> None:
    model = loaded(tmp_path, "bert")
    assert model.whole is not None
    labels = [ask(model, [text], 0.4, "0/0").labels for text in Encoder(model.tokenizer).texts(CORPUS, Tally())]
    with torch.no_grad():  # so that the model is better than a constant answer
        output = model.whole.get_output_embeddings()
        output.weight *= 0.3
        output.bias[torch.from_numpy(np.concatenate(labels))] += 3
    settings = {"parts": ["heads"], "replicates": 0, "mask_share": 0.4}
    one = execute("ablation", settings, tmp_path / "one", model=model, corpus=CORPUS)
    other = execute("ablation", {**settings, "score": "masked_accuracy"}, tmp_path / "other", model=model, corpus=CORPUS)
    same = task_correlations([one, one])
    assert (same["first"][0], same["second"][0]) == ("one (1)", "one (2)")
    assert same["value"] == pytest.approx([1, 1])
    assert all(p < 0.001 for p in same["p"])
    found = next(iter(task_correlations([one, other]).where(method="pearson")))
    lost, missed = one["ablation"]["difference"], [-value for value in other["ablation"]["difference"]]
    assert found["value"] == pytest.approx(np.corrcoef(lost, missed)[0, 1])
    assert found["n"] == 12
    done = CliRunner().invoke(app, ["compare", str(tmp_path / "one"), str(tmp_path / "other")])
    assert "correlation over heads" in done.output
    names = [str(tmp_path / "one"), str(tmp_path / "other"), str(tmp_path / "one")]
    assert len(task_correlations([one, other, one])) == 6
    done = CliRunner().invoke(app, ["compare", *names, "-o", str(tmp_path / "tasks.svg")])
    assert done.exit_code == 0
    drawn = (tmp_path / "tasks.svg").read_text()
    assert "other: masked_accuracy without the head" in drawn
    figure = draw_tasks([one, other])
    points = np.asarray(figure.axes[2].collections[0].get_offsets(), dtype=float)
    assert points.tolist() == [[a, b] for a, b in zip(one["ablation"]["score"], other["ablation"]["score"], strict=True)]
    assert figure.axes[2].get_title() == f"r = {found['value']:.2f}, p = {found['p']:.3f}"
    shown = np.asarray(draw_tasks([one, other], change=True).axes[2].collections[0].get_offsets(), dtype=float)
    base = other["summary"]["value"][0]
    assert shown[:, 1].tolist() == pytest.approx([-100 * value / base for value in other["ablation"]["difference"]]), "a loss is positive"
    done = CliRunner().invoke(app, ["compare", *names, "--change", "-o", str(tmp_path / "change.svg")])
    assert "loss without the head (%)" in (tmp_path / "change.svg").read_text(), done.output
    assert "--change is only for figures" in str(CliRunner().invoke(app, ["compare", *names, "--change"]).exception)
    assert all(name in drawn for name in ("one (1)", "other", "one (3)"))
    for wrong, said in (([*names[:1]], "only one run was named"), ([*names, "--quantity", "entropy"], "Omit --quantity")):
        assert said in str(CliRunner().invoke(app, ["compare", *wrong]).exception)
    shares = losses([one], relative=True)["one"]
    assert shares["encoder", 1, 1] == pytest.approx(one["ablation"]["difference"][0] / one["summary"]["value"][0])
    with pytest.raises(RunError, match="different heads"):
        task_correlations([one, execute("ablation", {**settings, "max_length": 32}, model=loaded(tmp_path, "bart"), corpus=CORPUS)])
