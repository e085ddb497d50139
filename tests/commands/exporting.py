"""Exports a run to ONNX, and runs the program that is written, without Weft and torch."""

import re
import shlex
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from tests.commands.shell import Answer, weft

WITHOUT = "import sys; sys.modules['weft'] = sys.modules['torch'] = None; import runpy, sys; "


def exported(run: Path, output: Path, *options: str) -> Answer:
    answer = weft("export", run, "--to", "onnx", "--output", output, *options, code=0)
    assert answer.lines[-1] == f"next: python {shlex.quote(str(output / 'weft_onnx.py'))} --help"
    return answer


def run_program(folder: Path, text: str, *options: str) -> list[str]:
    """The lines that the program writes for a text."""
    done = answers(folder, text, *options, without=())
    assert done.returncode == 0, done.stderr
    return done.stdout.removesuffix("\n").split("\n")


def run_translator(folder: Path, text: str, *options: str) -> list[str | None]:
    """Like `run_program`, with None for each answer of which the program says what it lacks of its text."""
    done = answers(folder, text, *options, without=())
    assert done.returncode == 0, done.stderr
    lines: list[str | None] = [*done.stdout.removesuffix("\n").split("\n")]
    for number in re.findall(r"^line (\d+): the answer (?:lacks|has) ", done.stderr, re.MULTILINE):
        lines[int(number) - 1] = None
    return lines


def same(ours: Sequence[str], theirs: Sequence[str | None]) -> bool:
    """Whether a program answers as `weft predict`, or says what an answer lacks, which Weft puts into it."""
    pairs = list(zip(ours, theirs, strict=True))
    return all(b is None or a == b for a, b in pairs) and 2 * theirs.count(None) < len(pairs)


def answers(
    folder: Path, names: str, *options: str, without: Sequence[str] = ("tokenizers",)
) -> "subprocess.CompletedProcess[str]":
    """The program in a process of its own, which can import neither Weft, torch nor these modules."""
    program = str(folder / "weft_onnx.py")
    call = "".join(f"sys.modules[{name!r}] = None; " for name in without)
    call += f"sys.argv[1:] = {list(options)!r}; "
    call += f"runpy.run_path({program!r}, run_name='__main__')"
    line = [sys.executable, "-c", WITHOUT + call]
    done = subprocess.run(line, input=names.encode(), capture_output=True, check=False, cwd="/")
    out, err = done.stdout.decode(), done.stderr.decode()  # text=True would change "\r"
    return subprocess.CompletedProcess(line, done.returncode, out, err)


def odd_pictures(folder: Path) -> list[Path]:
    """Pictures of other modes, sizes and formats, one in a .zip."""
    folder.mkdir()
    draw = np.random.default_rng(3)
    noise = Image.fromarray(draw.integers(0, 256, (31, 17, 3), dtype=np.uint8))
    noise.save(folder / "photo.JPG")
    noise.convert("L").save(folder / "grey.png")
    noise.convert("P").save(folder / "palette.bmp.png")
    noise.resize((12, 12)).save(folder / "same size.ppm")
    Image.fromarray(draw.integers(0, 256, (12, 13, 4), dtype=np.uint8)).save(folder / "see-through.png")
    Image.fromarray(draw.integers(0, 2**16, (9, 40), dtype=np.uint16)).save(folder / "deep.png")
    with zipfile.ZipFile(folder / "kept.zip", "w") as kept:
        kept.write(folder / "photo.JPG", "in/photo.jpg")
    return [*sorted(folder.glob("*.*g")), folder / "same size.ppm", folder / "kept.zip" / "in" / "photo.jpg"]
