"""Inputs and answers of `/predict` and `/inspect`: texts, numbers, or files as base64.

The server never opens a file that a client names: clients send the content. Read next: watching.py;
../inspect/inspection.py.
"""

import base64
import binascii
import math
from typing import Any

from weft.data.audio import seconds_of
from weft.data.held import held
from weft.data.images import measured
from weft.data.magic import kind_of_bytes
from weft.errors import DataError
from weft.models import Generator
from weft.serve.batcher import ClientLeft, Stopped, Work
from weft.serve.limits import Refusal, ServerLimits, check_most
from weft.serve.schemas import InspectFile
from weft.serve.served import ServedRun, stoppable
from weft.serve.watching import NOTHING, ModelEdits, without
from weft.tasks.predictor import Place, Reads
from weft.wording import kind_of

WANTED: dict[Reads, str] = {
    "picture": "pictures (PNG, JPEG, GIF, BMP, WebP, TIFF)",
    "sound": "recordings (WAV, FLAC, Ogg, MP3)",
}
"""The file formats of each kind of input, as text for people."""

INPUTS = Place("inputs")
FILES = 8  # of a request, at most
PIXELS = 4_000_000  # of a picture, or of all frames of a clip, at most
SECONDS = 60  # of a recording, at most
LARGEST = 1e30  # of the numbers of a series


def inputs_of(run: ServedRun, given: Any, limits: ServerLimits) -> list[Any]:
    """The inputs of `/predict`, checked."""
    if not run.predicts:
        raise Refusal(
            400,
            f"{run.name}: expected a model for /predict, got one of the task {run.kind}; use /translate for "
            "translations and /v1/completions for continuations",
        )
    if run.reads == "numbers":
        return _series(given, limits)
    if run.reads in WANTED:
        return _files(given, run.reads, limits)
    rows = given if isinstance(given, list) else [given]
    if not rows:
        raise Refusal(400, "inputs: expected a text or a list of texts, got an empty list")
    check_most(len(rows), limits.items, "texts", "inputs")
    cells = (
        row.values() if isinstance(row, dict) else row if isinstance(row, list) else [row] for row in rows
    )
    size = sum(len(one) for row in cells for one in row if isinstance(one, str))
    check_most(size, limits.characters, "characters", "inputs")
    return rows


def predicting(run: ServedRun, limits: ServerLimits, edits: ModelEdits = NOTHING) -> Work:
    """The work that answers inputs of `/predict` as JSON, while a client is waiting for them."""

    def work(items: list[Any], stopped: Stopped) -> list[Any]:
        if stopped():
            raise ClientLeft
        kind = run.opened.task.prediction_settings
        asked: dict[str, Any] = {"batch_rows": limits.batch_rows}
        if "scores" in kind.options():
            asked["scores"] = True
        model = without(run, edits)
        if isinstance(model, Generator):
            model = stoppable(model, stopped)
        predictor = run.opened.pipeline.predictor(model, kind(**asked))
        predictor.most = limits.items
        if predictor.reads in WANTED:
            for item in items:
                _check_size(item, predictor.reads)
        inputs = [predictor.parse(item, INPUTS) for item in items]
        check_most(sum(map(predictor.count, inputs)), limits.items, "inputs or series", "inputs")
        answers = []
        for answer in predictor.answers(inputs):
            answers.append(answer.json())
            if stopped():
                raise ClientLeft
        return answers

    return work


def inside(run: ServedRun, given: InspectFile, limits: ServerLimits) -> Work:
    """The work that makes the page of `weft inspect`."""
    text = limits.text(given.text, "text")
    sent = given.inputs
    if run.reads != "text" and text:
        send = "POST a file as base64 in inputs" if run.reads in WANTED else "omit text"
        raise Refusal(
            400, f"text: the task {run.kind} does not read text; {send}, or omit everything for an example"
        )
    if sent and run.reads not in WANTED:
        raise Refusal(400, f"inputs: the task {run.kind} does not read files; send text")
    files = _files(sent, run.reads, limits) if sent else []
    if len(files) > 1:
        raise Refusal(400, f"inputs: expected one file, got {len(files)}")
    wanted = run.rewriter.with_direction(text, str(given.target)) if run.rewriter else text

    def work(items: list[Any], stopped: Stopped) -> list[Any]:
        try:
            if not files:
                return [_page(run, wanted or None, stopped)]
            _check_size(files[0], run.reads)
            with held(files[0], "inputs: the file") as path:
                return [_page(run, str(path), stopped)]
        except DataError as error:  # clients must not learn the path of a run
            raise Refusal(400, str(error).replace(str(run.path), run.name)) from None

    return work


def _series(given: Any, limits: ServerLimits) -> list[list[float] | str]:
    rows = given if isinstance(given, list) and given and isinstance(given[0], list | str) else [given]
    check_most(len(rows), limits.items, "series", "inputs")
    for row in rows:
        if isinstance(row, str) and row.strip():
            if len(row) > limits.body_bytes:
                raise Refusal(413, f"inputs: a table is larger than {limits.body_bytes:,} bytes; send less")
            continue
        if not isinstance(row, list) or not row:
            raise Refusal(
                400, f"inputs: expected a list of numbers or the text of a CSV table, got {kind_of(row)}"
            )
        check_most(len(row), limits.characters, "numbers", "inputs")
        if not all(_is_value(one) for one in row):
            raise Refusal(400, "inputs: expected numbers below 1e30, and null for a missing one")
    return [
        row if isinstance(row, str) else [math.nan if one is None else float(one) for one in row]
        for row in rows
    ]


def _is_value(one: Any) -> bool:
    """Whether JSON has a value of a series, which may be missing."""
    number = isinstance(one, int | float) and not isinstance(one, bool)
    return one is None or (number and (math.isnan(one) or abs(one) < LARGEST))


def _files(given: Any, reads: Reads, limits: ServerLimits) -> list[bytes]:
    """Files from base64, which may begin with `data:image/png;base64,` or the like, or from a list of it."""
    items = given if isinstance(given, list) else [given]
    wanted = WANTED[reads]
    if not items or len(items) > FILES:
        raise Refusal(400, f"inputs: expected 1 to {FILES} files, got {len(items)}")
    found = []
    for item in items:
        if not isinstance(item, str):
            raise Refusal(400, f"inputs: expected {wanted} as base64, got {kind_of(item)}")
        if len(item) > limits.body_bytes:
            raise Refusal(
                413, f"inputs: a file is larger than {limits.body_bytes:,} bytes; send a smaller one"
            )
        try:
            data = base64.b64decode(item.rpartition(",")[2], validate=True)
        except (binascii.Error, ValueError):
            raise Refusal(400, f"inputs: expected {wanted} as base64, got other text") from None
        kind = kind_of_bytes(data)
        if kind is None or kind.holds != reads:
            got = "another kind of file" if kind is None else kind.name
            raise Refusal(400, f"inputs: expected {wanted}, got {got}")
        found.append(data)
    return found


def _check_size(data: bytes, reads: Reads) -> None:
    """Check that a picture or a recording is not too large to be decoded."""
    try:
        with held(data, str(INPUTS)) as path:
            count = measured(path) if reads == "picture" else seconds_of(path)
    except DataError as error:
        raise Refusal(400, str(error)) from None
    if reads == "picture" and count > PIXELS:
        raise Refusal(
            400, f"inputs: expected a picture of at most {PIXELS:,} pixels, got {count:,}; scale it down"
        )
    if reads == "sound" and count > SECONDS:
        raise Refusal(
            400, f"inputs: expected a recording of at most {SECONDS} seconds, got {count:,.0f}; cut it"
        )


def _page(run: ServedRun, text: str | None, stopped: Stopped) -> str:
    from weft.inspect.inspection import inspection_of, kinds, page_of, views_of

    subject, views = inspection_of(run.opened, text), []
    for name in kinds():
        if stopped():
            raise ClientLeft
        views += views_of(run.opened, subject, [name])
    return page_of(run.opened, subject, views)
