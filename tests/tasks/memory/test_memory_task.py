"""The memory problems as a task: generated, learnt, scored beside their baseline, answered line by line."""

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from weft.errors import ConfigError, DataError
from weft.nn.encoders.recurrent import RecurrentEncoder
from weft.nn.encoders.transformer import TransformerEncoder
from weft.nn.pools import Queries
from weft.tasks.memory.data import EndlessBatches, MemoryData, ProblemName, swaps
from weft.tasks.memory.predictor import Rememberer, evaluate
from weft.tasks.memory.task import MemoryModel, MemoryPipeline, MemoryTask, MemoryTraining
from weft.tasks.predictor import Place, answered
from weft.tasks.task import InspectionSettings


def small(problem: str, **changes: Any) -> MemoryTask:
    data = MemoryData(problem=problem, **{"length": 7, "symbols": 3, "valid": 11, "test": 13, **changes})
    model = MemoryModel(encoder=lambda size: RecurrentEncoder(size, sizes=(5,)), embedding=5)
    return MemoryTask(data=data, model=model)


def dropped(row: list[int], symbols: int) -> list[int]:
    return [8] * (len(row) - symbols) + [sign for sign in row if sign < 8]


def followed(row: list[int], symbols: int) -> list[int]:
    return [8] * (len(row) - 1) + [row[row.index(9) + 1]]


def looked_up(row: list[int], symbols: int) -> list[int]:
    told = len(row) // 3 * 2
    known = dict(zip(row[:told:2], row[1:told:2], strict=True))
    return [8] * told + [known[key] for key in row[told:]]


def followed_ball(row: list[int], symbols: int) -> list[int]:
    ball, said = 0, []
    for sign in row:
        one, other = swaps(symbols)[sign]
        ball = other if ball == one else one if ball == other else ball
        said.append(ball)
    return said


ORACLES = {"selective": dropped, "induction": followed, "recall": looked_up, "cups": followed_ball}


class Knows(nn.Module):
    """Looks at the input: adds what is marked, says again what was said."""

    def __init__(self, data: MemoryData, off: float = 0.0) -> None:
        super().__init__()
        self.data, self.off = data, off
        self.weight = nn.Parameter(torch.zeros(1))

    def best(self, source: Tensor, mask: Tensor) -> Tensor:
        if self.data.problem == "adding":
            return (source[..., 0] * source[..., 1]).sum(1, keepdim=True) + self.off
        if self.data.problem == "copying":
            return torch.cat([source[:, : self.data.symbols]] * 9, 1)
        return torch.tensor([ORACLES[self.data.problem](row, self.data.symbols) for row in source.tolist()])

    def forward(self, source: Tensor, mask: Tensor) -> Tensor:
        return torch.full((*source.shape, 10), -np.log(10.0))


def test_epochs_have_new_examples_each_seen_once() -> None:
    plan = EndlessBatches(11, 4)
    seen = np.concatenate([batch for epoch in range(3) for batch in plan.epoch(epoch)])
    assert seen.tolist() == list(range(33))
    assert [len(batch) for batch in plan.epoch(1)] == [4, 4, 3]


def test_splits_share_no_example_and_training_lengths_vary_where_asked() -> None:
    task = small("adding", length=29, shortest=5)
    training = MemoryTraining(task.data)
    lengths = {training.collate(np.arange(at, at + 2)).source.shape[1] for at in range(0, 200, 2)}
    assert min(lengths) >= 5 and max(lengths) <= 29 and len(lengths) > 10
    valid, test = (task.data.batch(split, np.arange(3)) for split in ("valid", "test"))
    assert valid.source.shape == (3, 29, 2) and not torch.equal(valid.source, test.source)


@pytest.mark.parametrize("problem", ["adding", "copying"])
def test_rows_are_the_same_in_a_part_of_their_batch(problem: str) -> None:
    training = MemoryTraining(small(problem, shortest=2).data)
    whole, part = training.collate(np.arange(8, 13)), training.collate(np.arange(8, 10))
    assert torch.equal(whole.source[:2], part.source) and torch.equal(whole.target[:2], part.target)


def test_who_answers_one_reaches_the_baseline_and_who_knows_beats_it() -> None:
    data = MemoryData(length=9, test=4001)
    model = Knows(data)
    perfect = evaluate(Rememberer(model, data), "test", data.test)
    error, within = (one.score for one in perfect.scores)
    assert error.value == pytest.approx(0, abs=1e-12) and within.value == 1
    assert "MSE 0.0000: better than the best baseline (without remembering 0.16" in perfect.text()
    # the sum of two numbers from 0 to 1 has the density s below 1 and 2 - s above: 2 a - a^2 within a of 1
    assert [one.baselines["without remembering"] for one in perfect.scores] == [
        pytest.approx(1 / 6, abs=0.01),
        pytest.approx(2 * 0.04 - 0.04**2, abs=0.015),
    ]
    model.best = lambda source, mask: torch.ones(len(source), 1)  # type: ignore[method-assign]
    guess = evaluate(Rememberer(model, data), "test", data.test)
    score = guess.scores[0].score
    assert score.value == pytest.approx(1 / 6, abs=0.01) and score.low < score.value < score.high
    off = evaluate(Rememberer(Knows(data, 0.5), data), "test", 101)
    assert [one.value for one in off.scores] == [pytest.approx(0.25, rel=1e-5), 0]
    assert "worse than the baseline" in off.text() and "split:test|n:101" in off.text()
    assert "problem:adding|length:9|seed:1|" in off.scores[0].score.signature
    assert json.loads(off.json())["scores"]["MSE"]["value"] == off.scores[0].value


def test_a_copy_is_scored_by_its_symbols() -> None:
    data = MemoryData(problem="copying", length=4, symbols=3, test=500)
    perfect = evaluate(Rememberer(Knows(data), data), "test", 17)
    (only,) = perfect.scores
    assert (only.score.name, only.value) == ("accuracy", 1.0)
    letters = "".join("".join(row) for row in perfect.compared[0].references)
    assert only.baselines == {"a guess": pytest.approx(letters.count("a") / len(letters))}
    assert perfect.values.shape == (17, 3) and perfect.places[5].tolist() == [1, 2, 3]
    model = Knows(data)
    model.best = lambda source, mask: torch.zeros_like(source)  # type: ignore[method-assign]
    guess = evaluate(Rememberer(model, data), "test", 500)
    assert guess.scores[0].value == pytest.approx(1 / 8, abs=0.03)
    assert set("".join(guess.outputs)) == {"a"}


@pytest.mark.parametrize("problem", ORACLES)
def test_who_follows_the_rule_is_always_right_also_beyond_the_training_length(problem: str) -> None:
    data = small(problem, length=7, test_length=23, test=200).data
    perfect = evaluate(Rememberer(Knows(data), data), "test", 200)
    assert perfect.scores[0].value == 1 and data.batch("valid", np.arange(2)).source.shape[1] < 23
    assert "length:23|symbols:3" in perfect.scores[0].score.signature and "length 23" in perfect.title
    model = Knows(data)
    model.best = lambda source, mask: torch.zeros_like(source)  # type: ignore[method-assign]
    guess = evaluate(Rememberer(model, data), "test", 200).scores[0]
    (baseline,) = guess.baselines.values()
    assert guess.value == pytest.approx(baseline, abs=0.06)


@pytest.mark.parametrize(
    ("problem", "line", "said", "wrong"),
    [
        ("selective", "..a.h..c.", "ahc", ("ahcd", "..a.", "a-hc")),
        ("induction", "ab!cdb", "c", ("abc", "ab!", "a!b!c", "!x")),
        ("recall", "3a 17c ? 17 3", "ca", ("3a 17c", "3a 3b ? 3", "3a ? 4", "64a ? 64", "3i ? 3", "?", "")),
        ("cups", "- ab bc ca ab", "abcab", ("ad", "a", "abc", "")),
    ],
)  # fmt: skip
def test_a_line_of_signs_is_read_answered_and_shown(
    problem: str, line: str, said: str, wrong: tuple[str, ...]
) -> None:
    task = small(problem)
    rememberer = Rememberer(Knows(task.data), task.data)
    assert rememberer.predict(line) == said
    for other in wrong:
        with pytest.raises(DataError, match=r"expected .* such as .*, got "):
            rememberer.predict(other)
    pipeline = MemoryPipeline(task)
    shown = pipeline.inspection(pipeline.model().eval(), InspectionSettings(text=line))
    assert len(shown.answer) == len(said) == len(shown.choices)


def test_lines_are_answered_and_wrong_ones_refused_in_a_sentence() -> None:
    task = small("adding")
    knows = Knows(task.data)
    rememberer = Rememberer(knows, task.data)
    assert rememberer.predict("0.25 0.5* 0.125 0.75*") == "1.2500"
    for wrong in ("", "0.1 0.2*", "0.1* 2.0*", "a* b*", "nan* 0.1*"):
        with pytest.raises(DataError, match="two of them marked with a star"):
            rememberer.predict(wrong)
    copying = small("copying")
    letters = Rememberer(Knows(copying.data), copying.data)
    assert letters.predict("hab") == "hab"
    assert letters.parse("hab", Place("input")).tolist() == [[7, 0, 1, *[8] * 6, 9, 8, 8, 8]]
    assert letters.parse("hab..", Place("input")).tolist() == [[7, 0, 1, 8, 8, 9, 8, 8, 8]]
    longer = Rememberer(Knows(copying.data), replace(copying.data, test_length=9))
    assert longer.parse("hab", Place("input")).tolist() == [[7, 0, 1, *[8] * 8, 9, 8, 8, 8]]
    for wrong in ("ha", "habc", "hax", ""):
        with pytest.raises(DataError, match="3 letters"):
            letters.predict(wrong)


def test_a_file_s_wrong_line_is_named() -> None:
    pipeline = MemoryPipeline(small("copying"))
    predictor = pipeline.predictor(pipeline.model().eval())
    answers = answered(predictor, predictor.inputs(io.BytesIO(b"abc\nabx\n")))
    assert len(next(answers).text()) == 3
    answer = next(answers)
    assert not answer.text() and "standard input:2: expected 3 letters from a to h" in answer.wrong


def test_files_cannot_be_evaluated() -> None:
    pipeline = MemoryPipeline(small("adding"))
    with pytest.raises(ConfigError, match=r"--data x\.tsv: memory problems are generated"):
        pipeline.evaluate(pipeline.model(), data=Path("x.tsv"))


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"length": 1}, "length: .*got 1"),
        ({"problem": "sorting"}, "got 'sorting'"),
        ({"shortest": 300}, "shortest: .*got 300"),
        ({"batch_rows": 0}, "batch_rows: .*got 0"),
        ({"seed": -1}, "seed: .*got -1"),
        ({"test_length": 1}, "test_length: .*got 1"),
        ({"problem": "cups"}, "symbols: expected 2 to 8 cups, got 10"),
        ({"problem": "selective", "length": 9}, r"length: expected at least symbols \(10\), got 9"),
        ({"problem": "recall", "length": 65}, "length: expected 1 to 64 pairs, got 65"),
        ({"problem": "induction", "shortest": 1}, "shortest: expected at least 2, got 1"),
    ],
)
def test_sizes_that_cannot_be_are_refused(wrong: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        MemoryData(**wrong)


def test_every_part_that_reads_can_remember() -> None:
    attention = MemoryModel(
        encoder=lambda size: TransformerEncoder(size, size=8, num_layers=1, num_heads=2),
        pool=lambda size: Queries(size, num_queries=2),
    )
    for problem in get_args(ProblemName):
        task = MemoryTask(data=MemoryData(problem=problem, length=5, symbols=3), model=attention)
        task.check_ready()
        assert task.rehearse().total.isfinite()
        found = MemoryTraining(task.data).validate(MemoryPipeline(task).model().eval())
        assert set(found.scores) == {"loss", "accuracy"} and len(found.samples) == 3


def test_letters_have_scores_and_a_picture_and_sums_have_none() -> None:
    task = small("copying")
    model = task.small_model()
    rememberer = Rememberer(model, task.data, scores=True)
    x = rememberer.parse("abc", Place("input"))
    (answer,) = rememberer.answers([x])
    with torch.no_grad():
        logp = model(x, torch.ones(x.shape, dtype=torch.bool))[0, -3:]
    score, text = answer.text().split("\t")
    assert len(text) == 3 and float(score) == pytest.approx(float(logp.max(1).values.sum()), abs=1e-4)
    assert answer.figure() is not None
    for setting, option in (("scores", "scores"), ("plot", "pictures")):
        with pytest.raises(ConfigError, match=f"--{option}: a sum has no probability"):
            Rememberer(small("adding").small_model(), small("adding").data, **{setting: True})
