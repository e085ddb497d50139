"""Several processes of a command: what they may import, and which is the cause when they end."""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.commands.shell import weft
from weft.commands import launch

WEFT = Path(launch.__file__).parents[1]

END = "import os, time; time.sleep({}); os.kill(os.getpid(), {}) if {} else os._exit({})"


@pytest.mark.parametrize(
    ("codes", "seconds", "code", "said"),
    [
        ((launch.LOST, -9), (0.0, 0.0), 137, "process 1 of 2 ended (killed by signal 9)"),
        ((launch.LOST, 2), (0.0, 0.4), 2, "process 1 of 2 ended (exit code 2)"),  # the cause is heard later
        ((launch.LOST, 0), (0.0, 0.0), launch.LOST, "process 0 of 2 lost contact with the others"),
        ((-9, launch.LOST), (0.2, 0.0), 137, "process 0 was killed by signal 9"),
        ((0, 0), (0.0, 0.1), 0, ""),
        ((143, 143), (0.1, 0.0), 143, ""),
        ((0, 1), (0.0, 0.3), 0, ""),  # once the first has ended well, the others miss it
    ],
)
def test_the_cause_is_told_once(
    codes: tuple[int, int],
    seconds: tuple[float, float],
    code: int,
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    children = [
        subprocess.Popen([sys.executable, "-S", "-c", END.format(wait, -end, int(end < 0), end)])
        for end, wait in zip(codes, seconds, strict=True)
    ]
    errors = [tempfile.TemporaryFile() for _ in children]  # noqa: SIM115  closed below
    try:
        assert launch._watch(children, errors, True) == code
    finally:
        for child in children:
            child.kill()
            child.wait()
        for file in errors:
            file.close()
    assert capsys.readouterr().err == (f"weft: {said}; all were stopped\n" if said else "")


def imported() -> set[str]:
    """The first name of every module that Weft imports from elsewhere."""
    line = re.compile(r"^ *(?:from|import) (\w+)", re.MULTILINE)
    return {name for path in WEFT.rglob("*.py") for name in line.findall(path.read_text("utf-8"))} - {"weft"}


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a file named like each library, which notes that it ran."""
    names = imported()
    assert {"msgspec", "torch", "json", "click"} <= names
    for name in names:
        (tmp_path / f"{name}.py").write_text(f"open('{name} ran', 'w')\nraise ImportError('planted')\n")
    (tmp_path / "weft").mkdir()
    (tmp_path / "weft" / "__init__.py").write_text("open('weft ran', 'w')\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_child_runs_no_file_of_the_current_folder(planted: Path) -> None:
    with tempfile.TemporaryFile() as said, launch.started(["--version"], [{}], [said]) as children:
        assert children[0].wait(60) == 0
    assert not list(planted.glob("* ran"))


@pytest.mark.slow
@pytest.mark.parametrize("command", ["predict", "train"])
def test_no_process_of_a_command_runs_a_file_of_the_current_folder(
    command: str, trained: Path, planted: Path
) -> None:
    (planted / "in.txt").write_text("alpha\nbeta\n")
    words = ["predict", trained, "in.txt", "--output", "out.txt", "--beam", 1]
    if command == "train":
        words = ["train", trained / "recipe.yaml", "--run", "run", "training.max_updates=2"]
    answer = weft(*words, "--processes", 2)
    assert answer.code == 0 and not list(planted.glob("* ran")), answer.err
