"""Summaries from texts, as a user types it: the marked word of each text is its summary."""

import json
import shutil
from pathlib import Path

import pytest

import weft as package
from tests.commands.given import scored_alike
from tests.commands.shell import refused, weft
from tests.shared import shared_run
from weft.tasks.summarise.init import guessed


@pytest.fixture(scope="module")
def run() -> Path:
    return shared_run("summarise without copying")


def test_it_beats_the_lead_and_says_so(run: Path, tmp_path: Path) -> None:
    answer = weft("evaluate", run, "--full", "--json", tmp_path / "x.json", code=0)
    found = json.loads((tmp_path / "x.json").read_text())
    lead = {name: one["baselines"]["the lead sentence"] for name, one in found["scores"].items()}
    assert set(lead) == set(found["scores"]) == {"ROUGE-1", "ROUGE-2", "ROUGE-L"}
    assert found["scores"]["ROUGE-1"]["value"] > 2 * lead["ROUGE-1"]
    assert "kind:L|F:beta1" in answer.unfolded and "better than the best baseline" in answer.unfolded
    assert 0 < found["copied"] <= 1


def test_predict_writes_a_summary_a_line_with_pictures(run: Path, tmp_path: Path) -> None:
    lines = b"alpha beta. It is omega here.\n\n"
    answer = weft("predict", run, "--pictures", tmp_path / "p", stdin=lines)
    assert answer.code == 0 and answer.lines == ["omega", ""]
    assert (tmp_path / "p" / "1.png").read_bytes().startswith(b"\x89PNG")


def test_init_writes_a_recipe_that_trains_and_check_does_not_judge_lengths(run: Path, tmp_path: Path) -> None:
    train, out = run.parent / "toy" / "train.tsv", tmp_path / "mine.yaml"
    weft("init", "summarise", "--train", train, "-o", out, code=0)
    small = ("model.encoder.sizes=[8]", "model.decoder.decoder.sizes=[8]", "training.max_updates=1")
    weft("train", out, "--run", tmp_path / "run", *small, code=0)
    assert "proportion" not in weft("data", "check", "--task", "summarise", train).out
    (tmp_path / "bad.tsv").write_text("text\tsummary\nonly one column\n")
    bad = ("init", "summarise", "--train", tmp_path / "bad.tsv", "--valid", train)
    said = refused(weft(*bad, "-o", tmp_path / "o.yaml"))
    assert "bad.tsv:2" in said and not (tmp_path / "o.yaml").exists()


def test_given_summaries_are_scored_and_runs_write_together(run: Path, tmp_path: Path) -> None:
    rows = (run.parent / "toy" / "test.tsv").read_text().splitlines()[1:]
    sources = [row.split("\t")[0] for row in rows]
    found = [each[0] for each in package.load(run).translate(sources)]
    scored_alike(run, found, tmp_path)
    lines = "".join(f"{source}\n" for source in sources).encode()
    shutil.copytree(run, tmp_path / "copy")
    written = weft("predict", run, "--ensemble", tmp_path / "copy", stdin=lines).lines
    assert written == [one.text for one in found]
    given = tmp_path / "given.txt"
    assert "--plot" in refused(weft("evaluate", run, "--score", given, "--plot", tmp_path / "x.png"))
    assert "combined with beam" in refused(weft("evaluate", run, "--score", given, "--beam", 3))


def test_a_text_without_a_summary_is_in_no_score(run: Path, tmp_path: Path) -> None:
    lines = (run.parent / "toy" / "test.tsv").read_text().splitlines()
    found = []
    for name, more in (("kept.tsv", []), ("whole.tsv", ["alpha beta. It is omega here.\t", "\tdelta"])):
        (tmp_path / name).write_text("\n".join([*lines, *more]) + "\n")
        weft("evaluate", run, "--data", tmp_path / name, "--json", tmp_path / "x.json", code=0)
        found.append(json.loads((tmp_path / "x.json").read_text()))
    assert found[0]["scores"] == found[1]["scores"]
    assert [one["left_out"] for one in found] == [0, 2] and "2 more left out, with an empty side" in found[1][
        "title"
    ]


def test_check_init_and_train_agree_on_the_columns_of_a_table(tmp_path: Path) -> None:
    rows = [f"the old dog number {n} sees a green house;dog {n}" for n in range(9)]
    (tmp_path / "news.csv").write_text("\n".join(["\ufeffarticle;highlights", *rows]) + "\n")
    checked = weft("data", "check", tmp_path / "news.csv", "--task", "summarise")
    assert checked.code == 0 and "columns 'article' and 'highlights' are read" in checked.lines[0]
    began = weft("init", "summarise", tmp_path / "news.csv", "-o", tmp_path / "x.yaml")
    assert (
        began.code == 0
        and "columns 'article' and 'highlights' are read as text and summary" in began.lines[0]
    )
    assert "source: article" in (tmp_path / "x.yaml").read_text() and "--source article" in began.out
    weft("train", tmp_path / "x.yaml", "--run", tmp_path / "run", "training.max_updates=1", code=0)


def test_names_of_columns_decide_before_lengths(tmp_path: Path) -> None:
    rows = [{"id": n, "Summary": f"{n} " + "a long text " * 9, "Dialogue": f"it is {n}"} for n in range(5)]
    (tmp_path / "a.json").write_text(json.dumps(rows))
    given = {"train": tmp_path / "a.json", "text": "text", "summary": "summary"}
    found = guessed(given, lambda note: None)
    assert (found["text"], found["summary"]) == ("Dialogue", "Summary")
