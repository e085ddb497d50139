"""A masked language model from text to filled gaps, as a user types it."""

from pathlib import Path

import pytest

import weft as package
from tests import toys
from tests.commands.shell import refused, unanswered, weft


def test_gaps_are_filled_from_both_sides(tmp_path: Path) -> None:
    answer = weft("train", toys.gaps(tmp_path / "toy"), "--run", tmp_path / "run")
    assert answer.code == 0, answer.err
    run = tmp_path / "run"
    said = weft("predict", run, stdin=b"the [MASK] can purr\na [MASK] can bark\n")
    assert said.out == "the cat can purr\na dog can bark\n"
    ranked = weft("predict", run, "--nbest", "2", "--scores", stdin=b"the [MASK] can [MASK]\n").out
    first, second = ranked.strip().split("\t")
    assert first.startswith("cat:0.") and second.startswith("purr:0.") and len(first.split()) == 2
    assert package.load(run).predict("the cat can [MASK]") == "the cat can purr"
    scored = weft("evaluate", run, "--split", "valid")
    assert scored.code == 0 and "80/10/10" in scored.out and "worse" not in scored.out
    (said,) = unanswered(weft("predict", run, stdin=b"a dog\n"))
    assert "standard input:1: expected [MASK]" in said


@pytest.mark.parametrize(
    ("change", "sentence"),
    [("data.batches=windows", "set batches: lines"), ("model.share=1.0", "share: expected a share")],
)
def test_settings_that_do_not_fit_are_refused(tmp_path: Path, change: str, sentence: str) -> None:
    assert sentence in refused(weft("train", toys.gaps(tmp_path / "toy"), "--run", tmp_path / "run", change))
