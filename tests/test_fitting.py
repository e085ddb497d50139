"""`weft.fit`: the model of the command for the same data, from tables and lists; resume, check, notebooks."""

import os
import shutil
import signal
import sys
import types
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import weft
from tests.commands.shell import weft as typed
from tests.commands.test_every_init import GIVEN, SMALL
from tests.slow import slow
from tests.tasks.every import KINDS
from weft.data.frames import located
from weft.errors import CheckpointError, ConfigError, DataError, DataWarning
from weft.tasks.classify.init import ClassifyInit
from weft.train.notebook import NotebookDisplay
from weft.train.reporting import Line, Reporter

SHORT = {"max_updates": 2, "validate_every": 2, "tensorboard": False}
FAST = ("classify", "forecast", "tag")
LINEAR = [one for one in ClassifyInit.trial.candidates if one.name == "linear"]
TEXTS = [
    (f"a {word} film of {n}", "good" if word == "fine" else "bad")
    for n in range(30)
    for word in ("fine", "dull")
]
SENTENCES = [[("the", "D"), ("dog", "N"), ("runs", "V")], [("cats", "N"), ("sleep", "V")]] * 20
PAIRS = [("one two", "jedan dva"), ("two, one", "dva, jedan"), ('"one"', '"jedan"')] * 20
FRAME = pd.DataFrame(TEXTS, columns=["text", "label"])
HOURS = pd.date_range("2024-10-11", periods=384, freq="h", tz="Europe/Zagreb")
SERIES = pd.Series(np.sin(np.arange(len(HOURS)) / 5), index=HOURS)


def nested(overrides: tuple[str, ...]) -> dict[str, Any]:
    """Overrides of the command as sections."""
    from weft.config import parse

    found: dict[str, Any] = {}
    for name, _, text in (one.partition("=") for one in overrides):
        *above, last = name.split(".")
        section = found
        for key in above:
            section = section.setdefault(key, {})
        section[last] = parse(text, "", name=name, place=name).plain() if text[0] == "{" else eval(text)
    return found


def options(words: tuple[str, ...]) -> dict[str, Any]:
    """Options of the command as arguments."""
    return {name.removeprefix("--"): value for name, value in zip(words[::2], words[1::2], strict=True)}


def short(task: str, run: str | Path, data: Any = None, **more: Any) -> Any:
    """A model after two updates."""
    sections = nested(SMALL.get(task, ()))
    return weft.fit(task, data, run=run, progress=False, **sections, training=SHORT, **more)


def weights(run: str | Path) -> bytes:
    return Path(run, "model.safetensors").read_bytes()


@pytest.mark.parametrize("name", [*FAST, *slow(one for one in GIVEN if one not in FAST)])
def test_its_weights_are_those_of_the_command(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    KINDS[name].make(Path("toy"))
    assert typed("init", name, *GIVEN[name], "--output", "my.yaml").code == 0
    overrides = [f"training.{key}={str(value).lower()}" for key, value in SHORT.items()]
    trained = typed("train", "my.yaml", "--run", "run", *overrides, *SMALL.get(name, ()))
    assert trained.code == 0, trained.err
    words = GIVEN[name]
    data = None if words[0].startswith("--") else words[0]
    given = {
        key: int(one) if one.isdigit() else one for key, one in options(words[data is not None :]).items()
    }
    model = short(name, "fitted", data, **given)
    assert weights("run") == weights("fitted")
    assert model.recipe == Path("run/recipe.yaml").read_text("utf-8")
    assert type(weft.load("fitted")) is type(model)


CASES: Mapping[str, tuple[str, Any, dict[str, Any], str, str]] = {
    "a frame": ("classify", FRAME, {}, "train.csv", FRAME.to_csv(index=False)),
    "tuples": ("classify", TEXTS, {}, "train.csv", FRAME.to_csv(index=False)),
    "words and tags": ("tag", SENTENCES, {}, "train.tsv", ""),
    "numbers": ("forecast", np.arange(200.0)[:, None], {"horizon": 2}, "train.csv", ""),
    "a series": ("forecast", SERIES, {"horizon": 2}, "train.csv", ""),
    "pairs": ("translate", PAIRS, {"source": "en", "target": "hr"}, "train.csv", ""),
    "texts": ("language", ["the cat sat .", "a dog ran ."] * 40, {}, "train.txt", ""),
}


@pytest.mark.parametrize(
    "name", ["a frame", "words and tags", *slow(["tuples", "numbers", "a series", "pairs", "texts"])]
)
def test_data_in_memory_means_what_its_file_means(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    task, data, given, file, content = CASES[name]
    short(task, "memory", data, **given)
    kept = Path("memory/data", file)
    if content:
        assert kept.read_text("utf-8") == content
    shutil.copy(kept, file)
    zone = {"zone": "Europe/Zagreb"} if data is SERIES else {}
    short(task, "file", file, **given, **zone)
    assert weights("memory") == weights("file")


def test_a_list_of_files_is_read_as_them_and_a_list_of_texts_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, words in (("a.tsv", ("one", "uno")), ("b.tsv", ("two", "dos"))):
        rows = (f"{words[0]} {n}\t{words[1]} {n}\n" for n in range(40))
        Path(name).write_text("en\tes\n" + "".join(rows))
    given = {"source": "en", "target": "es", "progress": False, "training": {"max_updates": 1}}
    model = weft.fit("translate", ["a.tsv", "b.tsv"], run="run", **given)
    assert "train: [" in model.recipe and "a.tsv" in model.recipe and "b.tsv" in model.recipe
    with pytest.raises(DataError, match=r"gone\.tsv: no such file"):
        weft.fit("translate", ["a.tsv", "gone.tsv"], run="other", **given)
    assert "b.tsv: 40 pairs" in str(weft.check(["a.tsv", "b.tsv"], "translate", source="en", target="es"))
    texts = ["a.tsv is a file. " + 400 * "x.y", "none\0.tsv"]
    assert "22 lines" in str(weft.check([*texts, *20 * ["a rose"]], "language"))


def test_sentences_are_lists_of_pairs_or_pairs_of_lists(tmp_path: Path) -> None:
    from weft.data.frames import as_file

    lists = [([word for word, _ in one], [tag for _, tag in one]) for one in SENTENCES]
    assert as_file(SENTENCES, tmp_path / "train") == as_file(lists, tmp_path / "train")
    path, content = as_file([[("the", "D"), ("dog", "N")]], tmp_path / "train")
    assert (path.name, content) == ("train.tsv", b"the\tD\ndog\tN\n")


@pytest.mark.parametrize(
    "sentence",
    [[("New", None), ("York", "B")], [("x", float("nan"))], (["a", "b"], ["O"]), [("a", "b", "c")]],
)
def test_a_word_without_a_tag_is_refused(sentence: Any, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="expected a tag for each word of a sentence"):
        weft.fit("tag", [*SENTENCES, sentence], run=tmp_path / "run", progress=False)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fitted") / "run"
    weft.fit("classify", FRAME, run=path, progress=False, training=SHORT)
    return path


def test_a_trained_model_has_curves_and_a_solved_one_none(run: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="a linear model is solved at once: give plot texts and labels"):
        weft.load(run).plot()
    trained = short("classify", tmp_path / "run", FRAME, model={"bag": {"solve": False}})
    figure: Any = trained.plot()
    assert len(figure.axes) > 0 and figure._repr_png_()[0].startswith(b"\x89PNG")


def test_a_model_shows_saves_and_draws_itself(run: Path, tmp_path: Path) -> None:
    model = weft.load(run)
    assert model.recipe.startswith("task: classify\n")
    model.save(tmp_path / "saved")
    assert not (tmp_path / "saved" / "data").exists()
    assert weft.load(tmp_path / "saved").predict("a fine film") == model.predict("a fine film")
    with pytest.warns(DataWarning, match="of 60 inputs occurred in training"):
        drawn: Any = model.plot(FRAME)
    assert "60 texts, accuracy" in drawn.axes[0].get_title()  # the confusion matrix
    with pytest.raises(DataError, match="expected a column 'label', got text"):
        model.plot(FRAME[["text"]])
    shown = model._repr_html_()
    assert "&lt;TextClassifier;" in shown and "<table" not in shown
    with pytest.warns(DataWarning, match="of 60 inputs occurred in training"):
        model.evaluate(FRAME)
    assert "<table" in model._repr_html_() and "accuracy" in model._repr_html_()
    page = model.inspect("a fine film", view="probabilities")
    assert "a fine film" in page.page and "text/html" in page._repr_mimebundle_()
    with pytest.raises(ConfigError, match="expected a view of this run"):
        model.inspect("a fine film", view="search-tree")
    with pytest.raises(ConfigError, match="expected a new folder, got one with files"):
        model.save(tmp_path / "saved")
    with pytest.raises(ConfigError, match="expected a new folder, got a file"):
        model.save(tmp_path / "saved" / "recipe.yaml")


def test_a_refit_model_is_saved_whole(tmp_path: Path) -> None:
    """A solved model that was given its validation texts back has vocabularies of its own for them."""
    model = weft.fit("classify", FRAME, model="linear", run=tmp_path / "run", progress=False)
    assert (tmp_path / "run" / "whole").is_dir()
    model.save(tmp_path / "saved")
    assert weft.load(tmp_path / "saved").predict("a fine film") == model.predict("a fine film")


def test_a_fit_that_failed_blocks_nothing(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with pytest.raises(DataError):
        weft.fit("classify", [("", "good"), ("x", "")], run=run, progress=False)
    weft.fit("classify", FRAME, run=run, progress=False, training=SHORT)


def test_a_run_is_not_resumed_with_other_options(tmp_path: Path) -> None:
    values, run = np.arange(200.0), tmp_path / "run"
    short("forecast", str(run), values, horizon=2)
    with pytest.raises(DataError, match="begun with other data or options"):
        short("forecast", str(run), values, horizon=3)


def test_runs_without_a_name_are_numbered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for size in (60, 40, 20):
        weft.fit("classify", FRAME[:size], progress=False, training=SHORT)
    assert {path.name for path in Path("runs").iterdir()} == {"classify", "classify-2", "classify-3"}


def test_a_run_is_resumed_with_its_own_data_alone(run: Path, tmp_path: Path) -> None:
    own = tmp_path / "run"
    shutil.copytree(run, own)
    with pytest.raises(DataError, match="begun with other data"):
        weft.fit("classify", FRAME[:40], run=own, progress=False, training=SHORT)
    more = {**SHORT, "max_updates": 4}
    recipe = (own / "recipe.yaml").read_text("utf-8").replace(str(run), str(own))
    (own / "recipe.yaml").write_text(recipe, "utf-8")
    weft.resume(own, progress=False, training=more)
    whole = tmp_path / "whole"
    weft.fit("classify", FRAME, run=whole, progress=False, training=more)
    assert weights(own) == weights(whole)
    with pytest.raises(CheckpointError, match=r"got no recipe\.yaml"):
        weft.resume(tmp_path)


@pytest.mark.parametrize(
    ("data", "settings", "why"),
    [
        (TEXTS, {"labell": "x"}, "classify has no such setting; did you mean label?"),
        (None, {}, "train: classify needs it, got none"),
        ([("a", "b", "c")], {}, r"expected a list of texts or tuples \(text, label\), got one with"),
        ([], {}, "expected a table, a list or a file"),
        (7, {}, "expected a table, a list or a file, got"),
        (TEXTS, {"training": {"lr": 1}}, "lr"),
        (TEXTS, {"model": "crf"}, "model: expected one of linear, vectors, network, got 'crf'"),
        (TEXTS, {"label": ["x"]}, "label: expected a text, got a list"),
        ({"text": ["a"]}, {}, r"train: expected a table, a list or a file, got an object; give pd.DataFrame"),
        (
            ["a", "b"],
            {},
            r"train: expected a table, or a list of tuples \(text, label\), got a list of texts",
        ),
        ([("a", 1), ("b", 1.0)], {}, "train: 1 and 1.0 in label are one number and two texts"),
        (
            FRAME.rename(columns={"text": "txt"}),
            {"text": "text"},
            "train: expected a column 'text', got txt, label",
        ),
        (FRAME.assign(label=["", *FRAME.label[1:]]), {}, r"train\.loc\[0\]: the label is empty"),
        (
            FRAME.assign(text="a\nb", label=["x", "", *FRAME.label[2:]]).set_index(FRAME.text.rename("key")),
            {},
            r"train\.loc\['a dull film of 0'\]: the label is empty",
        ),
    ],
)
def test_what_cannot_be_trained_is_said_in_a_sentence(
    data: Any, settings: dict[str, Any], why: str, tmp_path: Path
) -> None:
    with pytest.raises((ConfigError, DataError), match=why):
        weft.fit("classify", data, run=tmp_path / "run", progress=False, **settings)


@pytest.mark.parametrize(
    ("task", "options", "data", "why"),
    [
        ("language", {}, PAIRS, "train: expected texts, got a list of tuples; give one text each"),
        ("embeddings", {}, [["a", "b"]], "train: expected texts, got a list of tuples"),
        (
            "forecast",
            {"horizon": 2},
            [(HOURS[0], 1.0)],
            r"train: expected a table, .* give pd\.DataFrame\(rows",
        ),
        ("multilingual", {}, PAIRS, r"train: expected a table, .* pd\.DataFrame\(rows, columns="),
    ],
)
def test_tuples_are_refused_where_nothing_says_what_their_cells_are(
    task: str, options: dict[str, Any], data: Any, why: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=why):
        weft.fit(task, data, run=tmp_path / "run", progress=False, **options)


def test_inputs_and_answers_are_one_argument() -> None:
    with pytest.raises(ConfigError, match=r"list\(zip\(X, y\)\); weft\.sklearn has fit\(X, y\)"):
        weft.fit("classify", FRAME.text, FRAME.label)


def test_a_column_of_sentences_is_a_list_of_them() -> None:
    assert str(weft.check(pd.Series(SENTENCES), "tag")) == str(weft.check(SENTENCES, "tag"))


def test_files_in_a_table_are_those_of_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("toy").mkdir()
    Image.new("RGB", (5, 7)).save("toy/a.png")
    Image.new("RGB", (5, 7), "red").save("toy/b.png")
    rows = [("toy/a.png", "cat"), ("toy/gone.png", "toy/a.png is no cat")]
    absolute = [(str(tmp_path / "toy" / "a.png"), "cat"), rows[1]]
    assert located(rows) == absolute and located("toy/a.png") == "toy/a.png"
    assert [*located(pd.DataFrame(rows)).itertuples(index=False, name=None)] == absolute
    said = repr(weft.check(pd.DataFrame([*rows, ("toy/b.png", "dog")], columns=["image", "label"]), "images"))
    assert "2 pictures" in said and "data.loc[1]: no such picture" in said


def test_the_check_of_a_frame_names_its_rows() -> None:
    report = weft.check(pd.concat([FRAME, FRAME[:1]]), "classify")
    assert report.num_errors == 0 and report.counts == {"again": 1}
    assert "data.iloc[60]: the same text as data.iloc[0]" in repr(report)
    with pytest.raises(ConfigError, match="no such option"):
        weft.check(FRAME, "classify", known="x")


@pytest.mark.slow
def test_forecasts_keep_the_zone_of_the_table(tmp_path: Path) -> None:
    model = weft.fit("forecast", SERIES, horizon=6, run=tmp_path / "run", progress=False, training=SHORT)
    found = model.predict(SERIES).ds
    assert str(found.dt.tz) == "Europe/Zagreb"
    assert [*found] == [*pd.date_range("2024-10-27", periods=6, freq="h", tz="Europe/Zagreb")]
    assert model.plot(SERIES).axes
    with pytest.warns(DataWarning, match="times without a zone were read as those of Europe/Zagreb"):
        assert model.predict(SERIES.tz_localize(None)[:-30]).ds.dt.tz is not None


class Stopping(Reporter):
    """Presses Ctrl-C, as interrupting a kernel does, after the second validation."""

    count = 0

    def validated(self, update: int, scores: Mapping[str, float], samples: Sequence[Any], best: bool) -> None:
        self.count += 1
        if self.count == 2:
            os.kill(os.getpid(), signal.SIGINT)


def test_an_interrupted_kernel_keeps_the_best_so_far(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("weft.fitting.Reporter", Stopping)
    long = {"max_updates": 500, "validate_every": 2, "tensorboard": False}
    with pytest.warns(DataWarning, match=r"stopped early; this is the best model so far, and weft\.resume"):
        model = weft.fit(
            "classify", FRAME, model="network", run=tmp_path / "run", progress=False, training=long
        )
    assert model.predict("a fine film") in ("good", "bad")
    assert (*capfd.readouterr(),) == ("", "")  # progress=False says nothing


def test_a_notebook_shows_a_bar_and_curves(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[str] = []
    handle = types.SimpleNamespace(update=drawn.append)
    module: Any = types.ModuleType("IPython.display")
    module.HTML, module.display = str, lambda shown, display_id: handle
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    shown = NotebookDisplay()
    shown.said("<b>12 texts</b>")
    for update, loss in ((10, 2.0), (20, 1.0)):
        shown.logged(Line(update, 0, update / 40, loss, 0.1, 1.0, 1.0, 0, 9, 9.0, 9.0, 1.0, 1.0, 60.0))
        shown.validated(update, {"accuracy": update / 100}, [], True)
    shown.moved(20, 0.5)
    page = shown.page()
    assert "&lt;b&gt;12 texts" in drawn[0]
    assert '<progress value="0.5000"' in page and "update 20" in page
    assert "loss: 2 to 1, updates 10 to 20" in page and "validation accuracy: 0.1 to 0.2" in page
    shown.close()
    assert "<progress" not in drawn[-1] and "accuracy 0.200 (best so far)" in drawn[-1]


@pytest.mark.slow
def test_models_and_recipes_are_compared(tmp_path: Path) -> None:
    """Of models that kept their validation texts out, as there is no test part."""
    held = {**SHORT, "refit": False}
    one = weft.fit("classify", FRAME, run=tmp_path / "one", progress=False, training=held)
    other = weft.fit(
        "classify", FRAME, model="network", run=tmp_path / "other", progress=False, training=held
    )
    found = weft.compare({"two": one, "four": other}, seeds=2, folder=tmp_path / "compared")
    assert (tmp_path / "compared" / "report.html").is_file()
    assert {"two", "four"} <= set(found.scores.variant) and len(found.tests) >= 1
    assert "two" in repr(found) and "four" in repr(found)


@pytest.mark.slow
def test_the_model_of_a_trial_is_not_trained_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    many = pd.concat([FRAME] * 5).sample(frac=1, random_state=1)
    monkeypatch.setattr(ClassifyInit, "trial", ClassifyInit.trial._replace(fewest=20, candidates=LINEAR))
    weft.fit("classify", many, run="fitted")
    assert "it is not trained again" in capsys.readouterr().out
    assert typed("train", "fitted/data/classify.yaml", "--run", "run").code == 0
    assert weights("fitted") == weights("run") and Path("fitted/README.md").is_file()
    weft.fit("classify", many, run="other", progress=False, model={"bag": {"ngrams": 1}})
    assert weights("other") != weights("run")


@pytest.mark.parametrize(
    ("act", "why"),
    [
        (lambda: weft.fit(FRAME, "classify"), "the task comes first"),  # type: ignore[arg-type]
        (lambda: weft.fit("clasify", FRAME), "did you mean classify"),
        (lambda: weft.fit("regression", FRAME), "the tasks are caption, classify, "),
        (
            lambda: weft.fit("forecast", SERIES, horizon="6"),
            r"horizon: expected a whole number, got a text \(6\)",
        ),
        (lambda: weft.fit("language", FRAME), "train: expected one column of texts, got text, label"),
        (lambda: weft.fit("tag", FRAME), r"train: expected sentences as lists of \(word, tag\), got a table"),
        (lambda: weft.check("classify", FRAME), "the task comes first"),  # type: ignore[arg-type]
        (lambda: weft.check(None, "classify"), "data: expected a table, a list or a file, got nothing"),
        (lambda: weft.resume(None), "resume: expected a path, got NoneType"),  # type: ignore[arg-type]
        (lambda: weft.load(3), "load: expected a path, got int"),  # type: ignore[call-overload]
        (
            lambda: weft.fit("translate", [Path("a.tsv"), Path("b.tsv")]),
            "a.tsv: no such file; check the name",
        ),
        (lambda: weft.fit("forecast", [Path("a.tsv")], horizon=2), "forecast takes one file, got 1"),
        (lambda: weft.compare(["a", "b"]), "compare: expected two models or more by name"),  # type: ignore[arg-type]
        (lambda: weft.compare({"a": "b"}), "compare: expected two models or more by name"),
        (lambda: weft.fit("classify", FRAME, label=FRAME.label), "label: expected a text, got Series$"),
        (
            lambda: weft.fit(
                "forecast", pd.DataFrame({"unique_id": [1, 1.0], "y": 2}, dtype=object), horizon=1
            ),
            "1 and 1.0 in unique_id are one number and two texts; make them alike",
        ),
        (lambda: weft.fit("classify", FRAME, training=3), "training: expected settings, such as training={"),
        (lambda: weft.fit("classify", FRAME, epochs=3), r'start, and training=\{"max_epochs": 5\}$'),
    ],
)
def test_a_wrong_call_is_said_in_a_sentence(
    act: Any, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises((ConfigError, DataError), match=why):
        act()


def test_a_model_takes_the_forms_that_it_was_trained_on(run: Path) -> None:
    model = weft.load(run)
    with pytest.warns(DataWarning):
        assert model.evaluate(TEXTS).value.tolist() == model.evaluate(FRAME).value.tolist()
    with pytest.raises(DataError, match=r"data: expected a column 'label', got text; name"):
        model.evaluate(FRAME.text)
    with pytest.raises(ConfigError, match=r"give some with data=; weft show"):
        model.evaluate()
    with pytest.raises(DataError, match="inspect: expected one text, got DataFrame"):
        model.inspect(FRAME)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="save: expected a folder, got nothing"):
        model.save(None)  # type: ignore[arg-type]


def test_a_table_of_series_is_sorted_by_time(forecaster: Path) -> None:
    model: Any = weft.load(forecaster)
    table = long_of("a")
    right = model.predict(table)
    with pytest.warns(DataWarning, match="^input: the rows were sorted by time$") as said:
        assert model.predict(table[::-1]).equals(right)
    assert [one.filename for one in said] == [__file__]


def test_what_is_said_of_series_is_in_the_words_of_python(
    forecaster: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    weft.fit("forecast", long_of("a")[["ds", "y"]], horizon=2, model="ridge", run=tmp_path / "run")
    said = "train: times 'ds'; to forecast 'y'; time=, id= and target= name others"
    assert capsys.readouterr().out.startswith(f"{said}\n")
    with pytest.warns(DataWarning, match="windows are in the training part of the run"):
        assert str(weft.load(forecaster).evaluate(long_of("a"))).startswith("data, all windows, ")
    days = pd.DataFrame({"ds": ["01/02/2024", "03/02/2024", "02/02/2024"], "y": 1.0})
    with pytest.raises(DataError, match="say which with dates=: day or month"):
        weft.fit("forecast", days, horizon=1, run=tmp_path / "none")


def test_a_sort_is_said_once_for_a_table_and_call(tmp_path: Path) -> None:
    both = pd.concat([long_of("a"), long_of("b")])[::-1]

    def said(call: Callable[[], Any]) -> tuple[Any, list[str]]:
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            result = call()
        return result, [str(one.message) for one in found if "sorted" in str(one.message)]

    def fit() -> Any:
        return weft.fit("forecast", both, horizon=2, model="ridge", run=tmp_path / "run", progress=False)

    model, first = said(fit)
    assert first == ["train: the rows were sorted by time"]
    assert said(lambda: weft.check(both, "forecast"))[1] == ["data: the rows were sorted by time"]
    assert said(lambda: model.evaluate(both))[1] == ["data: the rows were sorted by time"]
    assert said(model.evaluate)[1] == []


def test_a_picture_has_a_few_series_and_those_asked_for(forecaster: Path) -> None:
    model: Any = weft.load(forecaster)
    table = pd.concat([long_of(name) for name in "abcdef"])
    figure = model.plot(table)
    assert [axes.get_title() for axes in figure.axes] == ["a", "b", "c", "d"]
    assert figure.axes[-1].get_xlabel() == "the first 4 of 6 series"
    assert [axes.get_title() for axes in model.plot(table, series=["f", "a"]).axes] == ["a", "f"]
    with pytest.raises(ConfigError, match=r"series=: 'z' is not in the table; it has a, b"):
        model.plot(table, series="z")


def test_a_picture_of_a_file_of_series_and_no_name_for_the_picture(forecaster: Path, tmp_path: Path) -> None:
    model: Any = weft.load(forecaster)
    long_of("a").to_csv(tmp_path / "sales.csv", index=False)
    for path in (tmp_path / "sales.csv", str(tmp_path / "sales.csv")):
        assert [axes.get_title() for axes in model.plot(path).axes] == ["a"]
    with pytest.raises(ConfigError, match=r"^plot returns a figure; call \.savefig\('forecast\.png'\)$"):
        model.plot("forecast.png")
    with pytest.raises(ConfigError, match=r"call \.savefig\('b\.svg'\)"):
        model.plot(long_of("a"), file="b.svg")
    with pytest.raises(TypeError, match="got colour= too"):
        model.plot(long_of("a"), colour="red")
    with pytest.raises(DataError, match=r"none\.csv: no such file"):
        model.plot("none.csv")


def test_a_saved_forecaster_asks_for_a_table(forecaster: Path, tmp_path: Path) -> None:
    weft.load(forecaster).save(tmp_path / "saved")
    recipe = tmp_path / "saved" / "recipe.yaml"
    recipe.write_text(recipe.read_text().replace(str(forecaster), str(tmp_path / "moved")))
    saved: Any = weft.load(tmp_path / "saved")
    with pytest.raises(
        DataError, match=r"a saved forecaster has no data of its own; give a table, predict\(f"
    ):
        saved.predict()
    assert len(saved.predict(long_of("a"))) == 2


def test_messages_about_series_name_the_row(forecaster: Path) -> None:
    model: Any = weft.load(forecaster)
    table = long_of("a").astype({"y": object}).set_index(pd.Index([f"r{n}" for n in range(80)]))
    table.loc["r3", "y"] = "x"
    with pytest.raises(DataError, match=r"input\.loc\['r3'\]: 'x' in column y is not a number"):
        model.predict(table)


def test_times_with_a_zone_after_training_without_one_are_said(forecaster: Path) -> None:
    model: Any = weft.load(forecaster)
    table = long_of("a").assign(ds=lambda own: own.ds.dt.tz_localize("Europe/Zagreb"))
    with pytest.warns(DataWarning, match="times of Europe/Zagreb were read as those of the training, which"):
        assert model.predict(table).y.tolist() == model.predict(long_of("a")).y.tolist()
    with pytest.warns(DataWarning) as seen:
        assert len(model.evaluate(table)) > 3
    assert "windows are in the training part" in str(seen[-1].message)


def long_of(name: str) -> pd.DataFrame:
    days = pd.date_range("2024-01-01", periods=80)
    return pd.DataFrame({"unique_id": name, "ds": days, "y": np.sin(np.arange(80.0))})


@pytest.fixture(scope="module")
def forecaster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("forecasts") / "run"
    weft.fit("forecast", long_of("a"), horizon=2, model="ridge", run=path, progress=False)
    return path


@pytest.mark.parametrize("price", [{}, {"price": 1.5}])
def test_a_column_of_sales_that_are_texts_is_named(price: dict[str, float], tmp_path: Path) -> None:
    table = long_of("a")[["ds"]].assign(shop="harbour", sales="3 pieces", **price)
    with pytest.raises(DataError, match=r"train\.loc\[0\]: '3 pieces' in column sales is not a number"):
        weft.fit("forecast", table, horizon=2, run=tmp_path / "run", progress=False)


def test_a_column_that_is_not_there_is_said_under_its_argument(tmp_path: Path) -> None:
    table = long_of("a")[["ds", "y"]].rename(columns={"y": "sales"})
    with pytest.raises(
        ConfigError, match=r"^target=: train: no such column 'sale'; .*did you mean 'sales'\?"
    ):
        weft.fit("forecast", table, target="sale", horizon=2, run=tmp_path / "run", progress=False)
