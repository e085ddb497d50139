"""Several processes of a command: what they may import, and which is the cause when they end."""

import hashlib
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.commands import corpus
from tests.commands.shell import weft
from weft.commands import launch
from weft.commands.launch import first_host, join_slurm
from weft.errors import ConfigError

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


SCRIPT = Path(__file__).resolve().parents[2] / "deploy" / "slurm.sh"
STEP = {
    "SLURM_STEP_NUM_TASKS": "4",
    "SLURM_PROCID": "3",
    "SLURM_LOCALID": "1",
    "SLURM_STEP_NODELIST": "node[07-08]",
    "SLURM_JOB_ID": "123",
    "SLURM_STEP_ID": "0",
}


def test_the_processes_of_srun_become_ranks() -> None:
    found = dict(STEP)
    assert join_slurm(4, found)
    port = found.pop("MASTER_PORT")
    assert 20_000 <= int(port) < 40_000
    assert found == STEP | {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "MASTER_ADDR": "node07"}
    again, other = dict(STEP) | {"SLURM_PROCID": "0"}, dict(STEP) | {"SLURM_JOB_ID": "124"}
    assert join_slurm(4, again) and join_slurm(4, other)
    assert again["MASTER_PORT"] == port != other["MASTER_PORT"]  # all of a step agree, jobs differ


@pytest.mark.parametrize(
    ("processes", "variables"),
    [
        (None, STEP),  # each process of srun trains alone
        (2, {}),  # no Slurm
        (2, {"SLURM_PROCID": "0", "SLURM_NTASKS": "2"}),  # in the batch script itself
        (2, STEP | {"SLURM_STEP_NUM_TASKS": "1"}),  # one process of srun launches two
        (4, STEP | {"WORLD_SIZE": "4"}),  # torchrun came first
    ],
)
def test_other_processes_stay_as_they_are(processes: int | None, variables: dict[str, str]) -> None:
    found = dict(variables)
    assert not join_slurm(processes, found) and found == variables


def test_what_the_user_has_set_wins_and_other_numbers_are_refused() -> None:
    found = STEP | {"MASTER_ADDR": "here", "MASTER_PORT": "1"}
    assert join_slurm(4, found) and (found["MASTER_ADDR"], found["MASTER_PORT"]) == ("here", "1")
    with pytest.raises(ConfigError, match=r"--processes 2: srun has started 4; pass --processes 4"):
        join_slurm(2, dict(STEP))


@pytest.mark.parametrize(
    ("nodes", "host"),
    [("n1", "n1"), ("n1,n2", "n1"), ("n[1,4-6]", "n1"), ("a-[010-011]-ib,b", "a-010-ib"), ("x[2],y", "x2")],
)
def test_the_first_host_of_a_list(nodes: str, host: str) -> None:
    assert first_host(nodes) == host


def job(folder: Path, *words: object, code: int = 0, **variables: str) -> tuple[int, list[str], str]:
    """Exit code of the job script, the words that weft got, and what scontrol got."""
    programs = {
        "weft": f'printf "%s\\n" "$@" > {folder}/words; exit {code}',
        "srun": 'while [ "${1#-}" != "$1" ]; do shift; done; "$@"',
        "scontrol": f'echo "$@" > {folder}/asked',
    }
    for name, body in programs.items():
        (folder / name).write_text(f"#!/bin/bash\n{body}\n")
        (folder / name).chmod(0o755)
    for name in ("words", "asked"):
        (folder / name).unlink(missing_ok=True)
    known = {"PATH": f"{folder}:{os.environ['PATH']}", "SLURM_JOB_ID": "77", **variables}
    done = subprocess.run(["bash", SCRIPT, *map(str, words)], env=known, capture_output=True, text=True)
    got = (folder / "words").read_text().splitlines() if (folder / "words").exists() else [done.stderr]
    return done.returncode, got, (folder / "asked").read_text() if (folder / "asked").exists() else ""


def test_a_job_passes_its_words_on_and_queues_itself_again_after_the_notice_alone(tmp_path: Path) -> None:
    words = ["train", "my.yaml", "--run", "runs/a b", "training.max_updates=3"]
    assert job(tmp_path, *words) == (0, words, "")
    assert job(tmp_path, *words, code=138) == (0, words, "requeue 77\n")
    for code in (2, 130, 143):
        assert job(tmp_path, *words, code=code) == (code, words, "")
    assert job(tmp_path, *words, SLURM_NTASKS="8")[1] == [*words, "--processes", "8"]
    assert job(tmp_path, "train")[0] == 2


def test_an_array_is_one_seed_or_one_searcher_each(tmp_path: Path) -> None:
    third = {"SLURM_ARRAY_TASK_ID": "3"}
    assert job(tmp_path, "train", "r/my.yaml", "--run", "runs/a", **third)[1] == [
        *("train", "r/my.yaml", "--run", "runs/a-seed-3", "training.seed=3")
    ]
    assert job(tmp_path, "train", "r/my.yaml", "--run=runs/a=b", **third)[1] == [
        *("train", "r/my.yaml", "--run", "runs/a=b-seed-3", "training.seed=3")
    ]
    assert job(tmp_path, "train", "r/my.yaml", **third)[1] == [
        *("train", "r/my.yaml", "--run", "runs/my-seed-3", "training.seed=3")
    ]
    shared = ["tune", "my.yaml", "--name", "n", "--storage", "postgresql://db"]
    assert job(tmp_path, *shared, **third)[1] == [*shared, "--study", "runs/my-tuned-3", "--seed", "3"]
    code, (said,), _ = job(tmp_path, *shared[:4], **third)
    assert code == 2 and "needs --storage" in said


def test_a_training_that_gets_the_notice_resumes_to_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = corpus.make(tmp_path / "toy")
    changes = ["training.max_updates=9", "training.validate_every=9", "training.schedule.warmup=1"]
    assert weft("train", recipe, "--run", tmp_path / "whole", *changes).code == 0
    real = os.kill
    monkeypatch.setattr(os, "kill", lambda process, number: [real(process, signal.SIGUSR1) for _ in "ab"])
    assert corpus.stopped(recipe, tmp_path / "cut", 5, *changes).code == 138  # twice is as good as once
    monkeypatch.undo()
    assert not (tmp_path / "cut" / "model.safetensors").exists()
    assert weft("train", recipe, "--run", tmp_path / "cut", *changes).code == 0
    bits = [
        hashlib.sha256((tmp_path / name / "model.safetensors").read_bytes()).digest()
        for name in ("whole", "cut")
    ]
    assert bits[0] == bits[1]


@pytest.mark.slow
def test_two_real_processes_with_the_variables_of_srun_share_each_update(tmp_path: Path) -> None:
    import sys

    recipe, run = corpus.make(tmp_path / "toy"), tmp_path / "run"
    words = [sys.executable, "-m", "weft", "train", str(recipe), "--run", str(run), "--processes", "2"]
    words += ["training.max_updates=3", "training.accumulate=2"]
    step = STEP | {
        "SLURM_STEP_NUM_TASKS": "2",
        "SLURM_STEP_NODELIST": "localhost",
        "SLURM_JOB_ID": str(os.getpid()),
    }
    ranks = [os.environ | step | {"SLURM_PROCID": rank, "SLURM_LOCALID": rank} for rank in "01"]
    children = [subprocess.Popen(words, env=one, stderr=subprocess.DEVNULL) for one in ranks]
    assert [child.wait(timeout=280) for child in children] == [0, 0]
    assert (run / "model.safetensors").is_file()
