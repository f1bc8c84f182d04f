"""What holds of every study because it is one. A newly registered study is tried as soon as it has an entry in
`small.SMALL`.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from html import unescape
from inspect import cleandoc, signature
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import headscope as hs
from headscope.cli.main import app
from headscope.comparison.base import names_of
from headscope.errors import HeadscopeError, RunError
from headscope.figures import RUN_FIGURES
from headscope.results.results import Results
from headscope.results.specification import Role
from headscope.results.table import Table
from headscope.studies.base import Study, Work
from headscope.studies.registry import REGISTRY
from headscope.studies.spec import StudySpec
from headscope.views.findings import findings
from helpers.changed_settings import changed, current, shows_nothing_usual, shows_what_is_changed, usual
from helpers.small import BESIDE, CUT, NEEDY, PLAIN, SMALL, TOY, SmallStudies, registered_toy, small_studies

Headscope = Callable[..., tuple[int, str, str]]
STUDIES = [*REGISTRY, TOY.name]
# Results that are studies to whoever reads them, but not made by one.
OTHERS = ["replication", *(["joined"] if "edge_probe" in REGISTRY else [])]


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> SmallStudies:
    return small_studies(tmp_path_factory.getbasetemp())


@pytest.fixture
def toy() -> Iterator[Study]:
    with registered_toy() as study:
        yield study


@pytest.fixture(params=STUDIES)
def study(request: pytest.FixtureRequest) -> Study:
    """Each study in turn."""
    if request.param == TOY.name:
        request.getfixturevalue("toy")
    return REGISTRY[request.param]


@pytest.fixture
def folder(study: Study, small: SmallStudies, tmp_path: Path) -> Path:
    """The folder of a finished study, to be changed at will."""
    return Path(shutil.copytree(small.folder(study.name), tmp_path / "study"))


@pytest.fixture(params=[*STUDIES, *OTHERS])
def any_folder(request: pytest.FixtureRequest, small: SmallStudies, tmp_path: Path) -> Path:
    """The folder of a finished study, a replication, or joined studies."""
    if request.param == TOY.name:
        request.getfixturevalue("toy")
    made = getattr(small, request.param)() if request.param in OTHERS else small.folder(request.param)
    return Path(shutil.copytree(made, tmp_path / "study"))


def refusal(headscope: Headscope, *arguments: str | Path) -> str:
    """What a command says that is to be refused: one line, and no traceback."""
    code, out, error = headscope(*arguments)
    assert (code, out) == (2, ""), (arguments, out, error)
    assert re.fullmatch(r"headscope: [^\n]+\n", error), error
    return error


# Small settings


@pytest.mark.parametrize("name", STUDIES)
def test_every_study_has_small_settings(name: str, small: SmallStudies) -> None:
    assert name in SMALL, f"{name} has no small settings: add an entry to SMALL in tests/helpers/small.py"


# Resuming and repeating


def without_circumstances(results: Results) -> dict[str, Any]:
    """A manifest without what differs between an interrupted study and another."""
    counts = {name: number for name, number in results.manifest["counts"].items() if name != "resumed_shards"}
    return {**results.manifest, "counts": counts, "seconds": None}


def test_interrupted_and_resumed_equals_uninterrupted(study: Study, small: SmallStudies, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Results.open(small.folder(study.name))
    out = small.root / f"{study.name}-interrupted"
    make_work = type(study).work
    done: list[Any] = []

    def work(self: Study, spec: Any, context: Any) -> Work:
        made = make_work(self, spec, context)
        do = made.do

        def first_job(job: Any) -> Any:
            if done:
                raise KeyboardInterrupt
            done.append(job)
            return do(job)

        def no_tables(states: Any) -> Any:  # a study of one job is interrupted after that
            raise KeyboardInterrupt

        monkeypatch.setattr(made, "do", first_job)
        monkeypatch.setattr(made, "tables", no_tables)
        return made

    with monkeypatch.context() as patch:
        patch.setattr(type(study), "work", work)
        with pytest.raises(KeyboardInterrupt):
            small.execute(study.name, out)
    with pytest.raises(RunError, match="not finished"):
        Results.open(out)
    with pytest.raises(RunError, match=r"already holds a run.*--resume"):
        small.execute(study.name, out)
    small.execute(study.name, out, resume=True)
    resumed = Results.open(out)
    assert resumed.manifest["counts"]["resumed_shards"] == 1
    assert without_circumstances(resumed) == without_circumstances(whole)
    for name in whole.manifest["files"]:
        assert (out / name).read_bytes() == (small.folder(study.name) / name).read_bytes(), name
    assert sorted(path.name for path in out.iterdir()) == sorted(path.name for path in small.folder(study.name).iterdir())


def test_a_finished_study_is_not_done_again(study: Study, small: SmallStudies, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its folder is refused; to resume it gives what is there."""
    with pytest.raises(RunError, match=r"already holds a run.*--overwrite"):
        small.execute(study.name, small.folder(study.name))

    make_work = type(study).work

    def never() -> None:
        raise AssertionError("a finished study is prepared again")

    def work(self: Study, spec: Any, context: Any) -> Work:
        made = make_work(self, spec, context)
        monkeypatch.setattr(made, "prepare", never)
        return made

    monkeypatch.setattr(type(study), "work", work)
    resumed = small.execute(study.name, small.folder(study.name), resume=True)
    assert resumed.manifest == Results.open(small.folder(study.name)).manifest


def test_a_rerun_is_identical(study: Study, small: SmallStudies, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also from another place than the study was started in, by relative paths."""
    monkeypatch.chdir(tmp_path)
    found = hs.rerun(small.folder(study.name))
    assert found.identical, repr(found)
    assert found.circumstances == ()
    assert found.same.tables == len(Results.open(small.folder(study.name)))


@pytest.mark.parametrize("kind", OTHERS)
def test_what_was_not_made_in_one_piece_is_not_made_again(kind: str, small: SmallStudies, headscope: Headscope) -> None:
    assert "Rerun those, each in its own folder" in refusal(headscope, "rerun", getattr(small, kind)())


# Signatures


def test_every_setting_is_signed(study: Study) -> None:
    """A setting that is not at its default is in the signature and in the identity, or is declared neutral, or its
    content is hashed.
    """
    shows_nothing_usual(study.spec)
    shows_what_is_changed(study.spec)


def test_no_neutral_setting_tells_studies_apart(study: Study) -> None:
    """In the names that compared studies have."""
    spec = usual(study.spec)
    others = [name for name in study.spec.model_fields if name not in spec.having(Role.NEUTRAL)]
    for name in spec.having(Role.NEUTRAL):
        field = study.spec.model_fields[name]
        both = [spec, spec.model_copy(update={name: changed(field.annotation, current(spec, name)), "seed": 7})]
        results = [Results({"study": study.name, "settings": one.model_dump(mode="json"), "identity": {}}, {}) for one in both]
        assert "seed" in others
        assert [called.split()[0] for called in names_of(results)] == ["seed", "seed"], name


def test_the_signature_is_that_of_the_folder(study: Study, small: SmallStudies) -> None:
    """It shows what the small settings change, and every table carries it."""
    results = Results.open(small.folder(study.name))
    spec = study.make(results.manifest["settings"])
    parts = dict(part.split(":", 1) for part in results.signature.split("|"))
    titles = {name: study.spec.model_fields[name].title or name for name in spec.having(Role.CONTENT)}
    assert {"headscope", "run", *(title for name, title in titles.items() if getattr(spec, name)), *spec.shown()} <= parts.keys()
    assert parts.keys() <= {"headscope", "run", "annotation", *titles.values(), *spec.shown()}
    assert all(table.metadata["signature"] == results.signature for table in results.values())


# Comparing


def compared(headscope: Headscope, *folders: Path) -> Mapping[str, Table]:
    """Compare folders in Python and on the terminal; the differences, none if the comparison is refused in one line."""
    try:
        found = hs.compare(*folders)
    except HeadscopeError:
        refusal(headscope, "compare", *folders)
        return {}
    assert repr(found)
    code, out, error = headscope("compare", *folders)
    assert code == 0, error
    assert all(f"({name})" in out for name in found.differences)
    return found.differences


def test_compared_with_itself(any_folder: Path, headscope: Headscope) -> None:
    differences = compared(headscope, any_folder, any_folder)
    assert differences, "the small study has no number to compare: change its entry in SMALL"
    for table in differences.values():
        assert set(table["difference"]) == {0.0}


def test_compared_with_another_seed(study: Study, folder: Path, small: SmallStudies, tmp_path: Path, headscope: Headscope) -> None:
    """On the terminal and on a page, which has the figures of the comparison."""
    other, page = small.folder(study.name, seed=1), tmp_path / "compared.html"
    if compared(headscope, folder, other):
        code, _, error = headscope("compare", folder, other, "-o", page)
        assert (code, error, page.exists()) == (0, "", True)
    else:
        refusal(headscope, "compare", folder, other, "-o", page)


def test_studies_of_different_kinds_are_not_compared(study: Study, small: SmallStudies, headscope: Headscope) -> None:
    for other in (small.run(), small.replication()):
        assert "same kind" in refusal(headscope, "compare", small.folder(study.name), other)


# Showing, drawing, reporting


def test_shown_in_the_terminal(any_folder: Path, headscope: Headscope) -> None:
    results = Results.open(any_folder)
    code, out, error = headscope("show", any_folder)
    assert (code, error) == (0, "")
    assert all(f"{name} ({len(results[name])} rows)" in out for name in results)
    for name in results:
        code, out, error = headscope("show", any_folder, name)
        assert (code, error) == (0, ""), name
        assert headscope("show", any_folder, name, "--format", "csv")[0] == 0, name
    assert "It has" in refusal(headscope, "show", any_folder, "no_such_table")


def test_findings_are_shown(study: Study, folder: Path, headscope: Headscope) -> None:
    """Sentences without missing numbers. A study may have none that warns of its results."""
    results = Results.open(folder)
    found = findings(results)
    assert found or results.warnings
    for finding in found:
        assert re.fullmatch(r"\S.*[.:)]", finding), finding
        assert not re.search(r"\b(nan|None)\b", finding), finding
    shown = headscope("show", folder)[1]
    assert all(finding in shown for finding in found)
    assert all(finding in repr(hs.open_study(folder)) for finding in found)


def test_every_figure_is_drawn(study: Study, folder: Path, tmp_path: Path, headscope: Headscope) -> None:
    """Or is refused, with the command that makes the table which the study lacks."""
    results = Results.open(folder)
    for figure in study.figures:
        path = tmp_path / f"{figure.name}.svg"
        if figure.table in results:
            code, _, error = headscope("plot", folder, figure.name, "-o", path)
            assert (code, error) == (0, ""), figure.name
            assert path.read_text().count("<svg") == 1
        else:
            assert f"headscope {figure.command}" in refusal(headscope, "plot", folder, figure.name, "-o", path)
            assert not path.exists()
    assert "is unknown" in refusal(headscope, "plot", folder, "no_such_figure", "-o", tmp_path / "none.svg")


def test_a_figure_of_another_study_is_refused(study: Study, small: SmallStudies, tmp_path: Path, headscope: Headscope) -> None:
    for figure in study.figures:
        assert f"headscope {figure.command}" in refusal(headscope, "plot", small.run(), figure.name, "-o", tmp_path / "none.svg")


def test_reported_on_a_page(any_folder: Path, headscope: Headscope) -> None:
    """With what the study declares for reports: titles, explanations, what was published, findings, figures."""
    code, out, error = headscope("report", any_folder)
    assert (code, error) == (0, "")
    assert out.strip() == str((any_folder / "report.html").resolve())
    results = Results.open(any_folder)
    page = re.sub(r"<a [^>]*>|</a>", "", unescape((any_folder / "report.html").read_text()))
    wanted = [results.signature]
    if results.study is not None and results.study in REGISTRY:
        study = REGISTRY[results.study]
        shown = [figure for figure in study.figures if figure.title and figure.table in results and len(results[figure.table])]
        wanted += [study.title, study.about, study.published, *findings(results)]
        wanted += [text for figure in shown for text in (figure.title, figure.about)]
        assert page.count('src="data:image/svg+xml') == len(shown)
    for text in wanted:
        assert text in page, text


# Settings on the command line, in a file and in Python


class Caught(Exception):
    """What a command would have done."""

    def __init__(self, spec: StudySpec, out: Path | None) -> None:
        self.spec, self.out = spec, out


@pytest.fixture
def specified(monkeypatch: pytest.MonkeyPatch, headscope: Headscope, tmp_path: Path) -> Callable[..., Caught | str]:
    """What gives the settings that a command would execute a study with, or the error it ends with."""
    monkeypatch.chdir(tmp_path)

    def catch(study: Study | str, settings: StudySpec, out: Path | None = None, **_: Any) -> None:
        raise Caught(settings, out)

    monkeypatch.setattr("headscope.studies.execute.execute", catch)

    def call(*arguments: str | Path) -> Caught | str:
        try:
            return headscope(*arguments)[2]
        except Caught as caught:
            return caught

    return call


@cache
def command_of(study: Study) -> Any:
    """The command of a study."""
    command: Any = get_command(app)
    for word in study.verb.split():
        command = command.commands[word]
    return command


def parameters(study: Study) -> dict[str, Any]:
    """The parameters of the command that are settings, by their names."""
    fields = [name for name, field in study.spec.model_fields.items() if field.description]
    found = {parameter.name: parameter for parameter in command_of(study).params}
    return {name: found[name] for name in fields}


def complete(study: Study, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings and those that the command line takes without a flag, as usual."""
    spec, found = usual(study.spec), parameters(study)
    return {**{name: getattr(spec, name) for name in found if found[name].param_type_name == "argument"}, **settings}


def written(study: Study, settings: Mapping[str, Any], file: Path | None = None) -> list[str]:
    """A command that gives settings by arguments and flags, and names a file: lists behind commas, or one by one."""
    arguments, flags, values = [], list[str](), complete(study, settings)
    for name, parameter in parameters(study).items():
        value = values.get(name)
        if value is None:
            continue
        if parameter.param_type_name == "argument":
            arguments.append(value)
        elif isinstance(value, bool):
            flags += (parameter.opts if value else parameter.secondary_opts)[:1]
        elif parameter.multiple:
            flags += [part for text in value for part in (parameter.opts[0], str(text))]
        elif isinstance(value, list | tuple):
            flags += [parameter.opts[0], ",".join(map(str, value)) or "none"]
        else:
            flags += [parameter.opts[0], str(value)]
    named = [] if file is None else [str(file)] if not arguments else ["--settings", str(file)]
    return [*study.verb.split(), *arguments, *named, *flags]


def toml(settings: Mapping[str, Any]) -> str:
    """Settings as a TOML file. What JSON calls strings, numbers and lists, TOML calls so, too."""
    return "".join(f"{name} = {json.dumps(value)}\n" for name, value in settings.items())


def outcome(study: Study, settings: Mapping[str, Any]) -> StudySpec | str:
    """The specification that settings give, or the line that the command line ends with."""
    try:
        made: StudySpec = study.make(settings, "the options")
        return made
    except RunError as error:
        return f"headscope: {error}\n"


def test_a_file_and_flags_say_the_same(study: Study, small: SmallStudies, specified: Callable[..., Caught | str], tmp_path: Path) -> None:
    settings = {name: value for name, value in small.settings(study.name).items() if name in parameters(study)}
    file = tmp_path / "settings.toml"
    file.write_text(toml({**settings, "out": "THERE"}))
    taken = {name: value for name, value in settings.items() if name in complete(study, {})}
    by_file, by_flags = specified(*written(study, taken, file)), specified(*written(study, settings), "--out", "THERE")
    assert isinstance(by_file, Caught), by_file
    assert isinstance(by_flags, Caught), by_flags
    assert by_file.spec == by_flags.spec == study.make(settings)
    assert by_file.out == by_flags.out == Path("THERE")
    both = specified(*written(study, taken, file), "--seed", "5", "--out", "HERE")
    assert isinstance(both, Caught), both
    assert (both.spec, both.out) == (study.make({**settings, "seed": 5}), Path("HERE"))


def test_without_options_all_is_as_usual(study: Study, specified: Callable[..., Caught | str]) -> None:
    caught = specified(*written(study, {}))
    assert isinstance(caught, Caught), caught
    assert caught.spec == usual(study.spec)
    assert str(caught.out).startswith(f"runs/{study.folder}-")


def test_every_option_is_a_setting(study: Study, specified: Callable[..., Caught | str]) -> None:
    """Another value given by its flag is the same as given by name; one that is refused is refused in the same
    words.
    """
    spec = usual(study.spec)
    for name, parameter in parameters(study).items():
        value = changed(study.spec.model_fields[name].annotation, current(spec, name))
        if value is False and not parameter.secondary_opts:
            continue
        caught = specified(*written(study, {name: value}))
        expected = outcome(study, complete(study, {name: value}))
        assert (caught.spec if isinstance(caught, Caught) else caught) == expected, name


def test_help_names_every_option(study: Study, headscope: Headscope) -> None:
    code, out, _ = headscope(*study.verb.split(), "--help")
    assert code == 0
    shown = " ".join(out.split())
    for text in (study.help, *(field.description for field in study.spec.model_fields.values() if field.description)):
        assert cleandoc(text).splitlines()[0] in shown, text
    assert all(parameter.opts[0] in out for parameter in parameters(study).values() if parameter.param_type_name == "option")
    *group, verb = study.verb.split()
    assert re.search(rf"^  {verb} ", headscope(*group, "--help")[1], re.MULTILINE)


@pytest.mark.parametrize("name", REGISTRY)
def test_every_study_is_a_function(name: str) -> None:
    """In Python, documented, with a corpus and a folder to name, and all settings."""
    function = getattr(hs, REGISTRY[name].function)
    assert function.__doc__
    taken = signature(function).parameters
    assert {*REGISTRY[name].corpora, "out"} <= taken.keys()
    assert any(parameter.kind is parameter.VAR_KEYWORD for parameter in taken.values())


def test_done_by_its_name_in_python(study: Study, small: SmallStudies, monkeypatch: pytest.MonkeyPatch) -> None:
    """`hs.study` hands on the same settings."""
    caught: list[Any] = []

    def catch(study: Study | str, settings: StudySpec, out: Path | None = None, **how: Any) -> Results:
        caught.append((settings, out))
        return Results({"study": "", "signature": "", "warnings": []}, {})

    monkeypatch.setattr("headscope.studies.execute.execute", catch)
    settings = small.settings(study.name)
    hs.study(study.name, settings.pop("model"), "OUT", **settings)
    assert caught == [(study.make(small.settings(study.name)), Path("OUT"))]


# What a study declares


def test_what_is_declared_is_there(study: Study) -> None:
    fields = study.spec.model_fields
    assert study.corpora[0] == "corpus"
    for name in (*study.corpora, *study.files):
        assert name in fields, f"{study.name} declares {name}, which is no setting"
        assert Role.CONTENT in fields[name].metadata or Role.NEUTRAL in fields[name].metadata, f"the name of {name} counts, not its content"
    undeclared = [name for name, field in fields.items() if Role.CONTENT in field.metadata and name not in (*study.corpora, *study.files)]
    assert undeclared == ["model"], "what is hashed is a corpus or a file, and is to be found again"
    assert not {*study.takes} & {*fields}
    assert issubclass(study.spec, StudySpec)
    for text in (study.title, study.about, study.published, study.doing, study.folder):
        assert text.strip() == text != ""


def test_names_are_used_once() -> None:
    studies = [*REGISTRY.values(), TOY]
    for what in ("name", "verb", "function", "folder"):
        assert max(Counter(getattr(study, what) for study in studies).values()) == 1, what
    figures = Counter(figure.name for study in studies for figure in study.figures)
    assert max(figures.values()) == 1
    assert not {*RUN_FIGURES} & {*figures}


def test_declared_tables_have_declared_columns(study: Study, small: SmallStudies) -> None:
    results = Results.open(small.folder(study.name))
    there = [compared for compared in study.compared if compared.table in results]
    assert there, "the small study has none of the tables that are compared: change its entry in SMALL"
    for compared in there:
        bounds = [bound for own in compared.numbers.values() if own is not None for bound in own]
        assert {*compared.keys, *compared.numbers, *bounds} <= {*results[compared.table].columns}, compared.table
    assert any(figure.table in results for figure in study.figures) or not study.figures
    assert "summary" in results
    numbers = study.replicates(results)
    assert {*numbers} <= {compared.table for compared in study.compared}


def test_figures_are_documented_functions(study: Study) -> None:
    """Of the module `figures`, which take the choices that are declared."""
    for figure in study.figures:
        assert figure.line.strip() == figure.line != ""
        assert bool(figure.title) == bool(figure.about), figure.name
        if type(study).draw is Study.draw:
            module = __import__(f"{type(study).__module__}.figures", fromlist=[figure.draw])
            parameters = signature(getattr(module, figure.draw)).parameters
            assert {*figure.choices} <= {*parameters}, figure.name


def examples(study: Study) -> list[list[str]]:
    """The examples of the help text, as the words of a command; what comes after # is said of it."""
    lines = [line.strip() for line in study.help.splitlines()]
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("headscope ")]


def test_help_begins_with_a_sentence_and_has_examples_that_parse(study: Study, specified: Callable[..., Caught | str]) -> None:
    first, _, rest = cleandoc(study.help).partition("\n\n")
    assert re.fullmatch(r"[A-Z][^\n]+\.", first), "the help of a command begins with a sentence on a line of its own"
    assert rest
    verb = study.verb.split()
    assert any(words[: len(verb)] == verb for words in examples(study)), "the first thing a person looks for is an example"
    whole: Any = get_command(app)
    for words in examples(study):
        command, context = whole, None
        while hasattr(command, "commands"):
            context = command.make_context(words[0], words, parent=context, resilient_parsing=False)
            name, command, words = command.resolve_command(context, words)
        values = command.make_context(name, words, parent=context).params
        if name == "plot":
            assert values["figure"] in [figure.name for figure in study.figures]
    for words in examples(study):
        if words[: len(verb)] == verb and not any(word.endswith(".toml") for word in words):
            assert isinstance(caught := specified(*words), Caught), caught


# What is refused


def wrong_settings(study: Study) -> dict[str, dict[str, Any]]:
    """Settings that must be refused, by what is wrong with them."""
    found: dict[str, dict[str, Any]] = {
        "an unknown setting": {"colour": 1},
        "a wrong number": {"max_length": 0},
        "a number that is none": {"seed": "many"},
        "a wrong word": {"dtype": "float5"},
        "a missing corpus": {"corpus": ["nowhere.conllu"]},
        "no corpus": {"corpus": list[str]()},
        "a corpus named twice": {"corpus": ["excerpt.conllu", "excerpt.conllu"]},
        "an unknown format": {"format": "paper"},
        **{f"a missing {name}": {name: ["nowhere.conllu"]} for name in study.corpora[1:]},
    }
    for name in study.files:
        if Role.CONTENT in study.spec.model_fields[name].metadata:
            found[f"a missing {name}"] = {name: "nowhere.txt", **BESIDE.get(name, {})}
    if study.name not in CUT:
        found["texts longer than the model reads"] = {"max_length": 100_000}
    if study.annotation is not None or study.name in NEEDY:
        found["a corpus without annotation"] = {"corpus": ["plain.txt"], **NEEDY.get(study.name, {})}
    return found


def test_wrong_settings_are_refused_and_nothing_is_written(study: Study, small: SmallStudies, tmp_path: Path) -> None:
    for what, changes in wrong_settings(study).items():
        with pytest.raises(HeadscopeError) as refused:
            small.execute(study.name, tmp_path / "out", changes)
        assert "\n" not in str(refused.value), what
        error = refused.value
        helps = error.remedy or re.search(r"should be|name at least one", error.problem)
        assert helps, f"{what}: {error} says nothing of what to do"
        assert not (tmp_path / "out").exists(), what


def test_what_needs_annotation_says_so(study: Study) -> None:
    assert study.annotation is not None or study.name in {*NEEDY, *PLAIN}, (
        f"name {study.name} in NEEDY with settings that need annotation, or in PLAIN, in tests/helpers/small.py"
    )


def test_refused_on_the_command_line_in_one_line(study: Study, small: SmallStudies, tmp_path: Path, headscope: Headscope) -> None:
    out = tmp_path / "out"
    assert "nowhere.conllu" in refusal(headscope, *written(study, {"corpus": ["nowhere.conllu"]}), "--out", out)
    file = tmp_path / "settings.toml"
    file.write_text('colour = "red"\n')
    assert "no setting is called 'colour'" in refusal(headscope, *written(study, {}, file), "--out", out)
    assert not out.exists()
    out.write_text("a file")
    refusal(headscope, *written(study, {"corpus": [small.material / "excerpt.conllu"]}), "--out", out)
    assert out.read_text() == "a file"


def test_what_a_study_does_not_take_is_refused(study: Study, small: SmallStudies, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=rf"{study.function}\(\) takes no colour"):
        small.execute(study.name, tmp_path / "out", colour=len)
    assert not (tmp_path / "out").exists()
