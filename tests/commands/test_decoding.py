"""How answers are searched, as a user asks for it on the command line; and what is refused in a sentence."""

import shutil
from pathlib import Path

import pytest

from tests.commands.corpus import WORDS, translated
from tests.commands.shell import refused, weft
from weft.search import offered

TEXT = b"alpha beta\ngamma\n\ntheta zeta eta\n"
RIGHT = [translated(line) for line in TEXT.decode().splitlines()]


def answers(run: Path, *options: object) -> list[str]:
    answer = weft("predict", run, *options, stdin=TEXT, code=0)
    return answer.lines


def test_a_prefix_begins_and_a_required_phrase_is_in_every_answer(trained: Path) -> None:
    for line, right in zip(answers(trained, "--prefix", "nove sei"), RIGHT, strict=True):
        assert line.startswith("nove sei") if right else not line
    for line, right in zip(answers(trained, "--require", "nove sei", "--require", "due"), RIGHT, strict=True):
        assert not right or ("nove sei" in line and "due" in line.replace("nove sei", ""))
    assert answers(trained, "--require", "uno")[0] == RIGHT[0]  # what is there anyway changes nothing


def test_lengths_repetitions_and_groups(trained: Path) -> None:
    assert [len(line.split()) for line in answers(trained, "--min-length", 5)] == [5, 5, 0, 5]
    for line in answers(trained, "--min-length", 7, "--no-repeat-ngram", 1):
        assert len(set(line.split())) == len(line.split())
    apart = answers(trained, "--diverse", 4, "--nbest", 4, "--set", "diversity=9")
    assert len(apart) == 16 and len(set(apart[:4])) >= 3
    assert answers(trained, "--diverse", 2)[0] == RIGHT[0]
    assert answers(trained, "--coverage", 0.2, "--set", "normalisation=gnmt") == RIGHT
    assert answers(trained, "--set", "precision=bfloat16") == RIGHT


@pytest.mark.parametrize("search", [(), ("--diverse", 3), ("--require", "sei"), ("--beam", 1)], ids=str)
def test_a_batch_has_a_budget_of_tokens_that_changes_no_answer(
    trained: Path, monkeypatch: pytest.MonkeyPatch, search: tuple[object, ...]
) -> None:
    expected = answers(trained, "--scores", *search)
    monkeypatch.setattr(offered, "TOKENS", 100)  # two sources at a time, or one
    assert answers(trained, "--scores", *search) == expected


def test_a_text_is_no_longer_than_the_budget_allows(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offered, "TOKENS", 30)
    options = "--beam", 3, "--set", "max_extra=100000"
    assert [len(line.split()) for line in answers(trained, *options, "--min-length", 9)] == [9, 9, 0, 9]
    said = refused(weft("predict", trained, *options, "--min-length", 10, stdin=TEXT))
    assert "they take 11 tokens, the end included, but at most 10 can be written" in said


def test_an_ensemble_of_a_run_with_its_copy_is_the_run(trained: Path, blind: Path, tmp_path: Path) -> None:
    alone = answers(trained, "--scores")
    shutil.copytree(trained, tmp_path / "copy")
    both = answers(trained, "--scores", "--ensemble", tmp_path / "copy")
    for one, two in zip(alone, both, strict=True):
        assert one.split("\t")[1] == two.split("\t")[1]
        assert float(one.split("\t")[0]) == pytest.approx(float(two.split("\t")[0]), abs=2e-4)
    assert answers(trained, "--ensemble", blind) == RIGHT  # the other one knows next to nothing
    evaluated = weft("evaluate", trained, "--ensemble", blind)
    assert ", 2 runs together" in evaluated.out.splitlines()[0]
    assert evaluated.code == 0 and "BLEU" in evaluated.out


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            ("--prefix", "日本"),
            "prefix: '日本' contains characters or words that the vocabulary",
        ),
        (("--require", "zebra"), "require: 'zebra' contains characters or words"),
        (("--require", " ".join([*WORDS.values()] * 2)), "require: the words and the end take 19 tokens"),
        (("--diverse", 3, "--beam", 4), "3 groups do not divide a beam of 4; set beam to 6"),
        (("--diverse", 2, "--require", "uno"), "--diverse and --require: cannot be combined"),
        (("--sample", "--coverage", 1), "coverage: expected search: beam"),
        (("--min-length", -1), "--min-length: expected a whole number from 0 to 100,000, got -1"),
    ],
    ids=str,
)
def test_what_cannot_be_searched_is_said(trained: Path, options: tuple, sentence: str) -> None:
    assert sentence in refused(weft("predict", trained, *options, stdin=b"alpha\n"))


def test_coverage_needs_attention_and_one_model(trained: Path, blind: Path) -> None:
    said = refused(weft("predict", blind, "--coverage", 1, stdin=b"alpha\n"))
    assert "needs attention, which this model lacks" in said
    assert "coverage: cannot be combined with an ensemble" in refused(
        weft("predict", trained, "--ensemble", blind, "--coverage", 1, stdin=b"alpha\n")
    )
