"""Progress in a pipe and on a terminal, metrics.jsonl, TensorBoard."""

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from logging import LogRecord
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tests.train.toy import Notes, Sample, Task, settings
from weft.errors import CheckpointError
from weft.train import reporting
from weft.train.loop import train
from weft.train.reporting import Line, MetricsFile, Reporter
from weft.train.trackers import Tensorboard, open_report

LINE = Line(
    update=1200,
    epoch=2,
    done=0.25,
    loss=3.14159,
    lr=0.000875,
    gradient_norm=1.5,
    feeding=1.0,
    skipped=0,
    tokens=90_000,
    tokens_per_second=11_834.4,
    tokens_per_cpu_second=6_001.0,
    seconds=100.0,
    cpu_seconds=80.0,
    seconds_left=300.0,
)


def test_the_speed_of_a_classifier_counts_texts() -> None:
    shown = reporting.measures(LINE._replace(unit="text"))
    assert shown[1:3] == ["11,834 texts/s", "6,001 texts per CPU second"]


def test_a_reader_that_leaves_ends_the_lines_but_not_the_training() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as stream:
        lines = reporting.LineReporter(stream)
        for _ in range(3):
            lines.warned("a tooth is loose")


@pytest.mark.slow
def test_a_training_whose_output_goes_to_head_keeps_its_model(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(
        "task: forecast\ndata: {generated: waves, lookback: 24, horizon: 5}\n"
        "model: {forecaster: {use: linear}}\ntraining: {max_updates: 2, tensorboard: false}\n"
    )
    command = f"{sys.executable} -m weft train x.yaml --run run 2>&1 | head -1"
    said = subprocess.run(command, shell=True, cwd=tmp_path, stdout=subprocess.PIPE, check=True).stdout
    assert said == b"reading the series ...\n"
    assert (tmp_path / "run" / "model.safetensors").exists()


def test_lines_in_a_pipe() -> None:
    stream = io.StringIO()
    lines = reporting.LineReporter(stream)
    lines.logged(LINE)
    lines.logged(LINE._replace(feeding=0.75, skipped=2, seconds_left=0.0))
    lines.validated(
        1200, {"loss": 2.0, "bleu": 30.25}, [Sample("ein\r\nHaus", "a\nhouse"), "plain\ntext"], True
    )
    lines.warned("a tooth is loose")
    assert stream.getvalue().split("\n") == [
        "update 1,200 | epoch 3 | loss 3.142 | 11,834 tokens/s | 6,001 tokens per CPU second | lr 0.000875"
        " | 5:00 left",
        "update 1,200 | epoch 3 | loss 3.142 | 11,834 tokens/s | 6,001 tokens per CPU second | lr 0.000875"
        " | teacher forcing 0.75 | 2 updates skipped",
        "validation after update 1,200: loss 2.000, bleu 30.250 (best so far)",
        "  source  ein Haus",
        "  output  a house",
        "",
        "  plain text",
        "warning: a tooth is loose",
        "",
    ]


def test_small_losses_and_scores_can_be_told_apart() -> None:
    assert reporting.measures(LINE._replace(loss=0.00123456))[0] == "loss 0.001235"
    shown = [reporting.score_text({"mse": mse}) for mse in (1.8661e-5, 1.8734e-5)]
    assert shown == ["mse 1.866e-05", "mse 1.873e-05"]


def test_progress_of_reading_is_told_now_and_then_and_at_the_end() -> None:
    stream = io.StringIO()
    lines = reporting.LineReporter(stream)
    for done in range(1, 1001):
        lines.progress("pairs", done, 1000)
    assert stream.getvalue() == "pairs: 1 of 1,000\npairs: 1,000 of 1,000\n"


def test_a_terminal_shows_a_bar_with_the_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(reporting, "SECONDS_BETWEEN_DRAWINGS", 0.0)
    monkeypatch.setattr(
        "rich.console.Console",
        lambda **options: Console(file=stream, force_terminal=True, width=150, highlight=False),
    )
    with reporting.Bar() as bar:
        bar.progress("pairs", 500, 1000)
        bar.started(0, False)
        bar.logged(LINE)
        bar.moved(1201, 0.25)
        bar.validated(1200, {"bleu": 30.25}, [Sample("[b]ein Haus", "a house")], False)
        bar.warned("a tooth is loose")
    shown = stream.getvalue()
    assert "pairs" in shown
    assert "25%" in shown
    assert "5:00 left | update 1,201 | loss 3.142 | 11,834 tokens/s" in shown
    assert "bleu 30.250" in shown
    assert "[b]ein Haus" in shown  # a sentence is no markup
    assert shown.rstrip("\n").endswith("\x1b[?25h") or "\x1b[?25h" in shown[-40:]  # the cursor is back


@pytest.mark.parametrize(
    ("width", "told"),
    [
        (40, "5:00 left"),
        (80, "5:00 left | update 1,201 | loss 3.142"),
        (110, "5:00 left | update 1,201 | loss 3.142 | 11,834 tokens/s"),
    ],
)
def test_a_narrow_terminal_keeps_the_bar_and_the_time_left(
    monkeypatch: pytest.MonkeyPatch, width: int, told: str
) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(
        "rich.console.Console",
        lambda **options: Console(
            file=stream, force_terminal=True, width=width, highlight=False, no_color=True, color_system=None
        ),
    )
    with reporting.Bar() as bar:
        bar.logged(LINE)
        bar.moved(1201, 0.25)
    lines = [line for line in re.split(r"[\r\n]|\x1b\[[0-9;?]*[A-Za-z]", stream.getvalue()) if "25%" in line]
    assert lines and len(lines[0]) <= width
    assert "━" * 2 in lines[0] and lines[0].rstrip().endswith(told)


def test_a_bar_draws_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(
        "rich.console.Console", lambda **options: Console(file=stream, force_terminal=True, width=150)
    )
    with reporting.Bar() as bar:
        bar.moved(1, 0.01)
        size = len(stream.getvalue())
        for update in range(2, 1000):
            bar.moved(update, update / 1000)
        assert len(stream.getvalue()) <= size + 2000


def test_no_bar_is_drawn_after_the_last_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(
        "rich.console.Console", lambda **options: Console(file=stream, force_terminal=True, width=80)
    )
    with reporting.Bar() as bar:
        bar.moved(1201, 0.25)
        assert "25%" in stream.getvalue()
        bar.ending()
        bar.said("stopped after update 1,201; progress is saved and the same command resumes")
        bar.progress("averaging", 1, 1)
        bar.moved(1202, 0.5)
    after = stream.getvalue().rpartition("stopped after")[2]
    assert "━" not in after and "%" not in after and "update 1,20" not in after.replace("update 1,201;", "")


def test_metrics_of_later_updates_and_half_lines_are_dropped(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    metrics = MetricsFile(path)
    metrics.started(0, False)
    for update in (1, 2, 3):
        metrics.logged(LINE._replace(update=update))
        metrics.validated(update, {"loss": float("inf"), "bleu": 1.0}, [Sample("é", "\udc80")], False)
    with open(path, "ab") as file:
        file.write(b'{"event": "upd')
    MetricsFile(path).started(2, validated=False)
    records = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert [(r["event"], r["update"]) for r in records] == [("update", 1), ("validation", 1), ("update", 2)]
    assert records[0]["loss"] == LINE.loss
    assert records[1]["scores"] == {"loss": None, "bleu": 1.0}
    assert records[1]["samples"] == [{"source": "é", "output": "\udc80"}]


def test_metrics_that_cannot_be_written_are_said_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").mkdir()
    with pytest.raises(CheckpointError, match=r"metrics\.jsonl: could not be written"):
        MetricsFile(tmp_path / "metrics.jsonl").logged(LINE)


def test_tensorboard_gets_the_curves_and_no_value_that_is_not_finite(
    tmp_path: Path, logged: list[LogRecord]
) -> None:
    board = Tensorboard().report(tmp_path, {}, Notes())
    board.started(0, False)
    board.logged(LINE._replace(gradient_norm=float("inf")))
    board.validated(1200, {"bleu": 30.25}, [], True)
    board.close()
    (events,) = tmp_path.rglob("*tfevents*")
    data = events.read_bytes()
    for name in (b"train/loss", b"train/lr", b"speed/tokens_per_second", b"validation/bleu"):
        assert name in data
    assert not logged and b"gradient_norm" not in data


def test_every_report_hears_every_call() -> None:
    calls: list[str] = []

    class Ear(Reporter):
        def __getattribute__(self, name: str) -> Any:
            def heard(*arguments: Any) -> None:
                calls.append(name)

            return heard if name in said else super().__getattribute__(name)

    said: dict[str, Callable[[Reporter], None]] = {
        "started": lambda r: r.started(1, True),
        "said": lambda r: r.said("a"),
        "warned": lambda r: r.warned("a"),
        "progress": lambda r: r.progress("a", 1),
        "moved": lambda r: r.moved(1, 0.5),
        "logged": lambda r: r.logged(LINE),
        "monitored": lambda r: r.monitored(1, {}),
        "validated": lambda r: r.validated(1, {}, [], False),
        "ending": lambda r: r.ending(),
        "finished": lambda r: r.finished("max_updates", 1, {}),
        "close": lambda r: r.close(),
    }
    public = {name for name, value in vars(Reporter).items() if name[0] != "_" and callable(value)}
    assert public == set(said)
    several, silent = Reporter(Ear(), Ear()), Reporter()
    for name, call in said.items():
        call(several)
        call(silent)
        assert calls[-2:] == [name, name]


def test_a_pipe_gets_lines_and_the_run_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    report = open_report(tmp_path)
    train(Task(), tmp_path, settings(max_epochs=1, log_every=2), report)
    text = stream.getvalue()
    assert "reading: 1 of 1" in text
    assert "training starts: 256 parameters on cpu in float32, 1 thread" in text
    assert "update 2 | epoch 1 | loss" in text
    assert "validation after update 3: loss" in text
    assert "  source  a b" in text
    records = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_bytes().splitlines()]
    assert [record["event"] for record in records] == ["update", "validation"]
    line = records[0]
    assert line["tokens"] == sum(len(row) - 1 for row in rows_of_first_batches(6))
    assert line["tokens_per_second"] > 0
    assert line["tokens_per_cpu_second"] > 0


def rows_of_first_batches(count: int) -> list[Any]:
    task = Task()
    return [task.rows[n] for numbers in task.plan(1).epoch(0)[:count] for n in numbers]
