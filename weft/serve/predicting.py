"""Inputs and answers of `/predict`: texts, numbers, or files as base64; answers as JSON.

Read next: files.py, pictures and recordings; answers.py, translations and summaries.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from weft.errors import WeftError
from weft.models import Generator
from weft.serve.edits import NOTHING, ModelEdits, without
from weft.serve.files import WANTED, check_pixels, limited
from weft.serve.job import ClientLeft, Stopped, Work
from weft.serve.limits import Refusal, ServerLimits, kind_of
from weft.serve.served import ServedRun, stoppable
from weft.tasks.predictor import Place

LARGEST = 1e30
"""Upper bound on the numbers of a series."""


def predicting(run: ServedRun, limits: ServerLimits, edits: ModelEdits = NOTHING) -> Work:
    """The work that answers inputs of `/predict` as JSON."""

    def work(items: list[Any], stopped: Stopped) -> list[Any]:
        if stopped():
            raise ClientLeft
        with _refusing():
            return list(_answered(run, items, stopped, limits, edits))

    return work


def inputs_of(run: ServedRun, given: Any, limits: ServerLimits) -> list[Any]:
    """The inputs of `/predict`, checked.

    Raises:
        Refusal: not inputs that this task reads.
    """
    if not run.predicts:
        raise Refusal(
            400,
            f"{run.name}: expected a model for /predict, got one of the task {run.kind}; use /translate for "
            "translations and /v1/completions for continuations",
        )
    if run.reads == "numbers":
        return _series(given, limits)
    if run.reads in WANTED:
        return limited(given, run.reads, limits)
    texts = limits.texts(given, "inputs")
    if any(not text.strip() for text in texts):
        raise Refusal(400, "inputs: expected some words, got an empty text")
    return texts


def _series(given: Any, limits: ServerLimits) -> list[list[float] | str]:
    rows = given if isinstance(given, list) and given and isinstance(given[0], list | str) else [given]
    if len(rows) > limits.items:
        raise Refusal(400, f"inputs: expected at most {limits.items} series, got {len(rows)}")
    for row in rows:
        if isinstance(row, str) and row.strip():
            if len(row) > limits.body_bytes:
                raise Refusal(413, f"inputs: a table is larger than {limits.body_bytes:,} bytes; send less")
            continue
        if not isinstance(row, list) or not row:
            raise Refusal(
                400, f"inputs: expected a list of numbers or the text of a CSV table, got {kind_of(row)}"
            )
        if len(row) > limits.characters:
            raise Refusal(400, f"inputs: expected at most {limits.characters:,} numbers, got {len(row):,}")
        if not all(
            isinstance(one, int | float) and not isinstance(one, bool) and abs(one) < LARGEST for one in row
        ):
            raise Refusal(400, "inputs: expected finite numbers below 1e30")
    return [row if isinstance(row, str) else [float(one) for one in row] for row in rows]


@contextmanager
def _refusing() -> Iterator[None]:
    """Report an input that the model cannot read as the client's error."""
    try:
        yield
    except WeftError as error:
        raise Refusal(400, str(error)) from error


def _answered(
    run: ServedRun, items: list[Any], stopped: Stopped, limits: ServerLimits, edits: ModelEdits
) -> Iterator[Any]:
    """The answers as JSON, while a client is waiting for them."""
    kind = run.opened.task.prediction_settings
    asked: dict[str, Any] = {"batch_rows": limits.batch_rows}
    if "scores" in kind.options():
        asked["scores"] = True
    model = without(run, edits)
    if isinstance(model, Generator):
        model = stoppable(model, stopped)
    predictor = run.opened.pipeline.predictor(model, kind(**asked))
    if predictor.reads == "picture":
        for item in items:
            check_pixels(item)
    inputs = [predictor.parse(item, Place("inputs")) for item in items]
    count = sum(map(predictor.count, inputs))
    if count > limits.items:
        raise Refusal(400, f"inputs: expected at most {limits.items} inputs or series, got {count}")
    for answer in predictor.answers(inputs):
        yield answer.json()
        if stopped():
            raise ClientLeft
