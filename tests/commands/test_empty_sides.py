"""Pairs without text on one side are in no score: with them the scores are those of the rest, and say so."""

import json
from pathlib import Path

import pytest

from tests.commands.shell import refused, weft

ROWS = [
    ("alpha beta", "uno due"),
    ("gamma", ""),
    ("theta zeta eta", "otto sei sette"),
    ("", "nove"),
    ("iota", "x"),
]
KEPT = [0, 2, 4]


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """All rows, and those with text on both sides."""
    whole, kept = tmp_path / "whole.tsv", tmp_path / "kept.tsv"
    for path, rows in ((whole, ROWS), (kept, [ROWS[n] for n in KEPT])):
        path.write_text("xx\tyy\n" + "".join(f"{source}\t{target}\n" for source, target in rows))
    return whole, kept


def figures(run: Path, data: Path, *more: object) -> dict:
    path = data.with_suffix(".json")
    answer = weft(
        "evaluate", run, "--data", data, "--json", path, "--output", data.with_suffix(".out"), *more, code=0
    )
    return {"printed": answer.out, **json.loads(path.read_text())}


def test_scores_are_those_of_the_pairs_that_have_both_sides(trained: Path, files: tuple[Path, Path]) -> None:
    whole, kept = (figures(trained, path) for path in files)
    for name in ("scores", "by_length", "length_ratio"):
        assert whole[name] == kept[name]
    assert (whole["left_out"], kept["left_out"]) == (2, 0)
    assert "3 pairs (2 more left out, with an empty side)" in whole["printed"]
    assert "left out" not in kept["printed"]
    lines = files[0].with_suffix(".out").read_text().split("\n")[:-1]  # as many as the data has
    assert [lines[n] for n in KEPT] == files[1].with_suffix(".out").read_text().split("\n")[:-1]
    assert len(lines) == 5 and lines[1] == lines[3] == ""


def test_given_answers_to_such_pairs_are_not_summed(
    trained: Path, files: tuple[Path, Path], tmp_path: Path
) -> None:
    found = []
    for path, rows in zip(files, (ROWS, [ROWS[n] for n in KEPT]), strict=True):
        given = tmp_path / "given"
        given.write_text("".join(f"{target}\n" for _, target in rows))
        found.append(figures(trained, path, "--score", given))
    values = [one["scores"]["perplexity"]["value"] for one in found]
    assert values[0] == pytest.approx(values[1], rel=1e-6)  # float32, in batches of other shapes
    assert found[0]["left_out"] == 2 and len(found[0]["lines"]) == 5


def test_validation_leaves_them_out_too(toy: Path, tmp_path: Path) -> None:
    short = ("training.max_updates=2", "training.validate_every=1")
    assert weft("train", toy, "--run", tmp_path / "kept", *short).code == 0
    for side, line in (("xx", "alpha\n"), ("yy", "\n")):
        with open(toy.parent / f"valid.{side}", "a") as file:
            file.write(line)
    assert weft("train", toy, "--run", tmp_path / "whole", *short).code == 0
    scores = [
        [
            json.loads(line).get("scores")
            for line in (tmp_path / name / "metrics.jsonl").read_text().splitlines()
        ]
        for name in ("kept", "whole")
    ]
    assert any(scores[0]) and scores[0] == scores[1]


def test_data_without_a_whole_pair_is_refused(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "none.tsv").write_text("xx\tyy\nalpha\t\n\tuno\n")
    assert "text on both sides" in refused(weft("evaluate", trained, "--data", tmp_path / "none.tsv"))
