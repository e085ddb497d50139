"""decoding.shortlist: made once from the training data and kept in the run; every search works with it."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.commands import corpus
from tests.commands.corpus import WORDS, translated
from tests.commands.shell import refused, weft
from weft.run import load, open_run
from weft.search.hypotheses import Hypotheses
from weft.tasks.seq2seq.batch_search import BatchSearch

LINES = ["alpha beta", "gamma", "", "beta gamma delta alpha", "theta zeta eta", "iota iota"]
TEXT = "".join(f"{line}\n" for line in LINES).encode()
RIGHT = [translated(line) for line in LINES]
ALL = "shortlist=100"
"""More tokens than there are."""


@pytest.fixture(scope="module")
def run(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of its own, of which the shortlist is part after the first search."""
    folder = tmp_path_factory.mktemp("short") / "run"
    shutil.copytree(trained, folder)
    return folder


def answers(run: Path, *options: object) -> list[str]:
    answer = weft("predict", run, *options, stdin=TEXT, code=0)
    return answer.lines


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Hypotheses]]:
    """What each search found."""
    found: list[Hypotheses] = []
    real = BatchSearch._search

    def search(self: BatchSearch, *given: Any) -> Hypotheses:
        found.append(real(self, *given))
        return found[-1]

    monkeypatch.setattr(BatchSearch, "_search", search)
    yield found


def test_it_is_made_at_the_first_search_and_kept_without_the_training_data(
    run: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert answers(run) == RIGHT and not (run / "shortlist.json").exists()
    first, second = (weft("predict", run, "--set", "shortlist=1", stdin=TEXT) for _ in range(2))
    assert first.lines == second.lines == RIGHT
    assert first.err == "making shortlist.json from the training pairs, for decoding.shortlist\n"
    assert second.err == ""
    made = (run / "shortlist.json").read_bytes()
    moved = tmp_path / "moved"
    shutil.copytree(run, moved)
    gone = "data.train=/nowhere/train"
    recipe = (moved / "recipe.yaml").read_text()
    train = next(line for line in recipe.splitlines() if line.strip().startswith("train:"))
    (moved / "recipe.yaml").write_text(
        recipe.replace(train, f"  {gone.removeprefix('data.').replace('=', ': ')}")
    )
    assert answers(moved, "--set", "shortlist=1") == RIGHT
    assert (run / "shortlist.json").read_bytes() == made
    (moved / "shortlist.json").unlink()
    said = refused(weft("predict", moved, "--set", "shortlist=1", stdin=TEXT))
    assert "shortlist.json is missing" in said and "--set shortlist=100` and copy the file" in said


def test_a_damaged_one_is_made_again(run: Path) -> None:
    assert answers(run, "--set", "shortlist=2") == RIGHT
    path = run / "shortlist.json"
    made = path.read_bytes()
    path.write_bytes(made[:50])
    assert answers(run, "--set", "shortlist=2") == RIGHT
    assert path.read_bytes() == made


@pytest.mark.parametrize(
    "options",
    [
        ("--scores",),
        ("--scores", "--beam", 1),
        ("--scores", "--nbest", 3),
        ("--prefix", "nove sei"),
        ("--require", "nove sei"),
        ("--diverse", 2, "--nbest", 2),
        ("--coverage", 0.2),
        ("--min-length", 7, "--no-repeat-ngram", 1),
        ("--sample", "--seed", 3),
        ("--set", "precision=bfloat16"),
        ("--set", "precision=int8"),
    ],
    ids=str,
)
def test_with_every_token_nothing_changes(run: Path, options: tuple[object, ...]) -> None:
    assert answers(run, *options, "--set", ALL) == answers(run, *options)


def test_only_kept_and_required_tokens_are_written(
    run: Path, tmp_path: Path, written: list[Hypotheses]
) -> None:
    opened = open_run(run, device="cpu", changes=["decoding.shortlist=1", "decoding.nbest=3"])
    translator: Any = opened.pipeline.predictor(opened.model)
    assert [best[0].text for best in translator.translate(["alpha gamma", "gamma"])] == ["uno tre", "tre"]
    (found,) = written
    names = [WORDS["alpha"], WORDS["gamma"]]
    allowed = {*range(4), *(opened.pipeline.target.encode(name)[0] for name in names)}  # type: ignore[attr-defined]
    assert len(set(found.tokens.flatten().tolist()) - allowed) <= 1  # the most frequent one
    terms = tmp_path / "terms.tsv"
    terms.write_text("alpha\tnove\n")
    lines = answers(run, "--glossary", terms, "--set", "shortlist=1")
    assert "nove" in lines[0] and "nove" in lines[3] and lines[1] == RIGHT[1]
    assert all(
        line.startswith("sei") for line in answers(run, "--prefix", "sei", "--set", "shortlist=1") if line
    )


def test_a_training_that_asks_for_it_leaves_it_in_the_run(tmp_path: Path) -> None:
    changes = "decoding.shortlist=2", "training.max_updates=2", "training.validate_every=2"
    weft("train", corpus.make(tmp_path / "toy"), "--run", tmp_path / "run", *changes, code=0)
    assert (tmp_path / "run" / "shortlist.json").exists()
    evaluated = weft("evaluate", tmp_path / "run")
    assert evaluated.code == 0 and "shortlist 2" in evaluated.out
    assert weft("inspect", tmp_path / "run", "alpha", "--output", tmp_path / "seen.html").code == 0
    with torch.inference_mode():
        assert load(tmp_path / "run").predict("alpha") is not None
