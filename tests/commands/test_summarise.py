"""Summaries from texts, as a user types it: the marked word of each text is its summary."""

import json
from pathlib import Path

from tests.commands.shell import refused, weft
from weft.tasks.summarise.init import guessed

TASK = "summarise without copying"


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


def test_check_does_not_judge_lengths_and_init_names_a_bad_line(run: Path, tmp_path: Path) -> None:
    train = run.parent / "toy" / "train.tsv"
    assert "proportion" not in weft("data", "check", "--task", "summarise", train).out
    (tmp_path / "bad.tsv").write_text("text\tsummary\nonly one column\n")
    bad = ("init", "summarise", "--train", tmp_path / "bad.tsv", "--valid", train)
    said = refused(weft(*bad, "-o", tmp_path / "o.yaml"))
    assert "bad.tsv:2" in said and not (tmp_path / "o.yaml").exists()


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
