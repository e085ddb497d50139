"""ONNX graphs, with a Python program that needs only onnxruntime, NumPy and tokenizers."""

import importlib.util
import shlex
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from weft.errors import ConfigError, ExportError
from weft.export.format import Format
from weft.export.network import check_search
from weft.export.programs import assemble
from weft.run import LoadedRun
from weft.store import files
from weft.tasks.abilities import HasVectors
from weft.tasks.export import ModelExport
from weft.tasks.predictor import Answer, Place

COMPARED = 20
TIMED = 50  # inputs; each model answers them ROUNDS times, in turns
ROUNDS = 3
FAR = 0.1  # share of the largest number by which 8-bit weights may change a number of an answer
PROGRAM = "weft_onnx.py"

Model = Callable[..., Any]


class Onnx(Format):
    """Graphs for onnxruntime: `start` and `step` of a model that writes, one graph of any other."""

    about = "graphs for onnxruntime, and a program that runs them without Weft"
    packages = ("onnx", "onnxscript", "onnxruntime")

    def check(self, opened: LoadedRun, int8: bool | None) -> None:
        if opened.pipeline.model_export(opened.model) is None:
            raise without_graphs("onnx", opened)
        check_search(opened, "onnx")

    def write(self, opened: LoadedRun, folder: Path, int8: bool | None) -> Sequence[str]:
        from weft.export.quantise import quantise, share, stored

        form = opened.pipeline.model_export(opened.model)
        assert form is not None
        paths = [folder / f"{graph.name}.onnx" for graph in form.graphs]
        worst = write_graphs(form, folder)
        lines = [f"outputs of the graphs: at most {worst:.1e} from Weft's"]
        if int8:
            lines.append(compared(opened, form, folder))
            whole, before = program(folder), stored(paths)
            for path in paths:
                quantise(path)
        after = stored(paths)
        if len(paths) > 1:
            share(paths, folder / "weights.bin")
        if int8:
            lines += beside(form, whole, program(folder), before, after)
        else:
            lines.append(compared(opened, form, folder))
        names = [*paths, *folder.glob("weights.bin")]
        lines.append("; ".join(f"{path.name} {path.stat().st_size:,} bytes" for path in names))
        _card(opened, folder, form, lines)
        return lines

    def hints(self, output: Path) -> Sequence[str]:
        return [f"next: python {shlex.quote(str(output / PROGRAM))} --help"]


def without_graphs(to: str, opened: LoadedRun) -> ConfigError:
    """The error for a run of a task that has no graphs; it says what to type instead."""
    run = shlex.quote(str(opened.path))
    instead = f"use weft serve {run}"
    if isinstance(opened.pipeline.predictor(opened.model), HasVectors):
        instead = (
            f"for its word vectors type weft export {run} --vectors vectors.txt, for a page weft serve {run}"
        )
    return ConfigError(f"--to {to}: a model of the task {opened.name} cannot be exported; {instead}")


def write_graphs(form: ModelExport, folder: Path) -> float:
    """Write the graphs, the files and the program; the largest difference of an output from Weft's."""
    from weft.export.graphs import write_graph

    worst = max(write_graph(graph, folder / f"{graph.name}.onnx") for graph in form.graphs)
    for name, content in form.files.items():
        files.write(folder / name, content)
    files.write(folder / "weft.json", files.to_json(dict(form.settings)))
    files.write(folder / PROGRAM, assemble(form.program).encode())
    return worst


def compared(opened: LoadedRun, form: ModelExport, folder: Path, *, int8: bool = False) -> str:
    """Answer a few inputs with the program and with Weft; a line that says how many answers are equal.

    With 8-bit weights, answers that are numbers differ a little: the line says by how much.
    """
    inputs = form.examples(COMPARED)
    kind = opened.task.prediction_settings
    search = {name: value for name, value in form.options.items() if name in kind.asks}
    asked: dict[str, Any] = {name: form.options[name] for name in form.options.keys() - search.keys()}
    predictor = opened.pipeline.predictor(opened.model, kind(search=search, **asked))
    parsed = [predictor.parse(one, Place("input", n)) for n, one in enumerate(inputs, 1)]
    found = list(zip(inputs, predictor.attempts(parsed), strict=True))
    answered = [(one, form.shown(answer)) for one, answer in found if isinstance(answer, Answer)]
    inputs, ours = [one for one, _ in answered], [text for _, text in answered]
    model = program(folder)
    theirs = [model(one, **form.options) for one in inputs]
    if int8 and form.distance is not None:
        far = max(map(form.distance, ours, theirs))
        if far > FAR:
            raise ExportError(
                f"with 8-bit weights the answers differ from Weft's by up to {_percent(far)}, "
                f"expected at most {_percent(FAR)}; use --float32"
            )
        return f"answers differ from Weft's by at most {_percent(far)}"
    equal = sum(map(form.same, ours, theirs))
    if 2 * equal < len(ours):
        differs = next(n for n, (a, b) in enumerate(zip(ours, theirs, strict=True)) if a != b)
        raise ExportError(
            f"only {equal} of {len(ours)} answers equal Weft's; for {str(inputs[differs])[:60]!r} Weft "
            f"answers {ours[differs][:60]!r}, the export {theirs[differs][:60]!r}"
            + ("; use --float32" if int8 else "")
        )
    return f"answers equal to Weft's: {equal} of {len(ours)}"


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"


def beside(form: ModelExport, whole: Model, small: Model, before: int, after: int) -> list[str]:
    """Size, speed and score of 8-bit weights beside float32."""
    inputs, score = form.scored() if form.scored is not None else (form.examples(TIMED), None)
    seconds = {whole: list[float](), small: list[float]()}
    for _ in range(ROUNDS):
        for model, taken in seconds.items():
            begun = time.process_time()
            for one in inputs[:TIMED]:
                model(one, **form.options)
            taken.append(time.process_time() - begun)
    ratio = statistics.median(a / b for a, b in zip(seconds[small], seconds[whole], strict=True))
    answers = {model: [model(one, **form.options) for one in inputs] for model in seconds}
    lines = [f"8-bit weights: {after:,} bytes, {after / before:.2f} of float32; {ratio:.2f} of its CPU time"]
    if form.distance is not None:
        far = max(map(form.distance, answers[whole], answers[small]))
        lines.append(f"answers differ from float32's by at most {_percent(far)}")
    else:
        equal = sum(map(form.same, answers[whole], answers[small]))
        lines.append(f"answers equal to float32's: {equal} of {len(inputs)}")
    if score is not None:
        (name, first), (_, second) = score(answers[whole]), score(answers[small])
        lines.append(f"{name} of {len(inputs)} validation inputs: {second:.2f}, in float32 {first:.2f}")
    return lines


def program(folder: Path) -> Model:
    """The exported model, loaded by the program in its folder."""
    spec = importlib.util.spec_from_file_location("weft_onnx", folder / PROGRAM)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        spec.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = before
    loaded: Model = module.load(folder)
    return loaded


USED = {
    "pictures": ("one name of a picture per line", ["Pillow"]),
    "captions": ("one name of a picture per line", ["Pillow"]),
    "recordings": ("one name of a recording per line", ["tokenizers", "soundfile"]),
    "series": ("the numbers of one series per line, oldest first", []),
    "tables": ("a table (CSV), oldest row first", ["tzdata"]),
    "gaps": ("one text per line, with [MASK] where a word is missing", ["tokenizers"]),
}
"""By part of the program: what its input file holds, and what it needs beside onnxruntime and NumPy."""

README = """\
# {name}, without Weft

{about}. These files need Python 3.11 or newer, but neither Weft nor PyTorch. Open a terminal in this
folder (Windows: right-click the folder, *Open in Terminal*; macOS: right-click, *Services*, *New Terminal at
Folder*). Install a few packages once.

On Windows:

    py -m venv venv
    venv\\Scripts\\python -m pip install {packages}

On macOS and Linux:

    python3 -m venv venv
    venv/bin/python -m pip install {packages}

Write a file `input.txt` (UTF-8) that holds {given}. Then, on Windows:

    venv\\Scripts\\python {program} input.txt --output answers.txt

On macOS and Linux:

    venv/bin/python {program} input.txt --output answers.txt

`--help` lists the options. In Python: `from weft_onnx import load; print(load(".")("a line of input"))`.
`weft.json` and `{program}` show other languages how to use the graphs.

## Measured at the export

{measured}
"""


def named_columns(names: Sequence[str]) -> str:
    """The columns of a table, for a sentence."""
    return f"column{'s' * (len(names) > 1)} {' and '.join(f'`{name}`' for name in names)}"


def _card(opened: LoadedRun, folder: Path, form: ModelExport, lines: Sequence[str]) -> None:
    """How to use the files without Weft, what was measured, and the run's model card."""
    given, more = USED.get(form.program, ("one text per line", ["tokenizers"]))
    if isinstance(columns := form.settings.get("columns"), list) and form.program not in USED and columns:
        given += "; or a table `input.csv` with the " + named_columns([str(one) for one in columns])
        if len(columns) > 1:
            given += (
                f" (in a line, and in Python, they are one text with `{form.settings['border']}` between)"
            )
    if (folder / "tokenizer.json").is_file() and "tokenizers" not in more:
        more = ["tokenizers", *more]
    text = README.format(
        name=opened.path.name,
        about=f"A model of the task {opened.name}",
        packages=" ".join(["onnxruntime", "numpy", *more]),
        given=given,
        program=PROGRAM,
        measured="\n".join(f"- {line}" for line in lines),
    )
    card = opened.path / "README.md"
    if card.is_file():
        text += f"\n---\n\n{card.read_text('utf-8')}"
    files.write(folder / "README.md", text.encode())
