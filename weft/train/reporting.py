"""Report progress to the screen, metrics.jsonl and TensorBoard. Read next: screen.py."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from weft.errors import CheckpointError
from weft.store import files, jsonfile
from weft.train.history import plain


class Line(NamedTuple):
    """A progress line: the updates since the last one."""

    update: int
    epoch: int  # from 0
    done: float  # share of the planned training, 0 to 1
    loss: float  # nats per real target
    lr: float
    gradient_norm: float  # of the last update, before clipping
    feeding: float  # probability of the true token
    skipped: int  # skipped updates in total
    tokens: int  # target tokens in total
    tokens_per_second: float  # target tokens per second of wall-clock time
    tokens_per_cpu_second: float
    seconds: float  # since training began, including resumed parts
    cpu_seconds: float  # the same in CPU time
    seconds_left: float  # 0 without a planned end


class Reporter:
    """Receives the progress of a training; by default every call does nothing."""

    def started(self, update: int, validated: bool) -> None:
        """Training starts after this update; earlier reports about later updates are void.

        Args:
            update: number of updates so far.
            validated: whether the validation of that update is valid; if not, it will be repeated.
        """

    def said(self, text: str) -> None:
        """A sentence for the user."""

    def warned(self, text: str) -> None:
        """A warning: a problem that does not stop training."""

    def progress(self, what: str, done: float, total: float | None = None) -> None:
        """Progress of a long step before training: reading data, learning a vocabulary."""

    def moved(self, update: int, done: float) -> None:
        """An update was taken; called after every update, so it must be cheap."""

    def logged(self, line: Line) -> None:
        """A progress line is due."""

    def monitored(self, update: int, values: Mapping[str, float]) -> None:
        """Measurements of the model: gradient reach, gates, norms; see monitors.py."""

    def validated(self, update: int, scores: Mapping[str, float], samples: Sequence[Any], best: bool) -> None:
        """A validation is complete; `best` tells whether it is the best so far."""

    def close(self) -> None:
        """The training has ended."""

    def __enter__(self) -> "Reporter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Several(Reporter):
    """Passes every call to several reports."""

    def __init__(self, *reports: Reporter) -> None:
        self._reports = reports

    def started(self, update: int, validated: bool) -> None:
        """Pass on."""
        for report in self._reports:
            report.started(update, validated)

    def said(self, text: str) -> None:
        """Pass on."""
        for report in self._reports:
            report.said(text)

    def warned(self, text: str) -> None:
        """Pass on."""
        for report in self._reports:
            report.warned(text)

    def progress(self, what: str, done: float, total: float | None = None) -> None:
        """Pass on."""
        for report in self._reports:
            report.progress(what, done, total)

    def moved(self, update: int, done: float) -> None:
        """Pass on."""
        for report in self._reports:
            report.moved(update, done)

    def logged(self, line: Line) -> None:
        """Pass on."""
        for report in self._reports:
            report.logged(line)

    def monitored(self, update: int, values: Mapping[str, float]) -> None:
        """Pass on."""
        for report in self._reports:
            report.monitored(update, values)

    def validated(self, update: int, scores: Mapping[str, float], samples: Sequence[Any], best: bool) -> None:
        """Pass on."""
        for report in self._reports:
            report.validated(update, scores, samples, best)

    def close(self) -> None:
        """Close all."""
        for report in self._reports:
            report.close()


class MetricsFile(Reporter):
    """Writes RUN/metrics.jsonl: one JSON object per line, flushed at once.

    Args:
        path: the file; lines of updates that a resumed run repeats are removed from it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def started(self, update: int, validated: bool) -> None:
        """Remove later lines, and a last line that a kill cut short."""
        try:
            old = self._path.read_bytes() if self._path.exists() else b""
            kept = [line for line in old.split(b"\n") if _stands(line, update, validated)]
            if old:
                files.replace(self._path, b"".join(line + b"\n" for line in kept))
        except OSError as error:
            raise self._trouble(error) from error

    def logged(self, line: Line) -> None:
        """Write the line."""
        self._write({"event": "update", **line._asdict()})

    def monitored(self, update: int, values: Mapping[str, float]) -> None:
        """Write the measurements; non-finite values become null."""
        self._write({"event": "monitor", "update": update, "values": plain(values)})

    def validated(self, update: int, scores: Mapping[str, float], samples: Sequence[Any], best: bool) -> None:
        """Write scores and samples."""
        shown = [sample._asdict() if hasattr(sample, "_asdict") else str(sample) for sample in samples]
        self._write(
            {"event": "validation", "update": update, "best": best, "scores": plain(scores), "samples": shown}
        )

    def warned(self, text: str) -> None:
        """Write nothing: the warning may be about a full disk."""

    def _write(self, record: dict[str, Any]) -> None:
        text = json.dumps(record, ensure_ascii=False, default=str)
        try:
            with open(self._path, "a", encoding="utf-8", newline="\n", errors="backslashreplace") as file:
                file.write(text + "\n")
        except OSError as error:
            raise self._trouble(error) from error

    def _trouble(self, error: OSError) -> CheckpointError:
        return CheckpointError(
            f"{self._path}: could not be written ({error.strerror}); free some space and run the "
            "same command again"
        )


class TensorBoard(Reporter):
    """Writes curves for TensorBoard; if that fails, training continues without them.

    Args:
        directory: directory for the event files.
        screen: receives one warning if writing fails.
    """

    def __init__(self, directory: Path, screen: Reporter) -> None:
        self._directory = directory
        self._screen = screen
        self._writer: Any = None

    def started(self, update: int, validated: bool) -> None:
        """Open the event file; points after `update` are discarded."""
        try:
            from tensorboardX import SummaryWriter

            self._writer = SummaryWriter(str(self._directory), purge_step=update + 1, flush_secs=10)
        except Exception as error:  # noqa: BLE001  it must not stop training
            self._stop(error)

    def logged(self, line: Line) -> None:
        """Write loss, learning rate, gradient norm and speed."""
        self._points(
            line.update,
            {
                "train/loss": line.loss,
                "train/lr": line.lr,
                "train/gradient_norm": line.gradient_norm,
                "train/feeding": line.feeding,
                "speed/tokens_per_second": line.tokens_per_second,
                "speed/tokens_per_cpu_second": line.tokens_per_cpu_second,
            },
        )

    def monitored(self, update: int, values: Mapping[str, float]) -> None:
        """Write every value."""
        self._points(update, {f"monitors/{name}": value for name, value in values.items()})

    def validated(self, update: int, scores: Mapping[str, float], samples: Sequence[Any], best: bool) -> None:
        """Write every score."""
        self._points(update, {f"validation/{name}": score for name, score in scores.items()})

    def close(self) -> None:
        """Close the event file."""
        if self._writer is not None:
            try:
                self._writer.close()
            except Exception as error:  # noqa: BLE001
                self._stop(error)

    def _points(self, update: int, points: Mapping[str, float]) -> None:
        if self._writer is None:
            return
        try:
            for name, value in points.items():
                if math.isfinite(value):  # tensorboardX prints a warning for others
                    self._writer.add_scalar(name, value, update)
        except Exception as error:  # noqa: BLE001
            self._stop(error)

    def _stop(self, error: Exception) -> None:
        self._writer = None
        self._screen.warned(
            f"cannot write TensorBoard events to {self._directory} ({error}); training continues without them"
        )


def _stands(line: bytes, update: int, validated: bool) -> bool:
    try:
        record = jsonfile.parse(line)
        again = record["event"] == "validation" and not validated
        return bool(record["update"] < update or (record["update"] == update and not again))
    except (ValueError, KeyError, TypeError):
        return False
