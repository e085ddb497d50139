"""Forecasters as ONNX: the program forecasts as Weft does."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnxscript", reason="pip install -e .[export]")

import weft as package
from tests.commands.exporting import exported, run_program
from tests.commands.shell import weft

RECIPE = """\
task: forecast
data: {{file: {file}, lookback: 12, horizon: 4{more}}}
model: {{forecaster: {forecaster}, head: {head}, base: {base}}}
training: {{max_updates: 5, precision: float32, device: cpu, tensorboard: false}}
"""
LINES = ["1 2 3 " * 5, "", "0.5, nan, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12.25, nan", "-3 " * 40]


def trained(folder: Path, forecaster: str, head: str = "point", base: str = "none", more: str = "") -> Path:
    folder.mkdir()
    draw = np.random.default_rng(1)
    hours = enumerate(draw.normal(2, 3, 400))
    rows = [f"2024-01-{n // 24 + 1:02} {n % 24:02}:00,{value:.3f}" for n, value in hours]
    (folder / "x.csv").write_text("time,load\n" + "\n".join(rows) + "\n")
    recipe = RECIPE.format(file=folder / "x.csv", forecaster=forecaster, head=head, base=base, more=more)
    (folder / "x.yaml").write_text(recipe)
    weft("train", folder / "x.yaml", "--run", folder / "run", code=0)
    return folder / "run"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("forecaster", "head", "base"),
    [
        ("{use: recurrent, cell: gru, sizes: [7]}", "normal", "none"),
        ("{use: linear}", "quantile", "linear"),
        ("{use: segments, segment: 4, hidden: 9}", "student", "none"),
    ],
)
def test_a_forecaster(forecaster: str, head: str, base: str, tmp_path: Path) -> None:
    run = trained(tmp_path / "toy", forecaster, head, base)
    exported(run, tmp_path / "out")
    found = run_program(tmp_path / "out", "".join(f"{line}\n" for line in LINES))
    model = package.load(run)
    for line, answer in zip(LINES, found, strict=True):
        values = [float(one) for one in line.replace(",", " ").split()]
        ours = model.predict(values) if values else []
        assert np.allclose(ours, np.array(answer.split(), np.float64), rtol=1e-4, atol=1e-4), (line, answer)


@pytest.mark.slow
def test_too_few_values_do_not_stop_the_others(tmp_path: Path) -> None:
    exported(trained(tmp_path / "toy", "{use: linear}"), tmp_path / "out")
    line = [sys.executable, str(tmp_path / "out" / "weft_onnx.py")]
    text = "1 2 3\n1 x\n" + "1 " * 12 + "\n"
    done = subprocess.run(line, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 3 and [len(one.split()) for one in done.stdout.splitlines()] == [0, 0, 4]
    assert "line 1: expected at least 12 rows, got 3" in done.stderr and "line 2: " in done.stderr
