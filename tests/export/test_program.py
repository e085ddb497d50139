"""The program of an exported folder, as someone without Weft types it: files in and out, on any system."""

import ast
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("onnx", reason="pip install -e .[export]")

import numpy as np
import onnx
from PIL import Image

from weft.export.programs import assemble
from weft.export.programs.main import inputs, texts_of
from weft.export.programs.picture_files import picture
from weft.export.programs.writers import repeated

ABOUT = {"kind": "forecaster", "lookback": 3, "horizon": 3, "names": ["é"], "mean": [0.0], "std": [1.0]}


def exported(folder: Path) -> Path:
    """A forecaster that says the last three numbers again."""
    make = onnx.helper
    given = make.make_tensor_value_info("values", onnx.TensorProto.FLOAT, [1, 3])
    found = make.make_tensor_value_info("best", onnx.TensorProto.FLOAT, [1, 3])
    graph = make.make_graph([make.make_node("Identity", ["values"], ["best"])], "again", [given], [found])
    model = make.make_model(graph, opset_imports=[make.make_opsetid("", 18)], ir_version=10)
    onnx.save(model, folder / "forecast_values.onnx")
    (folder / "weft.json").write_text(json.dumps(ABOUT))
    (folder / "weft_onnx.py").write_text(assemble("series"), "utf-8")
    return folder / "weft_onnx.py"


def run(program: Path, *words: object, stdin: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
    """In a system whose encoding is not UTF-8."""
    system = {**os.environ, "PYTHONUTF8": "0", "PYTHONIOENCODING": "cp1252", "LC_ALL": "C"}
    line = [sys.executable, str(program), *map(str, words)]
    return subprocess.run(line, input=stdin, env=system, capture_output=True, check=False)


def test_a_file_is_read_and_another_written(tmp_path: Path) -> None:
    program, given, out = exported(tmp_path), tmp_path / "input.txt", tmp_path / "answers.txt"
    given.write_bytes(b"\xef\xbb\xbf1 2 3 4\r\n\r\n5,6,7\r\n")
    done = run(program, given, "--output", out)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert out.read_bytes() == b"2 3 4\n\n5 6 7\n"
    assert run(program, stdin=b"1 2 3\n").stdout.splitlines() == [b"1 2 3"]


def test_what_is_wrong_is_a_sentence(tmp_path: Path) -> None:
    program = exported(tmp_path)
    missing = run(program, tmp_path / "none.txt")
    assert missing.returncode == 2 and b"none.txt: No such file or directory" in missing.stderr
    short = run(program, stdin=b"1 2\n1 2 3\n")
    assert short.returncode == 3 and short.stdout.splitlines() == [b"", b"1 2 3"]
    assert b"line 1: expected at least 3 rows" in short.stderr


def test_each_program_defines_a_name_once_and_needs_no_weft() -> None:
    for part in ("captions", "contexts", "continuing", "gaps", "labels", "pictures", "recordings", "tables"):
        tree = ast.parse(assemble(part))
        found = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
        found += [ast.unparse(node.targets[0]) for node in tree.body if isinstance(node, ast.Assign)]
        assert len(found) == len(set(found)), part
        heads = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        assert not any((node.module or "weft").startswith("weft") for node in heads), part


def test_a_picture_whose_0_is_white_is_read_so(tmp_path: Path) -> None:
    Image.fromarray(np.array([[0, 257, 65535]], np.uint16)).save(tmp_path / "a.tif")
    tag = b"\x06\x01\x03\x00\x01\x00\x00\x00"  # PhotometricInterpretation, one short
    whole = (tmp_path / "a.tif").read_bytes()
    assert whole.count(tag + b"\1\0") == 1
    (tmp_path / "a.tif").write_bytes(whole.replace(tag + b"\1\0", tag + b"\0\0"))
    assert picture(tmp_path / "a.tif", None)[0, :, 0].tolist() == [255, 254, 0]


def test_tokens_that_would_repeat_an_n_gram() -> None:
    assert repeated([1, 2, 3, 1, 2], 3) == [3]
    assert repeated([1, 2, 1, 3, 1], 2) == [2, 3]
    assert repeated([4, 5], 1) == [4, 5]
    assert repeated([1, 2], 3) == []


COLUMNS = ["Subject", "Body"]


@pytest.mark.parametrize(
    ("table", "found"),
    [
        ('id,Subject,Body\n1,a,"b\nc"\n2,"d ""e"", f",\n', [(2, "a ␞ b\nc"), (4, 'd "e", f ␞ ')]),
        ("body;id;SUBJECT\n\nb;1;a\n;2;\\N\n", [(3, "a ␞ b"), (4, "")]),
        ("Body\tSubject\nb, c\ta\n", [(2, "a ␞ b, c")]),
        ("Subject,Body\na,b,,\n", [(2, "a ␞ b")]),
    ],
)
def test_the_columns_of_a_table_are_one_text(table: str, found: list[tuple[int, str]]) -> None:
    assert list(texts_of(table, COLUMNS, " ␞ ")) == found


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("Subject,Text\na,b\n", "expected one column 'Body' in the first line, got Subject,Text; name it so"),
        ('Subject\tBody\na\tb"\n', "save the table as .csv"),
        ('Subject,Body\na,b\n"a"x,b\n', "line 3: .* write a quote inside a quoted cell twice"),
    ],
)
def test_what_is_wrong_with_a_table_is_a_sentence(table: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        list(texts_of(table, COLUMNS, " ␞ "))
    rows = list(texts_of("Subject,Body\na\nb,c\n", COLUMNS, " ␞ "))
    assert str(rows[0][1]) == "expected 2 columns, got 1; correct the line" and rows[1] == (3, "b ␞ c")


def test_a_table_is_known_by_its_name_or_its_header(tmp_path: Path) -> None:
    about = {"columns": COLUMNS, "border": " ␞ "}
    table = "Subject,Body\na,b\n"
    assert list(inputs(io.StringIO(table), "x.CSV", about)) == [(2, "a ␞ b")]
    assert list(inputs(io.StringIO(table), None, about)) == [(2, "a ␞ b")]
    assert list(inputs(io.StringIO("a subject, b\nc\n"), None, about)) == [(1, "a subject, b"), (2, "c")]
    assert list(inputs(io.StringIO(table), "x.txt", about)) == [(1, "Subject,Body"), (2, "a,b")]
    with pytest.raises(ValueError, match=r"got \.xlsx; save it as \.csv"):
        list(inputs(io.StringIO("PK"), "x.xlsx", about))


def test_a_reader_that_leaves_ends_the_program_quietly(tmp_path: Path) -> None:
    program = exported(tmp_path)
    line, pipe = [sys.executable, str(program)], subprocess.PIPE
    with subprocess.Popen(line, stdin=pipe, stdout=pipe, stderr=pipe) as done:
        assert done.stdin and done.stdout and done.stderr
        done.stdout.close()
        done.stdin.write(b"1 2 3\n")
        done.stdin.close()
        assert (done.stderr.read(), done.wait()) == (b"", 141)
