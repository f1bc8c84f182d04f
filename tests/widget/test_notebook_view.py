"""Views in a notebook: the live widget and its replies, the page in a frame, and a run of the example notebook."""

from __future__ import annotations

import base64
import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import headscope as hs
from headscope.errors import EncodingError, RunError
from headscope.gallery.texts import quantised
from headscope.models.model import Model
from headscope.views import text as views
from headscope.widget import shown
from headscope.widget.view import View
from helpers.architectures import build
from helpers.families import FAMILIES

TEXT = "The keys to the old cabinet that my sister bought are on the table."
EXAMPLE = Path(__file__).parents[2] / "examples" / "look_at_a_head.ipynb"
LIVE = "application/vnd.jupyter.widget-view+json"


def embedded_data(html: str) -> dict[str, Any]:
    frame = re.fullmatch(r'<iframe srcdoc="([^"]*)" sandbox="allow-scripts allow-downloads" [^>]*></iframe>', html)
    assert frame is not None
    found = re.search(r'id="headscope-data">(.*?)</script>', unescape(frame.group(1)), re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found.group(1))
    return data


def reply_to(view: View, message: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, Any], list[bytes]]:
    """The reply of the widget to a message from a page."""
    pytest.importorskip("anywidget")
    sent: list[tuple[dict[str, Any], list[bytes]]] = []
    monkeypatch.setattr(view.widget, "send", lambda content, buffers=None: sent.append((content, buffers or [])))
    for one in ({"kind": "other"}, {"id": "a/1", **message}):
        view.widget._handle_custom_msg(one, [])
    (reply,) = sent
    return reply


def reply_with_map(view: View, head: str, monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, Any], list[bytes]]:
    """The reply of the widget to a page that requests the map of a head."""
    return reply_to(view, {"kind": "map", "head": head}, monkeypatch)


def test_a_live_view_sends_influence_on_request(mini: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    view = hs.view(mini, TEXT, measure="A", layer=3)
    influence = view.data()["text"]["influence"]
    assert (list(influence["measures"]), influence["held"], influence["measure"], influence["layer"]) == (
        ["A", "G", "G*", "rollout", "norms"],
        {},
        "A",
        3,
    )
    content, buffers = reply_to(view, {"kind": "influence", "measure": "rollout"}, monkeypatch)
    assert (content["kind"], content["id"], buffers) == ("influence", "a/1", [])
    values = np.frombuffer(base64.b64decode(content["influence"]["values"]), "<u2").reshape(12, len(view.text), len(view.text))
    between = hs.view(mini, TEXT, level="token").influence("rollout", 12).weights
    assert_allclose(values[11] / 65535 * content["influence"]["scales"][11], between, atol=1e-5)
    content, _ = reply_to(view, {"kind": "influence", "measure": "H"}, monkeypatch)
    assert "measure 'H' is unknown" in content["trouble"]


def test_a_live_view_contains_the_shown_heads_and_sends_others_on_request(mini: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    view = hs.view(mini, TEXT, heads=["8-4", "5-5"])
    data = view.data()["text"]
    assert (data["heads"], sorted(data["maps"])) == (["8-4", "5-5"], ["5-5", "8-4"])
    assert data["sites"][0] == {"kind": "encoder", "layer": 1, "heads": 12, "kv_heads": 12}
    content, buffers = reply_with_map(view, "11-2", monkeypatch)
    assert content == {"kind": "map", "id": "a/1"}
    weights = np.frombuffer(buffers[0], "<u2").reshape(len(view.text), -1) / 65535
    assert_allclose(weights, view.map("11-2"), atol=1e-5)
    json.dumps(view.widget.data, allow_nan=False)


def test_a_live_view_replies_with_the_reason_if_there_is_no_map(mini: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    content, buffers = reply_with_map(hs.view(mini, TEXT), "99-1", monkeypatch)
    assert content["id"] == "a/1"
    assert "mini has no head 99-1" in content["trouble"]
    assert buffers == []


def test_a_live_view_replies_even_after_an_internal_error(mini: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("anywidget")
    from headscope.widget.live import LiveView

    def fail(head: str) -> bytes:
        raise MemoryError("no room")

    live = LiveView({}, fail)
    sent: list[dict[str, Any]] = []
    monkeypatch.setattr(live, "send", lambda content, buffers=None: sent.append(content))
    with pytest.raises(MemoryError):  # the kernel shows this error
        live._answer(live, {"kind": "map", "id": "a/1", "head": "1-1"}, [])
    assert sent == [{"kind": "map", "id": "a/1", "trouble": "an internal error of headscope occurred (MemoryError)"}]


def test_the_page_of_a_long_text_has_some_heads_and_a_live_view_sends_all(mini: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    view = hs.view(mini, TEXT)
    size = 2 * len(view.text) ** 2
    small = views.look_at(mini, view.text, room=10 * size)
    assert list(small.maps) == sorted(small.order[:10], key=mini.layout.ids().index)
    assert small.order == view.heads
    assert "the page has 10 of 144 heads" in small.note
    monkeypatch.setattr("headscope.widget.view.look_at", lambda model, text, heads: small)
    monkeypatch.setattr("headscope.widget.view.BESIDE", size)
    assert list(embedded_data(hs.view(mini, TEXT)._repr_html_())["text"]["maps"]) == [str(small.order[0])], (
        "the page beside a live view has fewer heads"
    )
    last = str(view.heads[-1])
    _, buffers = reply_with_map(hs.view(mini, TEXT), last, monkeypatch)
    assert buffers[0] == quantised(view.map(last)).tobytes()


@pytest.mark.parametrize("installed", [True, False])
def test_a_notebook_receives_a_page_and_a_live_view_if_anywidget_is_installed(
    mini: Model, monkeypatch: pytest.MonkeyPatch, installed: bool
) -> None:
    if installed:
        pytest.importorskip("anywidget")
    else:
        monkeypatch.setattr(shown, "live", lambda: False)
    view = hs.view(mini, TEXT + " </script> \u2028 \"quoted\" 'q' &amp;", heads=["8-4"])
    bundle, _ = view._repr_mimebundle_()
    assert (LIVE in bundle) == installed
    assert bundle["text/plain"] == repr(view)
    assert "that → bought" in repr(view)
    page = embedded_data(bundle["text/html"])
    assert len(page["text"]["maps"]) == 144
    assert page["text"]["text"]["source"]["forms"][-1] == ";"
    if not installed:
        with pytest.raises(RunError, match=re.escape("pip install 'headscope[notebook]'")):
            _ = view.widget


def test_two_views_have_separate_widgets_and_signatures(mini: Model) -> None:
    pytest.importorskip("anywidget")
    first, second = hs.view(mini, TEXT), hs.view(mini, "Another text.")
    assert first.widget.model_id != second.widget.model_id
    assert first.widget.data["text"]["text"] != second.widget.data["text"]["text"]
    assert first.signature.split("|")[:2] == second.signature.split("|")[:2]
    assert first.signature != second.signature


@pytest.mark.parametrize(("name", "tokenizer"), [("gpt2", "gpt2"), ("t5", "t5"), ("deberta-v2", "wordpiece")])
def test_views_of_other_model_types_have_the_name_of_the_model_and_are_saved(tmp_path: Path, name: str, tokenizer: str) -> None:
    tokens = FAMILIES[tokenizer]()
    build(name, vocabulary=len(tokens)).save_pretrained(tmp_path / name)
    tokens.save_pretrained(tmp_path / name)
    view = hs.view(tmp_path / name, "The cat sat on a mat.", "A dog." if name == "t5" else None, max_length=40)
    data = view.data()["text"]
    assert f"model:{name}@" in data["signature"], "the signature has a name, not a path"
    assert ("target" in data["text"]) == (name == "t5")
    assert str(tmp_path) not in view.page()
    view.save(tmp_path / "a.svg")
    if name == "t5":
        grid = view.grid("cross/1-1")
        assert ("dog" in grid.rows, "mat" in grid.columns) == (True, True)


def test_a_view_is_saved_by_suffix_and_invalid_input_is_refused(mini: Model, tmp_path: Path) -> None:
    view = hs.view(mini, TEXT)
    assert view.save(tmp_path / "a.html").read_text(encoding="utf-8") == view.page()
    assert view.save(str(tmp_path / "a.PDF")).read_bytes().startswith(b"%PDF")
    with pytest.raises(RunError, match=r"cannot be written as 'a\.txt'"):
        view.save("a.txt")
    with pytest.raises(EncodingError, match="no text"):
        hs.view(mini, " ")
    assert hs.view(mini, TEXT, heads="8-4").heads == hs.view(mini, TEXT, heads=["8-4"]).heads


def test_show_returns_a_view_of_a_run_with_the_chosen_head(mini: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = hs.run(mini, "sampler", ["positions"], limit=3, replicates=5)
    view = run.show("3-2")
    page = embedded_data(view._repr_html_())
    assert (page["head"], page["run"]["signature"]) == ("3-2", run.signature)
    assert len(page["run"]["quantities"][0]["value"]) == 144
    assert view.save(tmp_path / "run.html").stat().st_size > 10_000
    assert run.show().head is None
    for name, says in [("13-1", "no head 13-1"), ("x", "is not the name of a head"), ("cross/1-1", "no head cross/1-1")]:
        with pytest.raises(RunError, match=says):
            run.show(name)
    with pytest.raises(RunError, match=r"ends in \.html"):
        view.save(tmp_path / "run.svg")
    pytest.importorskip("anywidget")
    assert LIVE in view._repr_mimebundle_()[0]
    view.widget.head = "5-5"  # as after a click
    assert view.head == "5-5"


def test_the_bundle_has_a_default_export() -> None:
    from headscope.views.page import bundle

    assert re.search(r"export\{[^}]*\bas default\b[^}]*\};?\s*$", bundle())


def test_the_example_notebook_runs_and_is_stored_without_output(tmp_path: Path) -> None:
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed: the example notebook is not run")
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.read(EXAMPLE, as_version=4)
    nbformat.validate(notebook)
    assert all(not cell.outputs and cell.execution_count is None for cell in notebook.cells if cell.cell_type == "code")
    done = nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output.data for cell in done.cells if cell.cell_type == "code" for output in cell.outputs if "data" in output]
    assert sum(LIVE in data for data in shown) == 2
    assert sum("text/html" in data and "<iframe" in data["text/html"] for data in shown) == 2
    assert "keys.html keys.svg" in str(done.cells[-1].outputs)


def test_highlighted_words_are_looked_up_in_the_texts_of_the_shown_attention(tmp_path: Path) -> None:
    tokens = FAMILIES["t5"]()
    build("t5", vocabulary=len(tokens)).save_pretrained(tmp_path / "t5")
    tokens.save_pretrained(tmp_path / "t5")
    model = hs.load(tmp_path / "t5")
    view = hs.view(model, "The cat sat", "A dog", heads="all", highlight="dog→cat")
    assert view.data()["text"]["highlight"] == {"name": "dog→cat", "pairs": {"cross": [[1, 1]]}}
    assert view.save(tmp_path / "heads.svg").stat().st_size > 10_000
    with pytest.raises(RunError, match=re.escape("'dog' is not a word of the text. Its words are: The cat sat")):
        hs.view(model, "The cat sat", "A dog", highlight="dog→cat")  # encoder heads are shown, whose text has no "dog"
    assert hs.view(model, "The cat sat", "A dog", measure="A").grids()["A, mean over 2 layers"].rows[:3] == ("The", "cat", "sat")
