"""One input, one answer: a file, `<`, a pipe, Python, /predict and an ONNX program answer or refuse it alike.

A diagonal runs always: every task in two ways, some in all of them. The whole table is slow;
`pytest tests/laws/test_inputs.py -m slow -s` prints it. Read next: ../tasks/test_frames.py, one and many.
"""

import atexit
import base64
import json
import math
import os
import re
import shutil
import tempfile
import warnings
from collections.abc import Sequence
from contextlib import ExitStack
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.commands.shell import weft
from tests.export import pages
from tests.serve.client import post
from tests.shared import shared_run
from weft import load
from weft.errors import DataError, ShapeError, WeftError
from weft.tasks.answer_list import missing
from weft.tasks.predictor import Answer, NoAnswer, Place, answered

ORDINARY = {
    "translate": "alpha beta gamma",
    "summarise": "alpha beta . It is gamma here .",
    "multilingual": "one two three",
    "language": "the cat",
    "classify": "a fine film",
    "several labels": "goal it was song today",
    "tag": "telo beding .",
    "embeddings": "apple",
    "draw": "a red circle at the top",
    "elmo": "bank\tgo to the bank now\tthe bank of the lake",
    "masked": "the [MASK] can purr",
    "memory": "0.31 0.7* 0.05 0.9*",
}
"""A text for each task that reads texts."""

FILES = {"caption": ".png", "images": ".png", "speech": ".wav"}
"""The files of each task that reads files."""

INPUTS: dict[str, Any] = {
    "empty": "",
    "blank": "  ",
    "None": None,
    "NaN": math.nan,
    "a number": 7.5,
    "very long": "one " * 400,
    "unknown characters": "Ωmega žółć 京",
    "digits": "1234 5",
    "emoji": "🙂 🙂",
    "columns": "switch\tlights\ton",
    "as many words": "switch lights on",
    "one word": "stop",
}

Found = Answer | str
"""An answer, or why there is none."""


def why(error: object) -> str:
    """A refusal without the place of its input."""
    place = r"(\S+:\d+|inputs?(\[\d+\])?|standard input(:\d+)?|the series|\S+\.(png|wav|txt)): "
    return re.sub(f"^({place})+", "", str(error))


@cache
def run_of(task: str) -> Path:
    """The run of a task; a copy that does not sample, as answers would vary, or has thresholds."""
    run = shared_run(task)
    if task not in ("language", "draw", "several labels"):
        return run
    copy = Path(tempfile.mkdtemp()) / "run"
    atexit.register(shutil.rmtree, copy.parent, ignore_errors=True)
    shutil.copytree(run, copy)
    if task == "several labels":
        assert weft("evaluate", copy, "--calibrate").code == 0
        return copy
    recipe = (copy / "recipe.yaml").read_text("utf-8")
    assert "search: sample" in recipe
    (copy / "recipe.yaml").write_text(recipe.replace("search: sample", "search: greedy"), "utf-8")
    return copy


@cache
def predictor(task: str) -> Any:
    found: Any = load(run_of(task))
    return found.to("bb") if task == "multilingual" else found


@cache
def served(task: str) -> Any:
    from weft.serve.served import ServedRun

    return ServedRun(run_of(task), task, "cpu", ())


def given_to(task: str) -> dict[str, Any]:
    """Inputs by their kind."""
    if task in ORDINARY:
        return {"ordinary": ORDINARY[task], **INPUTS}
    if task == "forecast":
        rows = [float(n % 5) for n in range(20)]
        return {"ordinary": rows, "NaN": [*rows[:-3], math.nan, *rows[-2:]], "one word": rows[:1]}
    files = sorted((shared_run(task).parent / "toy").rglob(f"*{FILES[task]}"))[:2]
    return {"ordinary": str(files[0]), "digits": str(files[1]), "None": None, "a number": 7.5}


def alone(task: str, raw: Any) -> Found:
    """What `parse` and `answers` give."""
    model = predictor(task).fresh()
    try:
        (found,) = model.attempts([model.parse(raw, Place("input"))])
    except (DataError, ShapeError) as error:
        return why(error)
    return found if isinstance(found, Answer) else why(found)


def lines_of(task: str, kinds: Sequence[str]) -> dict[str, str]:
    """The inputs that a file of lines can have; the first one is no columns."""
    given = given_to(task)
    return {kind: given[kind] for kind in ("ordinary", *kinds) if isinstance(given.get(kind), str)}


def of_source(task: str, kinds: Sequence[str], source: Any) -> dict[str, Any]:
    """The answers to the lines of a source, by the kind of input; a blank line is no sentence."""
    model, lines = predictor(task).fresh(), lines_of(task, kinds)
    given = list(model.each_input(source))
    by_line = dict(zip((one.place.line for one in given), answered(model, given), strict=True))
    return {kind: by_line.get(n, "no sentence") for n, kind in enumerate(lines, 1)}


def by_file(task: str, kinds: Sequence[str], folder: Path) -> dict[str, Any]:
    path = folder / "in.txt"
    path.write_text("".join(f"{line}\n" for line in lines_of(task, kinds).values()), "utf-8")
    return of_source(task, kinds, path)


def by_redirect(task: str, kinds: Sequence[str], folder: Path) -> dict[str, Any]:
    by_file(task, kinds, folder)
    with (folder / "in.txt").open("rb") as stream:
        return of_source(task, kinds, stream)


def by_pipe(task: str, kinds: Sequence[str], folder: Path) -> dict[str, Any]:
    read_end, write_end = os.pipe()
    with os.fdopen(read_end, "rb") as pipe, os.fdopen(write_end, "wb") as other:
        other.write("".join(f"{line}\n" for line in lines_of(task, kinds).values()).encode())
        other.close()
        return of_source(task, kinds, pipe)


def table_of(task: str) -> pd.DataFrame:
    """A table that a task reads; files are named as in the folder of the toy."""
    if task in FILES:
        files = sorted((shared_run(task).parent / "toy").rglob(f"*{FILES[task]}"))[:2]
        text = "caption" if task == "caption" else "transcript"
        return pd.DataFrame({"file": [str(one) for one in files], text: "la", "id": 7})
    if task == "forecast":
        return pd.read_csv(shared_run(task).parent / "toy" / "x.csv").head(40)
    texts = [ORDINARY[task], 'one, "two"; three', "stop"]
    return pd.DataFrame({"id": 7, **dict.fromkeys(predictor(task).columns, texts)})


@pytest.mark.parametrize("task", ["translate", "multilingual", "classify", "caption", "speech", "forecast"])
@pytest.mark.parametrize("ending", ["csv", "jsonl", pytest.param("tsv", marks=pytest.mark.slow)])
def test_a_table_by_file_and_by_pipe(task: str, ending: str, tmp_path: Path) -> None:
    table, path = table_of(task), tmp_path / f"x.{ending}"
    if ending == "jsonl":
        table.to_json(path, orient="records", lines=True)
    else:
        table.to_csv(path, sep="\t" if ending == "tsv" else ",", index=False)
    model, found = predictor(task), list[list[Any]]()
    for source in (path, BytesIO(path.read_bytes())):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            answers = answered(model.fresh(), model.each_input(source))  # type: ignore[arg-type]
            found.append([one.json() or why(one.wrong) for one in answers])
        assert any(f"read as a .{ending} table" in str(one.message) for one in said) == (source is not path)
    assert close(*found) and len(found[0]) >= 2


def by_one(task: str, kinds: Sequence[str], folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for kind in kinds:
        try:
            found[kind] = [predictor(task).predict(given_to(task)[kind])]
        except (DataError, ShapeError) as error:
            found[kind] = why(error)
    return found


def listed(task: str, kinds: Sequence[str], given: Any) -> dict[str, Any]:
    answers = predictor(task).predict(given)
    assert len(answers) == len(kinds) == len(answers.to_frame())
    wrong = {n: why(one) for n, one in answers.wrong.items()}
    return {kind: wrong.get(n, [one]) for n, (kind, one) in enumerate(zip(kinds, answers, strict=True))}


def by_many(task: str, kinds: Sequence[str], folder: Path) -> dict[str, Any]:
    return listed(task, kinds, [given_to(task)[kind] for kind in kinds])


def by_series(task: str, kinds: Sequence[str], folder: Path) -> dict[str, Any]:
    return listed(task, kinds, pd.Series([given_to(task)[kind] for kind in kinds], dtype=object))


def by_frame(task: str, kinds: Sequence[str], folder: Path) -> dict[str, Any]:
    name = (*predictor(task).columns, "text")[0]
    cells = pd.Series([given_to(task)[kind] for kind in kinds], dtype=object)
    return listed(
        task, kinds, pd.DataFrame({name: cells, "other": 7} if predictor(task).columns else {name: cells})
    )


def by_http(task: str, kinds: Sequence[str], folder: Path) -> dict[str, Any]:
    from weft.serve.limits import Refusal, ServerLimits
    from weft.serve.predicting import inputs_of, predicting

    run, limits, found = served(task), ServerLimits(), dict[str, Any]()
    for kind in kinds:
        raw = given_to(task)[kind]
        raw = (
            base64.b64encode(Path(raw).read_bytes()).decode()
            if task in FILES and isinstance(raw, str)
            else raw
        )
        try:
            (answer,) = predicting(run, limits)(inputs_of(run, raw, limits), lambda: False)
            found[kind] = {"json": answer}
        except (Refusal, WeftError) as error:
            found[kind] = why(error.sentence if isinstance(error, Refusal) else error)
    return found


@cache
def server(task: str) -> str:
    """The address of a server of a run, until the tests end."""
    from tests.serve.conftest import listening
    from weft.serve.app import Application
    from weft.serve.limits import ServerLimits

    found = ExitStack()
    atexit.register(found.close)
    return found.enter_context(listening(Application({task: served(task)}, ServerLimits())))


def by_server(task: str, kinds: Sequence[str], folder: Path) -> dict[str, Any]:
    found = dict[str, Any]()
    for kind in kinds:
        raw = given_to(task)[kind]
        if kind == "NaN" or (task in ELSEWHERE and kind in ("empty", "blank", "None", "a number")):
            continue  # JSON has none; those addresses have sentences of their own
        if task in FILES and isinstance(raw, str):
            raw = base64.b64encode(Path(raw).read_bytes()).decode()
        if task == "language":
            asked = {"model": task, "prompt": raw, "temperature": 0, "max_tokens": 200, "echo": True}
            reply = post(f"{server(task)}/v1/completions", asked)
            told = [one["text"] for one in reply.body.get("choices", ())]
        elif task in ELSEWHERE:
            target = "bb" if task == "multilingual" else "yy"
            reply = post(f"{server(task)}/translate", {"q": raw, "target": target})
            told = [reply.body.get("translatedText")]
        else:
            reply = post(f"{server(task)}/predict", {"run": task, "inputs": raw})
            told = reply.body.get("outputs", [])
        if reply.status == 200:
            found[kind] = {"text": told[0].strip()} if task in ELSEWHERE else {"json": told[0]}
        else:
            found[kind] = why(reply.body["error"])
    return found


def by_onnx(task: str, kinds: Sequence[str], folder: Path) -> dict[str, Any]:
    from tests.commands.exporting import exported
    from weft.export.formats.onnx import program

    exported(run_of(task), folder / "onnx")
    model, found = program(folder / "onnx"), dict[str, Any]()
    for kind in kinds:
        raw = given_to(task)[kind]
        if isinstance(raw, str | list):  # what a line can be
            try:
                text = model(raw)
            except ValueError as error:
                found[kind] = why(error)
                continue
            if task == "forecast":
                found[kind] = {"json": [float(one) for one in text.split()]}
            elif task == "elmo" and text.startswith("{"):  # vectors, whose last digit may differ
                found[kind] = {"json": json.loads(text)}
            elif not getattr(
                model, "note", ""
            ):  # it says what its answer lacks, which Weft puts into its own
                found[kind] = {"text": text} if text.strip() or task != "tag" else "no sentence"
    return found


def by_page(task: str, kinds: Sequence[str], folder: Path) -> dict[str, Any]:
    """What the program of the exported page answers, in Node."""
    given = {kind: given_to(task)[kind] for kind in kinds if isinstance(given_to(task)[kind], str)}
    page = folder / "page.html"
    assert weft("export", run_of(task), "--to", "web", "--output", page).code == 0
    answers = dict(zip(given, pages.answers(page, list(given.values()), folder), strict=True))
    if task == "tag":  # in a file a blank line ends a sentence
        return {kind: {"text": f"{one['text']}\n"} for kind, one in answers.items() if one["text"].strip()}
    whole = {kind: one for kind, one in answers.items() if not one.get("lacks")}
    return {kind: one["error"] if "error" in one else {"text": one["text"]} for kind, one in whole.items()}


WAYS = {
    "file": by_file, "<": by_redirect, "pipe": by_pipe, "one": by_one, "many": by_many, "Series": by_series,
    "DataFrame": by_frame, "/predict": by_http, "HTTP": by_server, "ONNX": by_onnx, "page": by_page,
}  # fmt: skip
TASKS = (*ORDINARY, *FILES, "forecast")
LINES = "file", "<", "pipe"
ELSEWHERE = {"translate", "multilingual", "language"}
"""Tasks that the server answers at another address."""

LIMITS = "expected a list of numbers", "expected pictures", "expected recordings"
"""What the server says of what no program but a client sends: JSON that is no such input."""


def close(ours: Any, theirs: Any) -> bool:
    """Whether two values are equal; numbers nearly so, as batches differ in rounding."""
    if isinstance(ours, dict):
        return ours.keys() >= theirs.keys() and all(close(ours[key], theirs[key]) for key in theirs)
    if isinstance(ours, list | tuple):
        return len(ours) == len(theirs) and all(map(close, ours, theirs))
    if isinstance(ours, np.ndarray):
        return bool(np.allclose(ours, theirs, atol=1e-5))
    return ours == theirs or (
        isinstance(ours, float) and math.isclose(ours, theirs, rel_tol=1e-3, abs_tol=1e-4)
    )


def agrees(task: str, way: str, raw: Any, ours: Found, theirs: Any) -> bool:
    """Whether a way gives the answer of `alone`, or refuses in the same words."""
    if theirs == "no sentence":
        return task == "tag" and isinstance(ours, str) and not raw.strip()
    if isinstance(theirs, NoAnswer):
        theirs = why(theirs.wrong)
    if missing(raw) and way in ("many", "Series", "DataFrame"):
        return isinstance(ours, str) and theirs == [None]
    if isinstance(ours, str) or isinstance(theirs, str):
        return ours == theirs or (
            isinstance(ours, str)
            and isinstance(theirs, str)
            and (way == "page" or (way in ("/predict", "HTTP") and theirs.startswith(LIMITS)))
        )  # the page refuses in its own words
    if isinstance(theirs, Answer):
        return close(ours.json(), theirs.json())
    if isinstance(theirs, list):
        return close(predictor(task).value(ours), theirs[0])
    return close(theirs["json"], ours.json()) if "json" in theirs else theirs["text"] == ours.text()


def offered(task: str, way: str) -> bool:
    if way in (*LINES, "Series", "DataFrame") and task == "forecast":  # tables, see ../tasks/test_frames.py
        return False
    if way == "ONNX":
        return task not in ("embeddings", "draw", "memory", "multilingual")  # the last asks for a language
    if way == "page":
        return pages.NODE is not None and task in ("translate", "summarise", "classify", "tag", "language")
    return way != "/predict" or task not in ELSEWHERE


def differing(task: str, way: str, kinds: Sequence[str], folder: Path) -> list[str]:
    """The inputs of which a way says something else."""
    known = given_to(task)
    kinds = [kind for kind in kinds if kind in known]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what answers lack is said
        found = WAYS[way](task, kinds, folder)
        ours = {kind: alone(task, known[kind]) for kind in found}
    wrong = [kind for kind in found if not agrees(task, way, known[kind], ours[kind], found[kind])]
    return [f"{task}, {way}, {kind}: {ours[kind]!r}, but {found[kind]!r}" for kind in wrong]


KINDS = ("ordinary", *INPUTS)


@pytest.mark.parametrize(("number", "task"), list(enumerate(TASKS)))
def test_every_task_and_every_way_at_least_once(number: int, task: str, tmp_path: Path) -> None:
    ways = [
        way for way in WAYS if way not in ("ONNX", "page") and offered(task, way)
    ]  # it takes seconds to write
    chosen = ways if task in ("classify", "tag") else {ways[(number + k) % len(ways)] for k in (0, 3)}
    assert [one for way in chosen for one in differing(task, way, KINDS, tmp_path)] == []


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_the_whole_table(task: str, tmp_path: Path) -> None:
    rows = {way: differing(task, way, KINDS, tmp_path) for way in WAYS if offered(task, way)}
    cells = [
        ("equal" if not rows[way] else f"{len(rows[way])} differ") if way in rows else "-" for way in WAYS
    ]
    print(f"\n| {task} | {' | '.join(cells)} |")
    assert [one for row in rows.values() for one in row] == []
