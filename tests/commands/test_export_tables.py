"""Forecasters as ONNX, with calendar, covariates and other columns: the program answers as Weft."""

import csv
import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnxscript", reason="pip install -e .[export]")

import weft as package
from tests.commands.exporting import answers, exported, run_program
from tests.commands.shell import refused, weft
from tests.export import pages
from tests.shared import quick_first

pytestmark = pytest.mark.slow  # each export takes seconds

RECIPE = """\
task: forecast
data: {{file: {file}, lookback: 12, horizon: {horizon}{more}}}
model: {{forecaster: {forecaster}, head: {head}, base: {base}}}
training: {{max_updates: 5, precision: float32, device: cpu, tensorboard: false}}
"""
RECURRENT = "{use: recurrent, cell: gru, sizes: [7]}"
STEPS = {
    "h": "2024-02-28T22",
    "D": "2024-02-20",
    "B": "2024-02-20",
    "ME": "2021-01",
    "MS": "2021-01",
    "W": "2021-01-03",
}


def times(frequency: str, rows: int) -> list[str]:
    begin, at = np.datetime64(STEPS[frequency]), np.arange(rows)
    if frequency == "B":
        return [str(day) for day in np.busday_offset(begin, at)]
    if frequency == "ME":
        return [str((begin + n + 1).astype("datetime64[D]") - 1) for n in at]
    found = begin + (7 * at if frequency == "W" else at)
    return [str(time).replace("T", " ") + {"h": ":00", "MS": "-01"}.get(frequency, "") for time in found]


def table(
    frequency: str | None, columns: str, rows: int, *, ahead: int = 0, seed: int = 1, ids: str = ""
) -> str:
    """A table of noise; the first of the columns have no value in the `ahead` rows at the end."""
    draw, lines = np.random.default_rng(seed), []
    names = columns.split()
    lines.append(",".join([*(["when"] if frequency else []), *(["shop"] if ids else []), *names]))
    for shop in ids or "-":
        at = times(frequency, rows + ahead) if frequency else [""] * (rows + ahead)
        for n, row in enumerate(draw.uniform(1, 9, (rows + ahead, len(names)))):
            cells = [
                f"{one:.3f}" if n < rows or name.startswith("k") else ""
                for one, name in zip(row, names, strict=True)
            ]
            lines.append(",".join([*([at[n]] if frequency else []), *([shop] if ids else []), *cells]))
    return "\n".join(lines) + "\n"


def in_page(run: Path, text: str, folder: Path) -> str:
    """What a page answers to a table; what Weft does where Node is missing."""
    if pages.NODE is None:
        return weft("predict", run, stdin=text.encode()).out
    if not (folder / "page").exists():
        pages.export(run, folder / "page", "--float32")
    (found,) = pages.answers(folder / "page", [text], folder)
    return f"{found['text']}\n"


def run_of(
    folder: Path,
    text: str,
    more: str,
    forecaster: str = "{use: linear}",
    head: str = "point",
    base: str = "none",
    horizon: int = 5,
) -> Path:
    folder.mkdir()
    (folder / "x.csv").write_text(text)
    model = {"forecaster": forecaster, "head": head, "base": base}
    (folder / "x.yaml").write_text(RECIPE.format(file=folder / "x.csv", horizon=horizon, more=more, **model))
    weft("train", folder / "x.yaml", "--run", folder / "run", code=0)
    return folder / "run"


def same(ours: str, theirs: str) -> None:
    mark = ours[len("unique_id")]
    a, b = (list(csv.reader(io.StringIO(text), delimiter=mark)) for text in (ours, theirs))
    assert [row[:2] for row in a] == [row[:2] for row in b] and len(a) > 1
    assert a[0] == b[0]
    assert len({"," in text.partition("\n")[2].replace(mark, "") for text in (ours, theirs)}) == 1
    numbers = [np.array([row[2].replace(",", ".") for row in rows[1:]], np.float64) for rows in (a, b)]
    assert np.allclose(*numbers, rtol=1e-4, atol=1e-4)


KINDS = {
    "calendar": ("h", "a b", ", calendar: true", "{use: linear}", ""),
    "known": ("D", "y k1 k2", ", known: [k1, k2], targets: [y]", RECURRENT, ""),
    "everything": ("B", "a b k1 p1", ", calendar: true, known: [k1], past: [p1], inputs: all", RECURRENT, ""),
    "shops": (
        "ME",
        "y k1 p1",
        ", known: [k1], past: [p1], id: shop, targets: [y], calendar: true",
        RECURRENT,
        "xy",
    ),
    "weeks": ("W", "a b p1", ", past: [p1], calendar: true, split: [60, 20, 20]", RECURRENT, ""),
    "rows": (None, "a k1", ", known: [k1]", "{use: linear}", ""),
}


@pytest.mark.parametrize("name", quick_first({name: name for name in KINDS}))
def test_a_table(name: str, tmp_path: Path) -> None:
    frequency, columns, more, forecaster, ids = KINDS[name]
    run = run_of(tmp_path / "toy", table(frequency, columns, 100, ids=ids), more, forecaster)
    said = exported(run, tmp_path / "out")
    assert "answers equal to Weft's: 20 of 20" in said.out
    whole = table(frequency, columns, 19, ahead=5, seed=2, ids=ids and "zx")
    lines = whole.splitlines(keepends=True)
    holes = lines[:4] + lines[6:] if frequency else lines  # two periods are missing
    cells = holes[9].split(",")
    place = (frequency is not None) + bool(ids)
    cells[place : place + 1] = ["nan"]  # a value is missing
    odd = "".join([*holes[:9], ",".join(cells), *holes[10:]])
    marked = odd.replace(",", ";")
    comma = f"sep=;\n{marked.replace('.', ',')}"
    for text in (whole, marked, comma, odd.replace("-", "/") if frequency != "h" else odd):
        ours = weft("predict", run, stdin=text.encode(), code=0)
        theirs = answers(tmp_path / "out", text, without=("tokenizers",))
        assert theirs.returncode == 0, theirs.stderr
        same(ours.out, theirs.stdout)
        same(ours.out, in_page(run, text, tmp_path))


def test_a_table_without_names_of_columns(tmp_path: Path) -> None:
    bare = [table("D", "a b", rows).partition("\n")[2] for rows in (100, 17)]
    run = run_of(tmp_path / "toy", bare[0], ", calendar: true")
    exported(run, tmp_path / "out")
    theirs = answers(tmp_path / "out", bare[1])
    same(weft("predict", run, stdin=bare[1].encode()).out, theirs.stdout)
    same(theirs.stdout, in_page(run, bare[1], tmp_path))


def test_times_with_an_offset_keep_it(tmp_path: Path) -> None:
    run = run_of(tmp_path / "toy", table("h", "a", 100), ", calendar: true")
    exported(run, tmp_path / "out")
    text = table("h", "a", 17, seed=2).replace(":00,", ":00+05:30,")
    theirs = answers(tmp_path / "out", text)
    same(weft("predict", run, stdin=text.encode()).out, theirs.stdout)
    same(theirs.stdout, in_page(run, text, tmp_path))
    assert "+05:30," in theirs.stdout


@pytest.mark.parametrize("frequency", ["h", "D"])
def test_times_are_converted_to_the_zone_of_the_training(frequency: str, tmp_path: Path) -> None:
    import pandas as pd

    def zoned(begin: str, rows: int, zone: str) -> str:
        times = pd.date_range(begin, periods=rows, freq=frequency, tz="Europe/Zagreb").tz_convert(zone)
        return "\n".join(["when,a", *(f"{time.isoformat()},{time.hour + time.day}" for time in times)]) + "\n"

    run = run_of(tmp_path / "toy", zoned("2024-03-28", 100, "Europe/Zagreb"), ", calendar: true")
    exported(run, tmp_path / "out")
    new = zoned({"h": "2024-10-26 12:00", "D": "2024-10-20"}[frequency], 17, "UTC")
    theirs = answers(tmp_path / "out", new)
    same(weft("predict", run, stdin=new.encode()).out, theirs.stdout)
    same(theirs.stdout, in_page(run, new, tmp_path))
    assert "+01:00," in theirs.stdout


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda text: "\n".join(text.splitlines()[:9]), "expected at least 12 rows, got 8"),
        (lambda text: text.rpartition("2024")[0], "expected k1 for the 5 rows to forecast"),
        (lambda text: text.replace("when,y", "when,z"), "expected a column 'y'"),
        (
            lambda text: "".join(f"{line},1\n" for line in text.splitlines()).replace("y,k1,1", "Y,k1,Y"),
            "the columns 2 and 4 are both called 'y'; rename one",
        ),
        (lambda text: text.replace("2024-02-22", "2024-02-23"), "sort the rows"),
        (lambda text: text.replace("2024-02-22", "yesterday"), "is not a time"),
        (lambda text: text.replace(",", ",x", 9), "x"),
        (lambda text: "", "got no row"),
    ],
)
def test_a_table_that_cannot_be_forecast_is_told_in_one_sentence(
    known: Path, change: Callable[[str], str], word: str
) -> None:
    text = change(table("D", "y k1", 19, ahead=5, seed=2))
    done = answers(known, text)
    assert done.returncode == 3 and done.stdout.strip() == ""
    assert word in done.stderr and len(done.stderr.splitlines()) == 1 and "Traceback" not in done.stderr


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Path:
    there: Path = tmp_path_factory.mktemp("known")
    exported(run_of(there / "toy", table("D", "y k1", 100), ", known: [k1], targets: [y]"), there / "out")
    return there / "out"


@pytest.mark.parametrize(
    ("frequency", "more", "word"),
    [
        ("h", ", calendar: true, frequency: D, resample: mean", "resample"),
        ("B", ", calendar: true, frequency: 2B", "2B"),
    ],
)
def test_what_the_program_cannot_read_is_refused(
    frequency: str, more: str, word: str, tmp_path: Path
) -> None:
    text = table(frequency, "a", 2000)
    if word == "2B":
        lines = text.splitlines()
        text = "\n".join([lines[0], *lines[1::2]]) + "\n"
    run = run_of(tmp_path / "toy", text, more)
    said = refused(weft("export", run, "--to", "onnx", "--output", tmp_path / "out"))
    assert word in said and "weft serve" in said and not (tmp_path / "out").exists()


LINES = ["1 2 3 " * 5, "", "0.5, nan, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12.25, nan", "-3 " * 40]


def hourly(folder: Path, forecaster: str, head: str = "point", base: str = "none") -> Path:
    return run_of(folder, table("h", "load", 400), "", forecaster, head, base, horizon=4)


@pytest.mark.parametrize(
    ("forecaster", "head", "base"),
    [
        (RECURRENT, "normal", "none"),
        ("{use: linear}", "quantile", "linear"),
        ("{use: segments, segment: 4, hidden: 9}", "student", "none"),
    ],
)
def test_a_forecaster(forecaster: str, head: str, base: str, tmp_path: Path) -> None:
    run = hourly(tmp_path / "toy", forecaster, head, base)
    exported(run, tmp_path / "out")
    found = run_program(tmp_path / "out", "".join(f"{line}\n" for line in LINES))
    model = package.load(run)
    for line, answer in zip(LINES, found, strict=True):
        values = [float(one) for one in line.replace(",", " ").split()]
        ours = model.predict(values) if values else []
        assert np.allclose(ours, np.array(answer.split(), np.float64), rtol=1e-4, atol=1e-4), (line, answer)


def test_too_few_values_do_not_stop_the_others(tmp_path: Path) -> None:
    exported(hourly(tmp_path / "toy", "{use: linear}"), tmp_path / "out")
    done = answers(tmp_path / "out", "1 2 3\n1 x\n" + "1 " * 12 + "\n")
    assert done.returncode == 3 and [len(one.split()) for one in done.stdout.splitlines()] == [0, 0, 4]
    assert "line 1: expected at least 12 rows, got 3" in done.stderr and "line 2: " in done.stderr
