"""What `weft evaluate` scores: metrics, also of a plugin; empty sides; references in another Unicode form."""

import json
import re
import shutil
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from tests.commands.shell import evaluated, refused, weft
from tests.plugins import METRIC, package
from tests.shared import copied, shared_run

PLUGIN = "--plugin", "my_metrics_of_weft"
NAME = "my_metrics_of_weft.length.SameLength"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a package in it."""
    return package(tmp_path / "home", "my_metrics_of_weft", {"length.py": METRIC}, monkeypatch)


def test_a_metric_of_a_plugin_scores_a_run_beside_its_own(blind: Path, home: Path) -> None:
    asked = ("--metric", f"{NAME}:tolerance=1", "--metric", "wer", "--metric", "chrf:word_order=2")
    found, whole = evaluated(blind, *asked, *PLUGIN, "--output", "out.txt")
    scores = whole["scores"]
    own, test = scores["same length"], blind.parent / "toy" / "test.yy"
    sizes = [
        [len(line.split()) for line in path.read_text("utf-8").splitlines()]
        for path in (Path("out.txt"), test)
    ]
    near = [abs(ours - theirs) <= 1 for ours, theirs in zip(*sizes, strict=True)]
    assert own["value"] == pytest.approx(sum(near) / len(near), abs=1e-12) and 0 < own["value"] < 1
    assert own["signature"] == "tolerance:1|ci:wilson" and own["low"] <= own["value"] <= own["high"]
    assert set(own["baselines"]) == set(scores["BLEU"]["baselines"])
    assert scores["WER"]["higher_is_better"] is False
    assert scores["chrF2 (chrf:word_order=2)"]["value"] != scores["chrF2"]["value"]
    assert "same length 0." in found.out
    plain = evaluated(blind)[1]["scores"]
    assert {name: scores[name] for name in plain} == plain


def test_the_tokenisation_of_bleu_can_be_set(trained: Path, toy: Path, tmp_path: Path) -> None:
    asked = "--metric", "bleu:tokenize=char", "--metric", "meteor:tokenize=zh"
    scores = evaluated(trained, *asked)[1]["scores"]
    assert "|tok:13a|" in scores["BLEU"]["signature"]
    assert "|tok:char|" in scores["BLEU (bleu:tokenize=char)"]["signature"]
    assert "|tok:zh|" in scores["METEOR (meteor:tokenize=zh)"]["signature"]
    changes = (
        "training.metrics=[{use: bleu, tokenize: char}]",
        "training.max_updates=2",
        "data.validate_rows=0",
    )
    weft("train", toy, "--run", tmp_path / "run", *changes, code=0)
    assert "tokenize: char" in (tmp_path / "run" / "recipe.yaml").read_text("utf-8")
    validated = json.loads((tmp_path / "run" / "checkpoints.json").read_text("utf-8"))["validations"][0]
    own = evaluated(tmp_path / "run", "--split", "valid", "--beam", 1)[1]["scores"]["BLEU (bleu)"]
    assert validated["scores"]["bleu"] == pytest.approx(own["value"])


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("bleu:tokenize=zn", "tokenize: expected one of auto, 13a"),
        ("blue", "did you mean 'bleu'"),
        ("chrf:words=2", "word_order"),
        ("chrf:word_order", "NAME:key=value"),
        ("chrf:word_order=many", "whole number"),
        (NAME, "--plugin my_metrics_of_weft"),
    ],
)
def test_a_wrong_metric_is_one_sentence(trained: Path, asked: str, said: str) -> None:
    told = refused(weft("evaluate", trained, "--metric", asked))
    assert said in told and "--metric" in told


def test_given_answers_have_no_metric(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "given.txt").write_text("uno\n")
    said = refused(weft("evaluate", trained, "--score", tmp_path / "given.txt", "--metric", "wer"))
    assert "--metric" in said


def test_a_metric_of_the_recipe_that_reads_nothing_of_the_task_is_named(tmp_path: Path) -> None:
    run = copied(shared_run("memory"), tmp_path)
    recipe = (run / "recipe.yaml").read_text("utf-8")
    (run / "recipe.yaml").write_text(re.sub(r"(?m)^  metrics: .*$", "  metrics: [wer]", recipe), "utf-8")
    found = weft("evaluate", run)
    assert "note: wer: reads texts" in found.err


def test_a_split_is_of_the_recipes_own_data(tmp_path: Path) -> None:
    data = tmp_path / "x.csv"
    data.write_text("a\n1\n")
    for split in ("valid", "test"):
        assert "--split: is of" in refused(weft("evaluate", tmp_path, "--data", data, "--split", split))


def note(out: str) -> str:
    """What an evaluation says of the forms, folded to the width of a terminal, and the rest."""
    return re.search(r"\d+ of \d+ references are not in Unicode form.*", " ".join(out.split()))[0]


def test_references_in_another_form_are_said_and_scored_in_the_same(trained: Path, tmp_path: Path) -> None:
    references = (trained.parent / "toy" / "test.yy").read_text().splitlines()
    composed = [one.replace("uno", "unó") for one in references]
    decomposed = [unicodedata.normalize("NFD", one) for one in composed]
    found = []
    for name, lines in (("nfc", composed), ("nfd", decomposed)):
        shutil.copy(trained.parent / "toy" / "test.xx", tmp_path / f"{name}.xx")
        (tmp_path / f"{name}.yy").write_text("".join(f"{one}\n" for one in lines), "utf-8")
        found.append(weft("evaluate", trained, "--data", tmp_path / name))
    assert all(one.code == 0 for one in found), found
    count = sum("ó" in one for one in composed)
    bleu = re.search(r"BLEU (\d+\.\d)", found[0].out)[1]
    line = note(found[1].out)
    assert f"{count} of {len(composed)} references are not in Unicode form NFC" in line
    assert f"with all texts in NFC: BLEU {bleu}" in line
    assert "Unicode form" not in found[0].out
    said = weft("data", "check", tmp_path / "nfd.xx", tmp_path / "nfd.yy")
    assert "nfd.yy" in said.out and "not in Unicode form NFC" in said.out + said.err
    assert "Unicode form" not in weft("data", "check", tmp_path / "nfc.xx", tmp_path / "nfc.yy").out


@pytest.mark.parametrize(("task", "score"), [("caption", "BLEU-1"), ("speech", "WER")])
def test_lists_in_another_form_are_said_and_scored_in_the_same(task: str, score: str, tmp_path: Path) -> None:
    run = shared_run(task)
    toy = run.parent / "toy"
    found, shown = [], []
    for form in ("NFC", "NFD"):
        (tmp_path / form).mkdir()
        rows = [line.split("\t") for line in (toy / "valid.tsv").read_text().splitlines()]
        texts = [f"{row[1][:-1]}é" for row in rows]  # no output ends so
        where = toy / "pictures" if task == "caption" else toy
        lines = [f"{where / row[0]}\t{text}\n" for row, text in zip(rows, texts, strict=True)]
        (tmp_path / form / "x.tsv").write_text(unicodedata.normalize(form, "".join(lines)), "utf-8")
        found.append(weft("evaluate", run, "--data", tmp_path / form / "x.tsv"))
        assert found[-1].code == 0, found[-1].err
        shown.append(weft("data", "check", tmp_path / form / "x.tsv").out)
    value = float(re.search(rf"{score} (\d+\.\d+)", found[0].out)[1])
    line = note(found[1].out)
    assert f"{len(rows)} of {len(rows)} references are not in Unicode form NFC" in line
    assert float(re.search(rf"{score} (\d+\.\d+)", line)[1]) == pytest.approx(value, abs=0.051)
    assert "Unicode form" not in found[0].out and "Unicode form" not in shown[0]
    assert f"x.tsv:1: not in Unicode form NFC and {len(rows) - 1} more lines" in shown[1]


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


def figures(run: Path, data: Path, *more: object) -> dict[str, Any]:
    answer, found = evaluated(run, "--data", data, "--output", data.with_suffix(".out"), *more)
    return {"printed": answer.out, **found}


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
    logs = [(tmp_path / name / "metrics.jsonl").read_text().splitlines() for name in ("kept", "whole")]
    scores = [[json.loads(line).get("scores") for line in log] for log in logs]
    assert any(scores[0]) and scores[0] == scores[1]


def test_data_without_a_whole_pair_is_refused(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "none.tsv").write_text("xx\tyy\nalpha\t\n\tuno\n")
    assert "text on both sides" in refused(weft("evaluate", trained, "--data", tmp_path / "none.tsv"))
