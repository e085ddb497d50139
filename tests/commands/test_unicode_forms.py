"""References in another Unicode form are named, and scored in the form of the outputs too."""

import re
import shutil
import unicodedata
from pathlib import Path

from tests.commands.shell import weft


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
    line = next(one for one in found[1].out.splitlines() if "Unicode form" in one)
    assert f"{count} of {len(composed)} references are not in Unicode form NFC" in line
    assert f"with all texts in NFC: BLEU {bleu}" in line
    assert "Unicode form" not in found[0].out
    said = weft("data", "check", tmp_path / "nfd.xx", tmp_path / "nfd.yy")
    assert "nfd.yy" in said.out and "not in Unicode form NFC" in said.out + said.err
    assert "Unicode form" not in weft("data", "check", tmp_path / "nfc.xx", tmp_path / "nfc.yy").out
