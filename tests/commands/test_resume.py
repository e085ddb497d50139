"""A training that is stopped goes on with the same command, to the bit where the unbroken one ends; SIGTERM
while a store is built or a validation is under way ends it soon.

Signals at any batch: tests/train/test_interrupts.py.
"""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.commands import corpus
from tests.commands.corpus import stopped
from tests.commands.shell import refused, untouched, weft
from weft import rooms
from weft.config import read_recipe
from weft.nn import cells
from weft.nn.cells.cell import Cell
from weft.run.training import begin_run


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGTERM, 143), pytest.param(signal.SIGINT, 130, marks=pytest.mark.slow)],
)
def test_stopped_and_gone_on_with_is_the_unbroken_run(
    toy: Path, tmp_path: Path, number: int, code: int
) -> None:
    changes = "training.max_updates=23", "training.validate_every=10", "model.decoder.dropout=0.2"
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert weft("train", toy, "--run", whole, *changes).code == 0
    answer = stopped(toy, broken, 14, *changes, number=number)
    assert answer.code == code
    assert "stopped after update 14; " in answer.err
    said = re.search(r"^resume with: \S*weft (.+)$", answer.err, re.M)
    assert said
    again = weft(*shlex.split(said[1]), code=0)
    assert "resumes after update 14" in again.err
    names = ["model.safetensors", "checkpoints.json", "recipe.yaml", "tokenizer.source.json"]
    names += [f"checkpoints/step-00000023/{name}.safetensors" for name in ("model", "optimiser")]
    for name in names:
        assert (whole / name).read_bytes() == (broken / name).read_bytes(), name
    assert len(json.loads((whole / "checkpoints.json").read_bytes())["validations"]) == 3


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ("model.decoder.sizes=[19]", r"model\.decoder\.sizes: \[17\], the recipe says \[19\]"),
        ("data.batch_tokens=301", r"data\.batch_tokens: 300, the recipe says 301"),
        ("data.vocabulary.kind=character", "data.vocabulary.kind: word, the recipe says character"),
        ("training.seed=2", "training.seed: 1, the recipe says 2"),
        ("training.optimiser.use=sgd", "training.optimiser.use: adam, the recipe says sgd"),
    ],
)
def test_a_run_keeps_its_data_its_model_and_its_seed(trained: Path, change: str, place: str) -> None:
    recipe = trained.parent / "toy" / "toy.yaml"
    said = untouched(trained, lambda: weft("train", recipe, "--run", trained, change))
    start = f"; to start from this run's model, add --run {trained}-2 training.start={trained}"
    more = start if change.startswith("data.batch") else ""
    assert re.search(rf"{trained}: this run was started with {place}; .* with another --run{more}$", said)


def within(folder: Path) -> list[str]:
    """Settings that find the data in a folder, however it is called."""
    return [f"data.folder={folder}", "data.train=train", "data.valid=valid", "data.test=test"]


def test_a_project_that_was_moved_goes_on(toy: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert weft("train", toy, "--run", run, "training.max_updates=3", *within(toy.parent)).code == 0
    moved = toy.parent.rename(tmp_path / "elsewhere")
    answer = weft("train", moved / toy.name, "--run", run, "training.max_updates=5", *within(moved))
    assert answer.code == 0 and "after 5 updates" in answer.out
    assert weft("evaluate", run).code == 0


def test_another_folder_before_the_first_checkpoint_begins_anew(toy: Path, tmp_path: Path) -> None:
    run, made = tmp_path / "run", tmp_path / "run" / "tokenizer.source.json"
    begin_run(run, read_recipe(toy, within(toy.parent)))
    made.write_text("{}")  # and then it was killed
    begin_run(run, read_recipe(toy, within(toy.parent)))
    assert made.exists()
    right = corpus.make(tmp_path / "right")
    begin_run(run, read_recipe(right, within(right.parent)))
    assert not made.exists()


def test_other_data_in_the_new_place_is_told(toy: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert weft("train", toy, "--run", run, "training.max_updates=3", *within(toy.parent)).code == 0
    moved = toy.parent.rename(tmp_path / "elsewhere")
    for file in moved.glob("train.*"):
        file.write_text("".join(file.read_text().splitlines(keepends=True)[:40]))
    again = weft("train", moved / toy.name, "--run", run, "training.max_updates=5", *within(moved))
    said = refused(again)
    assert f"{moved / 'train.xx'}: has changed since the training of {run} began; to train on it" in said
    assert f"weft train {run / 'recipe.yaml'} --run {run}-2 training.start={run}; to resume this one" in said
    (run / "data.json").unlink()
    again = weft("train", moved / toy.name, "--run", run, "training.max_updates=5", *within(moved))
    assert re.search(r"expected \d+ batches in epoch \d+, .*got \d+", refused(again))


def test_how_it_is_trained_and_searched_may_change(toy: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert weft("train", toy, "--run", run, "training.max_updates=3").code == 0
    changes = "training.max_updates=5", "training.optimiser.lr=0.001", "decoding.beam=2"
    answer = weft("train", toy, "--run", run, *changes, code=0)
    assert "after 5 updates" in answer.out
    assert "lr: 0.001" in (run / "recipe.yaml").read_text()


def test_a_mistake_that_shows_before_the_first_save_is_mended_in_place(toy: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert weft("train", toy, "--run", run, "data.vocabulary.size=3").code == 2
    weft("train", toy, "--run", run, "training.max_updates=2", "data.vocabulary.size=13", code=0)
    stop = stopped(toy, tmp_path / "late", 1)
    assert stop.code == 143


def test_a_vocabulary_that_no_longer_fits_is_learnt_anew(toy: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    (toy.parent / "valid.yy").write_bytes(b"\xff\n")
    assert weft("train", toy, "--run", run).code == 2
    assert (run / "tokenizer.source.json").exists()  # it came as far as that
    corpus.make(toy.parent)
    changes = "data.vocabulary.kind=character", "training.max_updates=1"
    assert weft("train", toy, "--run", run, *changes).code == 0
    assert weft("predict", run, stdin=b"alpha\n").code == 0
    assert "Prepend" not in (run / "tokenizer.source.json").read_text()


ROOT = Path(__file__).resolve().parents[2]
SOON = 10.0
"""Seconds that a process may take to end; on a free machine it is a fraction of one."""

BUILDING = """
import sys
from weft import cli
from weft.data import building

building.PIECE, building.JOURNAL = 2**10, 2**12
taken_up = building._resumed

def told(directory, key):
    report = taken_up(directory, key)
    print("TAKEN UP", report["pairs"], file=sys.stderr, flush=True)
    return report

building._resumed = told
cli.main(sys.argv[1:])
"""

VALIDATING = """
import sys
from weft import cli
from weft.tasks.seq2seq.base import PairTraining

validate = PairTraining.validate

def told(self, model):
    print("VALIDATING", file=sys.stderr, flush=True)
    found = validate(self, model)
    print("VALIDATED", file=sys.stderr, flush=True)
    return found

PairTraining.validate = told
cli.main(sys.argv[1:])
"""


class Process:
    """`weft ARGUMENTS` in a process of its own, with something told on the way."""

    def __init__(self, program: str, cache: Path, *arguments: object) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", program, *map(str, arguments)],
            cwd=ROOT,
            env=dict(os.environ) | {"WEFT_CACHE": str(cache), "OMP_NUM_THREADS": "1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def until(self, word: str) -> str:
        """What it says, up to the line with this word."""
        assert self._process.stderr is not None
        said = []
        for line in self._process.stderr:
            said.append(line)
            if word in line:
                return "".join(said)
        raise AssertionError(f"{word!r} was not said: {''.join(said)}")

    def terminated(self) -> tuple[int, str]:
        """SIGTERM: its exit code and last words, if it ends soon."""
        begun = time.monotonic()
        self._process.send_signal(signal.SIGTERM)
        return self.ended(SOON - (time.monotonic() - begun))

    def ended(self, seconds: float = 300) -> tuple[int, str]:
        """Its exit code and what else it says."""
        try:
            said = self._process.communicate(timeout=seconds)[1]
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise
        return self._process.returncode, said


@pytest.mark.slow
def test_while_a_store_is_built_it_ends_soon_and_the_next_start_goes_on(tmp_path: Path) -> None:
    recipe = corpus.make(tmp_path / "toy")
    for side in ("xx", "yy"):
        path = tmp_path / "toy" / f"train.{side}"
        path.write_text(path.read_text() * 600)  # 238,200 pairs: seconds of work
    cache = tmp_path / "cache"
    given = "train", recipe, "--run", tmp_path / "run", "training.max_updates=1", "data.validate_rows=1"
    first = Process(BUILDING, cache, *given)
    assert "TAKEN UP 0\n" in first.until("TAKEN UP")
    until = time.monotonic() + 60
    while not list(cache.rglob("done.json")):  # something is written, and noted
        assert time.monotonic() < until
        time.sleep(0.01)
    code, said = first.terminated()
    assert code == 143, said
    assert "stopped before the first update" in said
    assert said.splitlines()[-1].startswith("resume with: ") and "Traceback" not in said
    assert not list(cache.rglob("piece-*"))  # what its children were making went with them
    second = Process(BUILDING, cache, *given)
    told = re.search(r"TAKEN UP (\d+)", second.until("TAKEN UP"))
    assert told and 4096 <= int(told[1]) < 238_200
    code, said = second.ended()
    assert code == 0, said


@pytest.mark.slow
def test_while_a_validation_is_under_way_it_ends_soon_and_the_next_start_does_it(tmp_path: Path) -> None:
    recipe = corpus.make(tmp_path / "toy")
    corpus.write(tmp_path / "toy", "valid", 2000, 3)
    given = (
        "train", recipe, "--run", tmp_path / "run", "training.max_updates=2", "training.validate_every=2",
        "decoding.beam=9", "data.validate_rows=2000",
    )  # fmt: skip
    first = Process(VALIDATING, tmp_path / "cache", *given)
    first.until("VALIDATING")
    time.sleep(0.3)
    code, said = first.terminated()
    assert code == 143 and "VALIDATED" not in said, said
    assert "stopped after update 2; " in said
    assert said.splitlines()[-1].startswith("resume with: ") and "Traceback" not in said
    assert [path.name for path in (tmp_path / "run" / "checkpoints").iterdir()] == ["step-00000002"]
    second = Process(VALIDATING, tmp_path / "cache", *given)
    assert "resumes after update 2" in second.until("VALIDATING")
    code, said = second.ended()
    assert code == 0 and said.count("VALIDATED") == 1, said


NAMES = sorted(set(rooms.parts(cells, Cell)) - {"projected"})
SHORT = "training.max_updates=2", "training.validate_every=2"
BOTH = "model.encoder.cell={cell}", "model.decoder.cell={cell}"


def named(cell: str) -> list[str]:
    return [change.format(cell=cell) for change in BOTH]


LEADING = ("gru", "lstm", "mingru", "zoneout", "{use: projected, inner: 40}")
"""One of a kind; tests/laws tries every cell."""


@pytest.mark.parametrize(
    "name", [*LEADING, *(pytest.param(name, marks=pytest.mark.slow) for name in NAMES if name not in LEADING)]
)
def test_a_cell_trains_and_writes(name: str, toy: Path, tmp_path: Path) -> None:
    weft("train", toy, "--run", tmp_path / "run", *SHORT, *named(name), code=0)
    found = weft("predict", tmp_path / "run", stdin=b"alpha beta\ngamma\n")
    assert (found.code, len(found.lines)) == (0, 2), found.err


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 2])
def test_masks_are_drawn_anew_to_the_bit_after_a_stop(workers: int, toy: Path, tmp_path: Path) -> None:
    cell = "{use: zoneout, rate: 0.2, cell: {use: variational, rate: 0.3, cell: {use: gru, reset: before}}}"
    changes = [
        *named(cell),
        "training.validate_every=4",
        "training.accumulate=2",
        f"training.workers={workers}",
    ]
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert weft("train", toy, "--run", whole, *changes, "training.max_updates=8").code == 0
    assert weft("train", toy, "--run", broken, *changes, "training.max_updates=4").code == 0
    weft("train", toy, "--run", broken, *changes, "training.max_updates=8", code=0)
    name = "checkpoints/step-00000008/model.safetensors"
    assert (whole / name).read_bytes() == (broken / name).read_bytes()
