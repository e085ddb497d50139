"""Measure one run: size, speed, memory, scores, scores by length, learning curves, gradient reach.

Results are stored as JSON next to the report, with a fingerprint of the model, so that a comparison can
resume. Read next: report.py.
"""

import hashlib
import json
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import torch

import weft.metrics
from weft import rooms
from weft.errors import WeftError
from weft.inspect.inspection import inspection_of
from weft.inspect.views.curves import Points, read_curves
from weft.inspect.views.gradients import GradientsView
from weft.inspect.views.view import plain
from weft.metrics.bylength import LengthRow
from weft.metrics.metric import Metric
from weft.metrics.scored import Form, as_json, form_of, ratio
from weft.run import LoadedRun
from weft.store import digests, files, jsonfile
from weft.tasks.evaluation import Items
from weft.tasks.inspection import Inspection
from weft.tasks.task import Split, Task
from weft.train.checkpoints import Checkpoints


class Evidence(NamedTuple):
    """The statistics of the main score on the items of a split."""

    kind: str  # name of the metric in recipes; empty for a ratio
    name: str
    form: Form  # of a ratio only
    higher_is_better: bool
    statistics: list[list[float]]  # [N, K]
    items: str  # fingerprint of the items; only runs on the same items are tested

    @property
    def metric(self) -> Metric:
        """Computes the score from sums of statistics."""
        if not self.kind:
            return ratio(self.name, "", higher_is_better=self.higher_is_better, form=self.form)
        return rooms.find(weft.metrics, Metric, self.kind)()  # type: ignore[no-any-return]

    @property
    def rows(self) -> np.ndarray:
        """The statistics as an array, [N, K]."""
        return np.asarray(self.statistics, np.float64)


def evidence(items: Items | None) -> Evidence | None:
    """The evidence of these items; None without items, or if their metric is not in weft/metrics."""
    if items is None:
        return None
    metric, rows = items.metric, items.statistics.tolist()
    form = form_of(metric)
    if form is None and rooms.parts(weft.metrics, Metric).get(metric.key) is not type(metric):
        return None
    return Evidence(
        "" if form else metric.key,
        metric.name,
        form or "mean",
        metric.higher_is_better,
        rows,
        items.fingerprint,
    )


VERSION = 7  # version of the stored facts; older ones are measured again


class RunFacts(NamedTuple):
    """The facts about a run, as plain numbers, lists and tables."""

    name: str
    task: str
    about: str
    tested: str  # title of the evaluation, or the reason why there is none
    parameters: int
    weight_bytes: int
    saved_bytes: int | None  # stored for the backward pass of one example
    tokens_a_second: float | None  # median during training
    tokens_a_cpu_second: float | None
    updates: int
    tokens: int | None  # target tokens read in the training
    seconds: float | None  # of the training
    cpu_seconds: float | None
    scores: list[dict[str, Any]]  # Scored.json
    by_length: list[list[Any]]  # label, count, score, low, high
    by_length_axes: list[str]  # what the labels count, such as words said, and the name of the score
    curves: dict[str, list[list[float]]]  # validation score by name: updates, values
    reach: dict[str, list[list[float]]]  # cell: lags, norms
    verdicts: list[str]
    evidence: Evidence | None  # of the main score
    fingerprint: str
    example: str = ""  # input of the gradient reach
    variant: str = ""  # runs of one variant differ only in their seed

    @property
    def subject(self) -> str:
        """The task, its data, and those of the scores."""
        return f"{self.task}, {self.about}" + (f"; scores of {self.tested}" if self.scores else "")


def measure_run(
    opened: LoadedRun, name: str, kept: Path, text: str | None, test: Path | None = None
) -> RunFacts:
    """Measure a run, or read its facts from `kept` if they belong to this model and these test data."""
    fingerprint = _fingerprint(opened, text, test)
    try:
        before = jsonfile.read(kept)
        if before["fingerprint"] == fingerprint:
            proof = before["evidence"]
            before["evidence"] = None if proof is None else Evidence(**proof)
            return RunFacts(**before)._replace(name=name)
    except (OSError, ValueError, KeyError, TypeError):
        pass
    found = _measure(opened, name, text, test)._replace(fingerprint=fingerprint)
    facts = found._asdict() | {"evidence": found.evidence and found.evidence._asdict()}
    files.replace(kept, json.dumps(plain(facts), allow_nan=False).encode())
    return found


def scored_split(task: Task) -> Split | None:
    """The test split; the validation split of data without one; None without either."""
    known: tuple[Split, Split] = ("test", "valid")
    return next((split for split in known if task.has(split)), None)


def saved_bytes(opened: LoadedRun, subject: Inspection) -> int | None:
    """Bytes that autograd stores for the loss of one example, without parameters."""
    if subject.batch is None:
        return None
    model = opened.model
    own = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    sizes: dict[int, int] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    needed = [parameter.requires_grad for parameter in model.parameters()]
    model.requires_grad_(True)
    try:
        with torch.enable_grad():
            model.loss(subject.batch)  # type: ignore[operator]  # warm-up
            with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
                kept = model.loss(subject.batch)  # type: ignore[operator]
                del kept
    finally:
        for parameter, need in zip(model.parameters(), needed, strict=True):
            parameter.requires_grad_(need)
    return sum(sizes.values())


def _measure(opened: LoadedRun, name: str, text: str | None, test: Path | None) -> RunFacts:
    model, events = opened.model, read_curves(opened.path / "metrics.jsonl")
    tested, proof = "the recipe names no test split (data.test)", None
    scores: list[dict[str, Any]] = []
    lengths: Sequence[LengthRow] = ()
    axes = ["", ""]
    if split := "test" if test else scored_split(opened.task):
        try:
            evaluation = opened.evaluate(split=split, data=test)  # type: ignore[arg-type]
            tested = evaluation.title
            scores = list(as_json(evaluation.scores).values())
            lengths = evaluation.lengths
            axes = [evaluation.length, next((row.score.name for row in lengths if row.score), "")]
            proof = evidence(evaluation.items)
        except WeftError as error:
            tested = f"not tested: {error}"
    reach, verdicts, saved, example = _reach(opened, text)
    update, valid = events["update"], events["validation"]
    spent = _spent(opened, update)
    by_length = [
        [
            row.label,
            row.sentences,
            *((row.score.value, row.score.low, row.score.high) if row.score else (None,) * 3),
        ]
        for row in lengths
    ]
    return RunFacts(
        name=name,
        task=opened.name,
        about=opened.task.about(),
        tested=tested,
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        weight_bytes=sum(parameter.numel() * parameter.element_size() for parameter in model.parameters()),
        saved_bytes=saved,
        tokens_a_second=_median(update.get("tokens_per_second", [])),
        tokens_a_cpu_second=_median(update.get("tokens_per_cpu_second", [])),
        updates=int(max((x for points in (*update.values(), *valid.values()) for x, _ in points), default=0)),
        tokens=spent["tokens"],
        seconds=spent["seconds"],
        cpu_seconds=spent["cpu_seconds"],
        scores=scores,
        by_length=by_length,
        by_length_axes=axes,
        curves={key: [[x for x, _ in points], [y for _, y in points]] for key, points in valid.items()},
        reach=reach,
        verdicts=verdicts,
        evidence=proof,
        fingerprint="",
        example=example,
    )


def _reach(
    opened: LoadedRun, text: str | None
) -> tuple[dict[str, list[list[float]]], list[str], int | None, str]:
    """Gradient reach by lag for each cell; sentences; bytes stored for the loss; the example."""
    try:
        subject = inspection_of(opened, text)
    except WeftError:  # the run has no example, or the task cannot read it
        return {}, [], None, ""
    saved, view = saved_bytes(opened, subject), GradientsView.collect(opened, subject)
    if view is None:
        return {}, [], saved, subject.text
    found: dict[str, list[list[float]]] = {}
    for chart in view.charts:
        norms = np.asarray(chart["series"][0]["y"])
        norms = norms if "backward" in chart["title"] else norms[::-1]
        found[chart["title"]] = [[float(lag) for lag in range(len(norms))], norms.tolist()]
    return found, [words[0] for words in view.words], saved, subject.text


def _spent(opened: LoadedRun, update: Points) -> dict[str, Any]:
    """Tokens and seconds of the training: from its last checkpoint, or else from its last progress line."""
    names = ("tokens", "seconds", "cpu_seconds")
    try:
        saved = Checkpoints(opened.path, lambda text: None).newest()
    except WeftError:
        saved = None
    if saved is not None:
        return {name: getattr(saved.state.position, name) for name in names}
    found: dict[str, Any] = {name: max((y for _, y in update.get(name, [])), default=None) for name in names}
    return found | {"tokens": None if found["tokens"] is None else int(found["tokens"])}


def _median(points: list[tuple[float, float]]) -> float | None:
    return median(y for _, y in points) if points else None


def _fingerprint(opened: LoadedRun, text: str | None, test: Path | None) -> str:
    own = test and (digests.file_digest(test) if test.is_file() else time.time())  # a prefix is scored again
    digest = hashlib.sha256(f"{VERSION}\n{text}\n{own or ''}".encode("utf-8", "replace"))
    for file in ("model.safetensors", "recipe.yaml"):
        digest.update((opened.path / file).read_bytes())
    return digest.hexdigest()
