"""References in another Unicode form are named, and scored in the form of the outputs too."""

import re
import shutil
import unicodedata
from pathlib import Path

import pytest

from tests.commands.shell import weft
from tests.shared import shared_run


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
