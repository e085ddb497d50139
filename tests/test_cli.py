"""The command line answers a user's mistake with one error message and exit code 2, never a traceback.

Read next: test_house.py, which checks that it starts without torch.
"""

import os
import subprocess
import sys
from types import ModuleType

import click
import pytest
import torch

from weft import cli
from weft.commands.options import EARLIER
from weft.errors import DataError


@pytest.fixture
def fails(monkeypatch: pytest.MonkeyPatch):
    """A command `fail` that raises the given error; returns its exit code and output."""

    def run(trouble: BaseException, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
        @click.command
        def command() -> None:
            raise trouble

        module = ModuleType("weft.commands.fail")
        module.command = command  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "weft.commands.fail", module)
        monkeypatch.setitem(cli.COMMANDS, "fail", "Fails.")
        return call(["fail"], capsys)

    return run


def call(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    with pytest.raises(SystemExit) as leave:
        cli.main(arguments)
    return int(leave.value.code or 0), capsys.readouterr().err


@pytest.mark.parametrize(
    ("trouble", "code", "said"),
    [
        (DataError("train.en:3: empty; remove the line"), 2, "weft: train.en:3: empty; remove the line\n"),
        (PermissionError(13, "Permission denied", "runs/x"), 2, "weft: runs/x: Permission denied\n"),
        (OSError(28, "No space left on device"), 2, "weft: No space left on device\n"),
        (KeyboardInterrupt(), 130, "\nweft: stopped\n"),
    ],
    ids=["data", "permission", "full disk", "ctrl-c"],
)
def test_trouble_is_one_sentence_and_a_code(
    fails, capsys, trouble: BaseException, code: int, said: str
) -> None:
    assert fails(trouble, capsys) == (code, said)


def test_the_traceback_is_shown_on_request(fails, capsys, monkeypatch) -> None:
    monkeypatch.setenv("WEFT_TRACEBACK", "1")
    code, said = fails(DataError("no"), capsys)
    assert code == 2
    assert "Traceback" in said and said.endswith("weft: no\n")


def test_a_gpu_without_enough_memory_is_one_sentence(fails, capsys) -> None:
    trouble = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.\nGPU 0 has")
    code, said = fails(trouble, capsys)
    assert code == 2 and said.count("\n") == 1
    assert "batches smaller" in said and "Tried to allocate 2.00 GiB" in said


def test_an_error_of_weft_itself_is_not_hidden(fails, capsys) -> None:
    with pytest.raises(ZeroDivisionError):
        fails(ZeroDivisionError(), capsys)


def test_an_unknown_command_names_the_nearest(capsys) -> None:
    said = "weft: unknown command 'trian'; did you mean 'train'? (see weft --help)\n"
    assert call(["trian"], capsys) == (2, said)


def test_an_unknown_option_is_one_sentence(capsys) -> None:
    code, said = call(["--vresion"], capsys)
    assert code == 2
    assert said.startswith("weft: No such option") and said.count("\n") == 1


def test_a_shortened_earlier_option_is_told_todays_name(capsys) -> None:
    code, said = call(["compare", "--out", "x"], capsys)
    assert code == 2 and "Did you mean '--folder'?" in said


def test_no_arguments_show_the_help(capsys) -> None:
    with pytest.raises(SystemExit) as leave:
        cli.main([])
    assert not leave.value.code
    shown = capsys.readouterr().out
    assert all(name in shown for name in cli.COMMANDS)


def test_threads_wait_without_spinning(monkeypatch, capsys) -> None:
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    call(["--version"], capsys)
    assert os.environ["OMP_WAIT_POLICY"] == "passive"


def test_a_reader_that_leaves_ends_it_quietly() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "weft", "--help"],
        stdout=writing,
        env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"},
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


def test_an_exit_of_other_code_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def leave(**_: object) -> None:
        print("said before")
        raise SystemExit(7)

    monkeypatch.setattr(cli.group, "main", leave)
    with pytest.raises(SystemExit) as found:
        cli.main([])
    assert found.value.code == 7


@pytest.mark.parametrize(
    ("lacking", "extra"),
    [
        ("starlette.exceptions", "serve"),
        ("onnx", "export"),
        ("matplotlib", "pictures"),
        ("PIL.Image", "pictures"),
        ("soundfile", "sound"),
        ("sentencepiece", "pieces"),
        ("google.protobuf", "pieces"),
    ],
)
def test_a_missing_library_of_an_extra_is_named_with_what_to_install(
    lacking: str, extra: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def absent(**asked: object) -> None:
        raise ModuleNotFoundError(f"No module named {lacking!r}", name=lacking)

    monkeypatch.setattr(cli.group, "main", absent)
    assert cli._run(["export"]) == 2
    said = capsys.readouterr().err
    assert f"needs {lacking.partition('.')[0]};" in said and f"pip install 'weft-seq[{extra}]'" in said


def test_every_option_is_read_by_its_earlier_name_too(capsys) -> None:
    for name, earlier in EARLIER.items():
        command = cli.group.get_command(click.Context(cli.group), name)
        assert command is not None
        for old, new in earlier.items():
            parser = command.make_parser(click.Context(command))
            given = [parser.parse_args([*words, "x"])[0] for words in ([old, "7"], [f"{old}=7"], [new, "7"])]
            assert given[0] == given[1] == given[2] and "7" in given[0].values()
            assert capsys.readouterr().err == f"{old} is now {new}\n" * 2


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["train", "x.yaml", "--set"], "'--set'; write SECTION.KEY=VALUE without it (see weft train --help)"),
        (["predict", "x", "--set"], "requires an argument, KEY=VALUE (see weft predict --help)"),
        (["data", "check", "--text"], "requires an argument, COLUMN (see weft data check --help)"),
    ],
)
def test_an_option_without_its_value_is_told_what_it_takes(capsys, words: list[str], sentence: str) -> None:
    code, said = call(words, capsys)
    assert code == 2 and said.rstrip().endswith(sentence)
