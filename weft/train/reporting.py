"""Report progress to the screen and metrics.jsonl.

On a terminal the screen shows a bar, in a pipe or a log plain lines. Read next: trackers.py, which opens the
reports; monitors.py, which measures the times.
"""

import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, TextIO

from weft.errors import CheckpointError
from weft.store import files, jsonfile
from weft.train.history import plain
from weft.wording import beneath, plural, visible


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
    unit: str = "token"  # what a target is


class Reporter:
    """Receives the progress of a training; what a subclass does not override goes to these reports."""

    reports: Sequence["Reporter"] = ()

    def __init__(self, *reports: "Reporter") -> None:
        self.reports = reports

    def started(self, update: int, validated: bool) -> None:
        """Training starts after this update; earlier reports about later updates are void."""
        for report in self.reports:
            report.started(update, validated)

    def said(self, text: str) -> None:
        """A sentence for the user."""
        for report in self.reports:
            report.said(text)

    def warned(self, text: str) -> None:
        """A warning: a problem that does not stop training."""
        for report in self.reports:
            report.warned(text)

    def progress(self, what: str, done: float, total: float | None = None) -> None:
        """Progress of a long step before training: reading data, learning a vocabulary."""
        for report in self.reports:
            report.progress(what, done, total)

    def moved(self, update: int, done: float) -> None:
        """An update was taken; called after every update, so it must be cheap."""
        for report in self.reports:
            report.moved(update, done)

    def logged(self, line: Line) -> None:
        """A progress line is due."""
        for report in self.reports:
            report.logged(line)

    def monitored(self, update: int, values: Mapping[str, float]) -> None:
        """Measurements of the model: gradient reach, gates, norms; see monitors.py."""
        for report in self.reports:
            report.monitored(update, values)

    def validated(self, update: int, scores: Mapping[str, float], samples: Sequence[Any], best: bool) -> None:
        """A validation is complete; `best` tells whether it is the best so far."""
        for report in self.reports:
            report.validated(update, scores, samples, best)

    def ending(self) -> None:
        """No more updates follow, only sentences: a bar disappears."""
        for report in self.reports:
            report.ending()

    def finished(self, reason: str, update: int, scores: Mapping[str, float]) -> None:
        """The training has reached its end, and a model was chosen."""
        for report in self.reports:
            report.finished(reason, update, scores)

    def close(self) -> None:
        """Nothing more is reported: the training has ended, was stopped, or has failed."""
        for report in self.reports:
            report.close()

    def __enter__(self) -> "Reporter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class MetricsFile(Reporter):
    """Writes RUN/metrics.jsonl, flushed line by line, without the lines that a resumed run repeats."""

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
        self._write({"event": "update", **line._asdict()})

    def monitored(self, update: int, values: Mapping[str, float]) -> None:
        """Write the measurements; non-finite values become null."""
        self._write({"event": "monitor", "update": update, "values": plain(values)})

    def validated(self, update: int, scores: Mapping[str, float], samples: Sequence[Any], best: bool) -> None:
        shown = [sample._asdict() if hasattr(sample, "_asdict") else str(sample) for sample in samples]
        self._write(
            {"event": "validation", "update": update, "best": best, "scores": plain(scores), "samples": shown}
        )

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


def _stands(line: bytes, update: int, validated: bool) -> bool:
    try:
        record = jsonfile.parse(line)
        again = record["event"] == "validation" and not validated
        return bool(record["update"] < update or (record["update"] == update and not again))
    except (ValueError, KeyError, TypeError):
        return False


SECONDS_BETWEEN_DRAWINGS = 0.5
SECONDS_BETWEEN_LINES = 10.0


class LineReporter(Reporter):
    """Progress as plain lines."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._next = 0.0

    def said(self, text: str) -> None:
        try:
            print(text, file=self._stream, flush=True)
        except BrokenPipeError:  # as of `2>&1 | head`, after which the model is still wanted
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())

    def warned(self, text: str) -> None:
        self.said(f"warning: {text}")

    def progress(self, what: str, done: float, total: float | None = None) -> None:
        """Print a line every few seconds, and at the end."""
        if time.monotonic() >= self._next or done == total:
            self._next = time.monotonic() + SECONDS_BETWEEN_LINES
            self.said(progress_text(what, done, total))

    def logged(self, line: Line) -> None:
        self.said(f"update {line.update:,} | epoch {line.epoch + 1} | {' | '.join(measures(line))}")

    def validated(self, update: int, scores: Mapping[str, float], samples: Sequence[Any], best: bool) -> None:
        self.said(
            f"validation after update {update:,}: {score_text(scores)}" + (" (best so far)" if best else "")
        )
        for sample in samples:
            self.said(sample_text(sample))


class Bar(Reporter):
    """A progress bar at the bottom of the terminal, with lines scrolling above it."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
        from rich.table import Column

        self._console = Console(file=beneath(sys.stderr), highlight=False)
        self._bar_width = min(24, max(8, self._console.width // 6))
        # Refreshed by hand: rich's own thread would interrupt training several times a second.
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=self._bar_width),
            TaskProgressColumn(),
            TextColumn("{task.fields[figures]}", markup=False, table_column=Column(no_wrap=True)),
            console=self._console,
            auto_refresh=False,
            transient=True,
        )
        self._tasks: dict[str, Any] = {}
        self._line: Line | None = None
        self._next = 0.0
        self._bar.start()

    def said(self, text: str) -> None:
        self._console.print(visible(text), markup=False, soft_wrap=True)

    def warned(self, text: str) -> None:
        self._console.print(visible(f"warning: {text}"), markup=False, style="yellow", soft_wrap=True)

    def started(self, update: int, validated: bool) -> None:
        """Remove the bars of the steps before training."""
        for task in self._tasks.values():
            self._bar.remove_task(task)
        self._tasks.clear()

    def progress(self, what: str, done: float, total: float | None = None) -> None:
        """Draw a bar for this step, or print a line if it is already done."""
        if total == 0:
            self.said(what)
            return
        self._draw(what, done, total, f"{done:,.0f}", force=done == total)

    def moved(self, update: int, done: float) -> None:
        """Move the bar, at most twice a second."""
        what, shown = "training", [f"update {update:,}"]
        if self._line is not None:
            figures = measures(self._line)
            # first, so that it is shown on narrow terminals too
            left = [figures.pop()] if self._line.seconds_left else []
            shown = [*left, *shown, *figures]
        room = self._console.width - len(what) - self._bar_width - len(" 100% ") - 1
        self._draw(what, done, 1.0 if done else None, fitting(shown, room))

    def logged(self, line: Line) -> None:
        self._line = line

    def validated(self, update: int, scores: Mapping[str, float], samples: Sequence[Any], best: bool) -> None:
        mark = " (best so far)" if best else ""
        self._console.print(
            f"validation after update {update:,}: {score_text(scores)}{mark}",
            markup=False,
            style="bold" if best else None,
            soft_wrap=True,
        )
        for sample in samples:
            self.said(sample_text(sample))

    def ending(self) -> None:
        """Remove the bar, so that it is not drawn again below the last sentences."""
        self.started(0, True)
        self._bar.stop()

    def close(self) -> None:
        self._bar.stop()

    def _draw(self, what: str, done: float, total: float | None, figures: str, force: bool = False) -> None:
        if not self._bar.live.is_started:
            return
        if not force and time.monotonic() < self._next:
            return
        self._next = time.monotonic() + SECONDS_BETWEEN_DRAWINGS
        if what not in self._tasks:
            self._tasks[what] = self._bar.add_task(visible(what), total=total, figures=visible(figures))
        self._bar.update(self._tasks[what], completed=done, total=total, figures=visible(figures))
        self._bar.refresh()


def progress_text(what: str, done: float, total: float | None) -> str:
    """The text of a progress line; a total of 0 means that the step is done.

    Example:
        >>> progress_text("reading", 0, None), progress_text("reading", 9, None), progress_text("read", 0, 0)
        ('reading ...', 'reading: 9', 'read')
    """
    if total == 0:
        return what
    if total is None and not done:
        return f"{what} ..."
    return f"{what}: {done:,.0f}" + (f" of {total:,.0f}" if total else "")


def fitting(parts: Sequence[str], width: int) -> str:
    """As many of the first parts as fit into the width.

    Example:
        >>> fitting(["5:00 left", "update 1,200", "loss 3.142"], 24)
        '5:00 left | update 1,200'
    """
    count = max(n for n in range(1, len(parts) + 1) if n == 1 or len(" | ".join(parts[:n])) <= width)
    return " | ".join(parts[:count])


def measures(line: Line) -> list[str]:
    """Loss, speed, learning rate and, if an end is planned, the time left as the last item."""
    parts = [
        f"loss {score(line.loss)}",
        f"{line.tokens_per_second:,.0f} {line.unit}s/s",
        f"{line.tokens_per_cpu_second:,.0f} {line.unit}s per CPU second",
        f"lr {line.lr:.3g}",
    ]
    if line.feeding < 1:
        parts.append(f"teacher forcing {line.feeding:.2f}")
    if line.skipped:
        parts.append(f"{plural(line.skipped, 'update')} skipped")
    if line.seconds_left:
        parts.append(f"{duration(line.seconds_left)} left")
    return parts


def duration(seconds: float) -> str:
    """A duration as hours, minutes and seconds.

    Example:
        >>> duration(59.6), duration(3671)
        ('1:00', '1:01:11')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def score_text(scores: Mapping[str, float]) -> str:
    """Scores with their names.

    Example:
        >>> score_text({"loss": 1.23456, "bleu": 30.5})
        'loss 1.235, bleu 30.500'
    """
    return ", ".join(f"{name} {score(value)}" for name, value in scores.items())


def score(value: float) -> str:
    """A number with three decimals, a small one with four digits.

    Example:
        >>> score(30.5), score(0.0), score(0.00001866), score(0.00001873)
        ('30.500', '0.000', '1.866e-05', '1.873e-05')
    """
    return f"{value:.4g}" if 0 < abs(value) < 0.1 else f"{value:.3f}"


def sample_text(sample: Any) -> str:
    """A sample, one line per field: a line end in a text is a space."""
    if not hasattr(sample, "_asdict"):
        return f"  {_one_line(sample)}"
    fields = {name: _one_line(value) for name, value in sample._asdict().items() if value not in (None, "")}
    width = max(map(len, fields), default=0)
    return "\n".join(f"  {name:<{width}}  {value}" for name, value in fields.items()) + "\n"


def _one_line(value: object) -> str:
    return " ".join(str(value).splitlines())
