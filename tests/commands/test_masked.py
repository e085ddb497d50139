"""A masked language model from text to filled gaps, as a user types it."""

import json
from pathlib import Path

import weft as package
from tests import toys
from tests.commands.shell import unanswered, weft
from tests.shared import shared_run


def test_gaps_are_filled_from_both_sides(tmp_path: Path) -> None:
    weft("train", toys.gaps(tmp_path / "toy"), "--run", tmp_path / "run", code=0)
    run = tmp_path / "run"
    said = weft("predict", run, stdin=b"the [MASK] can purr\na [MASK] can bark\n")
    assert said.out == "the cat can purr\na dog can bark\n"
    ranked = weft("predict", run, "--nbest", "2", "--scores", stdin=b"the [MASK] can [MASK]\n").out
    first, second = ranked.strip().split("\t")
    assert first.startswith("cat=0.") and second.startswith("purr=0.") and len(first.split()) == 2
    assert package.load(run).predict("the cat can [MASK]") == "the cat can purr"
    scored = weft("evaluate", run, "--split", "valid")
    assert scored.code == 0 and "80/10/10" in scored.out and "worse" not in scored.out
    (said,) = unanswered(weft("predict", run, stdin=b"a dog\n"))
    assert "standard input:1: expected [MASK]" in said


def test_an_evaluation_writes_its_answers_a_line_for_each_line(tmp_path: Path) -> None:
    lines = ["the dog can purr", "", " ".join(["a cat can bark"] * 4), "the cat can purr"]  # 11 tokens fit
    (tmp_path / "text.txt").write_text("\n".join(lines) + "\n")
    files = {name: tmp_path / name for name in ("out.txt", "scores.json")}
    given = ("--data", tmp_path / "text.txt", "--output", files["out.txt"], "--json", files["scores.json"])
    weft("evaluate", shared_run("masked"), *given, code=0)
    written = files["out.txt"].read_text().splitlines()
    assert len(written) == 4 and written[1] == ""
    pairs = zip(" ".join(lines).split(), " ".join(written).split(), strict=True)
    accuracy = json.loads(files["scores.json"].read_text())["scores"]["accuracy"]
    wrong = round((1 - accuracy["value"]) * accuracy["size"])
    assert sum(one != other for one, other in pairs) == wrong > 0
