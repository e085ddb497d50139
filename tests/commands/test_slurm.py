"""Slurm without Slurm: its variables, the job script with stand-ins for srun and scontrol, and its notice."""

import hashlib
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.commands import corpus
from tests.commands.shell import weft
from weft.commands.launch import first_host, join_slurm
from weft.errors import ConfigError

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
