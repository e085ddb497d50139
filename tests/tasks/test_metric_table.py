"""The tables of docs/reference/metrics.md: which metric scores which task, tried on a small run of each."""

import math
from collections.abc import Iterator
from functools import cache, partial
from importlib import import_module
from pathlib import Path

import pytest
import torch

import weft.metrics
from tests.commands import shell
from tests.shared import copied, shared_run
from tests.source import ROOT
from tests.tasks.every import KINDS
from weft import rooms, tasks
from weft.errors import DataError
from weft.metrics.intervals import difference_interval, with_interval
from weft.metrics.metric import Metric
from weft.run import LoadedRun, open_run
from weft.tasks.evaluation import Evaluation
from weft.tasks.memory.data import MemoryData
from weft.tasks.memory.task import MemoryModel, MemoryTask
from weft.tasks.task import Task, silent, training_of

PAGE = ROOT / "docs" / "reference" / "metrics.md"
NAMES = sorted(rooms.parts(tasks, Task))
METRICS = {name: kind() for name, kind in sorted(rooms.parts(weft.metrics, Metric).items())}
COPYING = MemoryTask(
    data=MemoryData(problem="copying", length=3, symbols=2, valid=13, test=11), model=MemoryModel()
)


@cache
def opened_run(name: str) -> LoadedRun:
    return open_run(shared_run(name), device="cpu")


def rows(title: str) -> dict[str, list[str]]:
    """The cells of a table of the page by the name in its first column."""
    lines = PAGE.read_text("utf-8").partition(f"## {title}\n")[2].partition("\n## ")[0].splitlines()
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| `")
    ]
    return {first.strip("`"): rest for first, *rest in cells}


def evaluations(name: str, opened: LoadedRun, folder: Path) -> Iterator[Evaluation]:
    """Of a run; where what is compared depends on the problem or on the file, of each kind."""
    split = "test" if "test" in KINDS[name].evaluated else "valid"
    yield opened.pipeline.evaluate(opened.model, split=split)  # type: ignore[arg-type]
    if name == "memory":
        pipeline = COPYING.open(folder)
        yield pipeline.evaluate(pipeline.model().eval())
    if name == "embeddings":
        (folder / "analogies.txt").write_text(": kinds\n" + "apple pear saw drill\nfig plum axe saw\n" * 9)
        yield opened.pipeline.evaluate(opened.model, data=folder / "analogies.txt")


@pytest.fixture(autouse=True)
def _few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    """How wide an interval is is no matter here; a thousand resamples of each score took most of the time."""
    scored = import_module("weft.metrics.scored")  # whose name is also that of a function
    for one in (with_interval, difference_interval):
        monkeypatch.setattr(scored, one.__name__, partial(one, resamples=20))


def score(found: Evaluation, key: str) -> bool:
    """Whether a metric reads what an evaluation compares; then it gives a finite score that says how."""
    before = {one.score.name for one in found.scores}
    try:
        after = found.with_metrics({key: METRICS[key]})
    except DataError as error:
        assert str(error).startswith(f"{key}: reads ") and str(error).endswith("; leave it out")
        return False
    new = [one for one in after.scores if one.score.name not in before]
    assert new
    for one in new:
        fixed = {part for part in METRICS[key].signature().split("|") if not part.endswith(":auto")}
        assert math.isfinite(one.value) and fixed <= set(one.score.signature.split("|"))
        assert (one.score.low is None) == any("    no interval: " in line for line in one.lines())
        assert all(map(math.isfinite, one.baselines.values())) and one.verdict()
    return True


@pytest.mark.parametrize("name", NAMES)
def test_every_metric_that_reads_what_a_task_offers_scores_it(name: str, tmp_path: Path) -> None:
    opened = opened_run(name)
    found = list(evaluations(name, opened, tmp_path))
    offers = opened.task.evaluation.offers
    read = {key for key in METRICS if any(score(one, key) for one in found)}
    assert read == {key for key, metric in METRICS.items() if set(metric.reads) & set(offers)}
    assert read == {key for key, cells in rows("Metrics").items() if name in cells[-1].split(", ")}
    assert rows("Tasks")[name][0] == ", ".join(offers)


@pytest.mark.parametrize("name", NAMES)
def test_a_validation_offers_what_its_task_says(name: str, tmp_path: Path) -> None:
    opened = opened_run(name)
    training = training_of(opened.task.prepare(copied(shared_run(name), tmp_path), silent))
    with torch.no_grad():
        found = training.validate(opened.model)
    offers = opened.task.validation_offers
    assert {one.reads for one in found.compared} >= set(offers)
    reading = [metric for metric in METRICS.values() if set(metric.reads) & set(offers)]
    more = found.with_metrics(reading).scores
    assert all(map(math.isfinite, more.values()))
    same = {key: value for key, value in found.scores.items() if key not in opened.task.unlike}
    assert {key: more[key] for key in same} == pytest.approx(same, nan_ok=True)
    every = (*offers, *(COPYING.validation_offers if name == "memory" else ()))
    assert rows("Tasks")[name][1] == (", ".join(every) or "—")


@pytest.mark.parametrize(
    ("name", "metric", "data", "has"),
    [
        ("memory", "accuracy", "", "numbers"),
        ("embeddings", "mae", ": kinds\nfig plum axe saw\n", "labels"),
        ("draw", "accuracy", "image\tcaption\n00.png\tsomething else\n", "nats, numbers"),
    ],
)
def test_a_metric_that_reads_nothing_of_a_problem_or_a_file_is_refused_before_evaluating(
    name: str, metric: str, data: str, has: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(opened_run(name).pipeline), "evaluate", None)
    (tmp_path / "asked.tsv").write_text(data)
    given = ("--data", tmp_path / "asked.tsv") if data else ()
    said = shell.refused(shell.weft("evaluate", shared_run(name), "--metric", metric, *given))
    assert said.endswith(f"but the task {name} has {has}; leave it out"), said


def test_a_validations_own_error_is_not_replaced_by_one_in_units(tmp_path: Path) -> None:
    recipe = shared_run("forecast").parent / "toy" / "toy.yaml"
    asked = "training.metrics=[mse]", "training.max_updates=1"
    said = shell.refused(shell.weft("train", recipe, "--run", tmp_path / "run", *asked))
    assert "mse: each validation has a score of this name, scaled by the training part" in said


def test_the_page_names_every_metric_and_what_it_reads() -> None:
    said = {
        key: [metric.name, " or ".join(metric.reads), "higher" if metric.higher_is_better else "lower"]
        for key, metric in METRICS.items()
    }
    assert {key: cells[:3] for key, cells in rows("Metrics").items()} == said
    assert list(rows("Tasks")) == NAMES
