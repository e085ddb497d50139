"""weft predict --ray: answer a large file on a Ray cluster.

A Ray Data job over chunks of lines. Each worker opens the run once; answers return in the order of the chunks
and are written here, one file per chunk, as in bulk.py, so the same command resumes after a kill, with or
without Ray. The run must have the same path on every machine; only this machine reads the text and writes
the output. Ray sends pickles between its own processes, but never writes or reads pickle files. Read next:
bulk.py.
"""

import contextlib
import logging
import os
import tempfile
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import click

from weft.commands import bulk
from weft.commands.launch import in_source
from weft.errors import ConfigError, DataError, WeftError
from weft.wording import plural

WINDOW = 1024  # maximum number of chunks in Ray's memory: half a million lines


class Answerer:
    """A worker that opens the run once and answers chunks, in the current folder of the command."""

    def __init__(self, given: Mapping[str, Any], folder: str) -> None:
        with contextlib.suppress(OSError):  # another machine may not have it
            os.chdir(folder)
        import torch

        from weft.commands.options import PREDICTING, open_asked, settings_for

        torch.set_num_threads(1)  # one core per worker
        self._file = given["file"]
        self._opened = open_asked(given)
        kind = self._opened.task.prediction_settings
        self._settings = settings_for(self._opened, kind, given, PREDICTING)

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        """Answer a chunk, given by its number and lines; returns its number and answers, or the error."""
        pairs = zip(row["lines"], row["errors"], strict=True)
        part = bulk.Chunk(
            int(row["number"]), [DataError(str(why)) if why else str(line) for line, why in pairs]
        )
        try:
            answers = bulk.answer(self._opened, part, self._settings, self._file)
        except WeftError as error:
            empty = {"answers": [""], "unanswered": [""], "remarks": ""}
            return {"number": part.number, **empty, "wrong": str(error)}
        found = {"answers": answers.texts, "unanswered": answers.wrong or [""], "remarks": answers.remarks}
        return {"number": part.number, **found, "wrong": ""}


def predict(opened: Any, given: Mapping[str, Any]) -> None:
    """Answer the remaining chunks of a file on a cluster."""
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise ConfigError(f"--ray: {error.name} is not installed; pip install 'weft-seq[ray]'") from None
    parts = bulk.begin(opened, given)
    workers = given["processes"] or 1
    with tempfile.TemporaryDirectory(prefix="weft-") as empty:
        _start(ray, given["ray"], workers, empty)
        try:
            done = _write(ray.data, parts, given, workers)
        finally:
            ray.shutdown()
    click.echo(f"{plural(done, 'chunk')} answered by {workers} Ray workers", err=True)


def _start(ray: Any, address: str, workers: int, empty: str) -> None:
    """Start Ray from an empty folder.

    Ray puts the current folder on the path of its workers, where a file named like a library would run.
    """
    own = {"address": "local", "num_cpus": workers + 1, "include_dashboard": False}
    where = own if address == "local" else {"address": address}
    try:
        with contextlib.chdir(os.getcwd() if in_source() else empty):
            ray.init(**where, logging_level=logging.ERROR)
    except Exception as error:  # noqa: BLE001  Ray raises a plain Exception if its services start too slowly
        why = f"the cluster does not answer ({error}); check the address, or pass --ray local to start one"
        if address == "local":
            why = f"Ray does not start ({error}); try again when the machine is less busy, or omit --ray"
        raise ConfigError(f"--ray {address}: {why}") from None


def _write(data: Any, parts: Path, given: Mapping[str, Any], workers: int) -> int:
    """Answer and write the remaining chunks; returns their number."""
    logging.getLogger("ray.data").setLevel(logging.ERROR)  # hide its execution plans
    context = data.DataContext.get_current()
    context.enable_progress_bars = False
    context.execution_options.preserve_order = True
    done = 0
    for part, found in _answers(data, bulk.pending(parts, given["file"]), given, workers):
        bulk.write(parts, part, *found)
        done += 1
    return done


def _answers(
    data: Any, pending: Iterator[bulk.Chunk], given: Mapping[str, Any], workers: int
) -> Iterator[tuple[bulk.Chunk, bulk.ChunkAnswers]]:
    while window := {part.number: part for part in islice(pending, WINDOW)}:
        chunks = data.from_items(list(map(_row, window.values())), override_num_blocks=len(window))
        made = chunks.map(
            Answerer,
            fn_constructor_args=[dict(given), os.getcwd()],
            compute=data.ActorPoolStrategy(size=min(workers, len(window))),
            num_cpus=1,
        )
        for row in made.iter_rows():
            if row["wrong"]:
                raise DataError(row["wrong"])
            unanswered = [str(one) for one in row["unanswered"] if one]
            answers = [str(one) for one in row["answers"]]
            yield window[int(row["number"])], bulk.ChunkAnswers(answers, unanswered, str(row["remarks"]))


def _row(part: bulk.Chunk) -> dict[str, Any]:
    """A chunk as Ray sends it: its lines, and why those that are not UTF-8 have none."""
    texts = ["" if isinstance(line, DataError) else line for line in part.lines]
    errors = [line.why if isinstance(line, DataError) else "" for line in part.lines]
    return {"number": part.number, "lines": texts, "errors": errors}
