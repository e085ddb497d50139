"""Which of several processes is the cause when they end, told in one sentence."""

import subprocess
import sys
import tempfile

import pytest

from weft.commands import launch

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
