"""What `weft inspect` shows of every task: the views that apply and no others, and numbers that are right."""

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from tests.commands.shell import refused, weft
from tests.inspect.every import looked_at
from tests.shared import copied, shared_run
from tests.slow import leading
from weft import rooms, tasks
from weft.inspect.inspection import file_of, page_of
from weft.inspect.views.cells import CellsView, _most_varying, labels_of
from weft.inspect.views.embedding import EmbeddingView
from weft.inspect.views.gradients import GradientsView
from weft.inspect.views.view import View
from weft.probe import probe
from weft.run import LoadedRun, open_run
from weft.tasks.task import Task

CELLS = ["Cells over time", "Forgetting", "Gradient reach"]
SEARCHED = ["Alignment", "Probabilities", "Search tree"]
EXPECTED = {
    "translate": [*SEARCHED, *CELLS, "Embeddings", "Training"],
    "multilingual": [*SEARCHED, *CELLS, "Embeddings", "Training"],
    "summarise": ["Alignment", "Copied words", *SEARCHED[1:], *CELLS, "Embeddings", "Training"],
    "summarise without copying": [*SEARCHED, *CELLS, "Embeddings", "Training"],
    "language": ["Probabilities", "Search tree", *CELLS, "Embeddings", "Training"],
    "language in windows": [
        "Probabilities",
        "Search tree",
        "Attention heads",
        "Positions",
        "Embeddings",
        "Training",
    ],
    "classify": ["Words that weighed", "Probabilities", *CELLS, "Embeddings", "Training"],
    "tag": ["Probabilities", *CELLS, "Embeddings", "Training"],
    "forecast": ["Forecast", *CELLS, "Training"],
    "embeddings": ["Embeddings", "Training"],
    "caption": ["Picture", *SEARCHED, *CELLS, "Training"],
    "draw": [
        "Picture",
        "Alignment",
        "Probabilities",
        *CELLS,
        "Attention heads",
        "Positions",
        "Embeddings",
        "Training",
    ],
    "elmo": ["Probabilities", *CELLS, "Embeddings", "Training"],
    "images": ["Picture", "Probabilities", "Training"],
    "memory": [*CELLS, "Training"],
    "masked": ["Probabilities", "Attention heads", "Positions", "Embeddings", "Training"],
    "speech": ["Recording", *SEARCHED, *CELLS, "Training"],
}
"""Views of the tiny runs; draw's decoder is a Transformer, so heads beside the encoder's cells."""

TEXTS = {"classify": "this film was dull"}
"""Given where the run's own example may have one word, over which no gradient reaches."""


def test_every_task_stands_here() -> None:
    assert {name.split()[0] for name in EXPECTED} == set(rooms.parts(tasks, Task))


@pytest.mark.parametrize("name", EXPECTED)
def test_a_page_has_the_views_that_apply_and_every_view_its_files(
    name: str, runs: Callable[[str], LoadedRun]
) -> None:
    opened = runs(name)
    subject, views = looked_at(opened, TEXTS.get(name))
    assert list(views) == EXPECTED[name]
    assert subject.text
    page = page_of(opened, subject, list(views.values()))
    assert len(page.encode()) < 3_000_000
    found = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None and [one["title"] for one in json.loads(found.group(1))] == list(views)
    for view in views.values():
        assert json.loads(file_of(view, "json"))["blocks"]
        rows = list(csv.reader(io.StringIO(file_of(view, "csv").decode())))
        assert len(rows) > 1 and {len(row) for row in rows} == {len(rows[0])}


FIRST = {title: name for name, titles in reversed(EXPECTED.items()) for title in titles}
FIRST |= dict.fromkeys(EXPECTED["forecast"], "forecast")
"""A task for each view; a forecaster has the fewest cells to draw."""


@pytest.mark.parametrize("title", leading(FIRST, 3))
def test_every_view_is_drawn(title: str, runs: Callable[[str], LoadedRun]) -> None:
    name = FIRST[title]
    drawn(looked_at(runs(name), TEXTS.get(name))[1][title], *(["svg"] if title == "Forecast" else []))


@pytest.mark.slow  # half a second a picture
@pytest.mark.parametrize("name", EXPECTED)
def test_every_view_of_every_task_is_drawn(name: str, runs: Callable[[str], LoadedRun]) -> None:
    for view in looked_at(runs(name), TEXTS.get(name))[1].values():
        drawn(view, "png", "svg")


def drawn(view: View, *forms: str) -> None:
    for form in forms or ("png",):
        content = file_of(view, form)
        if form == "svg":
            assert content.startswith(b"<?xml")
        else:
            assert min(Image.open(io.BytesIO(content)).size) > 100


@pytest.mark.parametrize(("name", "unit"), [("translate", "nats"), ("memory", "squared error")])
def test_the_curve_of_the_loss_says_what_it_is_of(
    name: str, unit: str, runs: Callable[[str], LoadedRun]
) -> None:
    training = looked_at(runs(name))[1]["Training"]
    assert training.blocks()[0]["y"] == unit


def test_a_masked_model_fills_gaps_and_else_hides_each_token_in_turn(
    runs: Callable[[str], LoadedRun],
) -> None:
    opened = runs("masked")
    filler = opened.pipeline.predictor(opened.model)
    subject, _ = looked_at(opened, "the [MASK] can [MASK]")
    filled = filler.fill("the [MASK] can [MASK]", 3)
    assert subject.answer == filled.text and len(subject.choices) == 2
    for one, gap in zip(subject.choices, filled.gaps, strict=True):
        assert one.prob == pytest.approx(gap[0][1], abs=1e-6)
    whole, _ = looked_at(opened, "the cat can purr")
    for place, one in enumerate(whole.choices):
        words = ["the", "cat", "can", "purr"]
        words[place] = "[MASK]"
        chances = dict(filler.fill(" ".join(words), 50).gaps[0])
        assert one.prob == pytest.approx(chances[["the", "cat", "can", "purr"][place]], abs=1e-6)
    assert "expected at most 11 tokens" in refused(weft("inspect", opened.path, "cat " * 12))


def test_elmo_says_each_word_and_one_word_has_two_places_in_context(runs: Callable[[str], LoadedRun]) -> None:
    opened = runs("elmo")
    text = "go to the bank now\nthe bank of the lake"
    subject, views = looked_at(opened, text)
    with torch.no_grad():
        both = opened.model.directions(subject.batch)  # type: ignore[operator]
    nats = -sum(np.log(one.prob) for one in subject.choices)
    assert nats == pytest.approx(float(both.forward.total), rel=1e-4)
    assert isinstance(views["Embeddings"], EmbeddingView)
    vectors = views["Embeddings"].vectors
    places = [n for n, word in enumerate(vectors.pieces) if word == "bank"]
    first, second = places
    assert (vectors.table[vectors.chosen[first]] == vectors.table[vectors.chosen[second]]).all()
    assert vectors.context is not None
    cosine = opened.pipeline.predictor(opened.model).compare("bank", *text.splitlines())[-1]
    a, b = vectors.context[first], vectors.context[second]
    assert float(a @ b / np.linalg.norm(a) / np.linalg.norm(b)) == pytest.approx(cosine, abs=1e-5)
    assert cosine < 0.9999


@pytest.mark.parametrize(
    ("name", "column", "exports"),
    [
        ("caption", "a region of the picture", ["alignment.soft.txt"]),
        ("speech", "a moment of the recording", ["alignment.soft.txt"]),
        ("translate", "an input token", ["alignment.pharaoh", "alignment.soft.txt"]),
    ],
)
def test_an_alignment_says_what_it_lies_over(
    name: str, column: str, exports: list[str], runs: Callable[[str], LoadedRun]
) -> None:
    subject, views = looked_at(runs(name))
    blocks = views["Alignment"].blocks()
    assert column in blocks[0]["text"]
    found = [one for one in blocks if one["kind"] == "export"]
    words = any(one.pharaoh for one in subject.hypotheses)  # none where nothing but the end was written
    assert [one["name"] for one in found] == exports[not words and len(exports) > 1 :]
    assert all(one["text"].strip() for one in found)
    look = subject.hypotheses[0].looks[0]
    table = [row for row in views["Alignment"].table() if row[:2] == (1, look.name)]
    for _, _, t, target, s, source, weight in table:
        assert (target, source) == (subject.hypotheses[0].pieces[t - 1], subject.source[s - 1])
        assert weight == pytest.approx(float(look.weights[t - 1, s - 1]))
    assert len(table) == look.weights.size


def test_a_part_has_the_labels_of_its_own_side() -> None:
    subject: Any = SimpleNamespace(source=["a", "b"], target=["c", "d"])
    assert labels_of("encoder.stack.forwards.0", 2, subject) == ["a", "b"]
    assert labels_of("decoder, layer 1, head 2", 2, subject) == ["c", "d"]
    assert labels_of("decoder", 3, subject) == ["1", "2", "3"]


def test_the_units_that_vary_most_are_shown_in_their_order() -> None:
    values = np.array([[0.0, 1.0, 5.0, 2.0], [0.0, 3.0, -5.0, 2.5]])
    assert _most_varying(values, 2).tolist() == [1, 2]
    assert _most_varying(values, 4).tolist() == _most_varying(values, None).tolist() == [0, 1, 2, 3]


def test_each_layer_of_elmo_has_its_name_and_its_words_in_order(runs: Callable[[str], LoadedRun]) -> None:
    opened = runs("elmo")
    subject, views = looked_at(opened, "go to the bank now")
    cells, reach = views["Cells over time"], views["Gradient reach"]
    assert isinstance(cells, CellsView) and isinstance(reach, GradientsView)
    names = [one["title"] for one in reach.charts]
    count = opened.model.num_layers
    ways = [f"layer {n + 1}, {way} (LSTM)" for way in ("forward", "backward") for n in range(count)]  # type: ignore[arg-type]
    assert sorted(names) == sorted(ways)
    with torch.no_grad():
        ahead, back, _ = opened.model._layers(subject.batch.given, subject.batch.mask)  # type: ignore[operator]
    for one in cells.layers:
        if one.place.layer == 0:  # the others add what they read
            wanted = (back if one.place.backward else ahead)[1][0].numpy()
            assert np.abs(one.values["hidden"] - wanted).max() < 1e-5
    for chart in reach.charts:
        assert chart["series"][0]["y"][0 if "backward" in chart["title"] else -1] == pytest.approx(1)


@pytest.mark.parametrize("name", ["elmo", "masked", "tag", "classify", "translate", "language"])
def test_neighbours_in_context_are_those_of_the_largest_cosine(
    name: str, runs: Callable[[str], LoadedRun]
) -> None:
    _, views = looked_at(runs(name))
    view = views["Embeddings"]
    assert isinstance(view, EmbeddingView)
    around, context = view.vectors.around, view.vectors.context
    assert around is not None and context is not None
    assert len(around.words) == len(around.vectors) == len(around.where)
    others = around.vectors / np.linalg.norm(around.vectors, axis=1, keepdims=True)
    for row, near in zip(context, view.within, strict=False):
        cosines = others @ (row / np.linalg.norm(row))
        assert [value for _, value in near] == pytest.approx(sorted(cosines, reverse=True)[:4], abs=1e-5)
    kinds = {row[1] for row in list(view.table())[1:]}
    assert kinds == {"static", "in context"}


def test_without_the_data_words_in_context_have_no_neighbours_and_the_page_stands(tmp_path: Path) -> None:
    run = copied(shared_run("elmo"), tmp_path)
    recipe = run / "recipe.yaml"
    recipe.write_text(
        recipe.read_text().replace(str(shared_run("elmo").parent / "toy"), str(tmp_path / "gone"))
    )
    opened = open_run(run, device="cpu")
    subject, views = looked_at(opened)
    assert isinstance(views["Embeddings"], EmbeddingView) and views["Embeddings"].within == []
    assert page_of(opened, subject, list(views.values()))


def test_word_vectors_name_what_is_near_and_what_is_not_there(runs: Callable[[str], LoadedRun]) -> None:
    opened = runs("embeddings")
    vectors = opened.pipeline.predictor(opened.model)
    subject, views = looked_at(opened, "apple saw nowhere")
    near = [one.word for one in vectors.nearest("apple", 6)]
    assert "without a vector: nowhere" in subject.answer and " ".join(near) in subject.answer
    rows = [row for row in list(views["Embeddings"].table())[1:] if row[0] == "apple"]
    assert [row[3] for row in rows] == near
    assert "expected a word that has a vector" in refused(weft("inspect", opened.path, "nowhere"))


def test_a_forecast_is_that_of_predict(runs: Callable[[str], LoadedRun]) -> None:
    opened = runs("forecast")
    subject, _ = looked_at(opened)
    with torch.no_grad():
        best = opened.model.best(subject.batch.past if hasattr(subject.batch, "past") else subject.batch[0])  # type: ignore[operator]
    scale: Any = subject.forecast.best
    assert len(scale) == opened.task.data.horizon == best.shape[1]
    assert "no such file" in refused(weft("inspect", opened.path, "none.csv"))
    assert "the text is empty" in refused(weft("inspect", opened.path, ""))


def test_one_of_many_languages_is_asked_by_its_direction(runs: Callable[[str], LoadedRun]) -> None:
    opened = runs("multilingual")
    pairs = opened.task.data.pairs
    translator = opened.pipeline.predictor(opened.model)
    for pair in pairs[:2]:
        subject, _ = looked_at(opened, f"{pair}: one two three")
        found = next(translator.of(pair).translate(["one two three"]))
        assert subject.text == "one two three"
        assert subject.answer == found[0].text or len(subject.hypotheses) > 1
    assert "the text after" in refused(weft("inspect", opened.path, f"{pairs[0]}:  "))


def test_a_line_of_numbers_is_remembered_as_predict_does(runs: Callable[[str], LoadedRun]) -> None:
    opened = runs("memory")
    line = "0.25* 0.5 0.75*"
    subject, _ = looked_at(opened, line)
    said = weft("predict", opened.path, stdin=line.encode() + b"\n").lines[0]
    assert subject.answer == said
    assert list(subject.source) == ["0.25*", "0.50", "0.75*"]
    with probe() as seen, torch.no_grad():
        opened.model.loss(subject.batch)  # type: ignore[operator]
    assert seen is not None
