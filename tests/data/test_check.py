"""weft data check: one run reports all problems, with their places."""

import gzip
import random
from pathlib import Path

import pytest

from weft.data import report as module
from weft.data.check import PAIRS, check_pairs
from weft.data.plain import check_plain_texts


def write(path: Path, *lines: str | bytes) -> None:
    path.write_bytes(
        b"".join(line.encode() + b"\n" if isinstance(line, str) else line + b"\n" for line in lines)
    )


def told(tmp_path: Path, *paths: Path) -> list[str]:
    found = check_pairs(*paths).findings
    return [str(finding).replace(f"{tmp_path}/", "").partition("; they seem")[0] for finding in found]


def test_clean_files_have_no_findings(tmp_path: Path) -> None:
    write(tmp_path / "train.en", "one cat", "two cats")
    write(tmp_path / "train.de", "eine Katze", "zwei Katzen")
    report = check_pairs(tmp_path / "train.en", tmp_path / "train.de")
    assert report.findings == []
    assert report.summary == f"{tmp_path}/train: 2 pairs\nno problems found; ready to train"


def test_everything_wrong_is_found_in_one_run(tmp_path: Path) -> None:
    good = [f"this is the good sentence number {number}" for number in range(9)]
    gut = [f"das ist der gute Satz mit der Nummer {number}" for number in range(9)]
    bad = ["latin", b"nul \0", "lost \ufffd", "bell \x07", "sep\u2028", "", "", "same", "12 %"]
    write(tmp_path / "train.en", *good, *bad, "cat", "cat", "short", "one more")
    bad = [b"caf\xe9", "N\u00fcll", "weg", "Ton", "Trenner", "leer", "", "same", "12 %"]
    write(tmp_path / "train.de", *gut, *bad, "Katze", "Katze", "lang " * 20)
    write(tmp_path / "test.en", "new", "cat", "one cat")
    write(tmp_path / "test.de", "neu", "Katze", "Katze")
    convert = "other lines are UTF-8, so correct or remove the line"
    assert told(tmp_path, tmp_path / "test", tmp_path / "train") == [
        f"train.de:10: not UTF-8 (byte 0xe9 at position 4 of the line); {convert}",
        "train.en:11: a NUL byte, so this is not UTF-8 text; convert the file (iconv -f "
        "ENCODING -t UTF-8) or remove the line",
        "train.en:12: U+FFFD, a character that an earlier conversion lost; correct or remove the line",
        "train.en:13: U+0007 inside the line; remove it, or split the line there on every side",
        "train.en:14: U+2028 inside the line; remove it, or split the line there on every side",
        "train.en:15: en is empty; training leaves the pair out",
        "train.de:16: de and en are empty; training leaves the pair out",
        "train.en:17: en equals de: 'same'; is it translated?",
        "train.de:20: the same pair as train.de:19: 'Katze'",
        "train.de: unequal numbers of lines (train.de 21, train.en 22); each line needs its pair",
        "train.en:21: en is 0.05 times as long as de, 0.89 is usual; is it its translation?",
        "test.de:2: the same pair as train.de:19: 'Katze'",
    ]


def test_a_table_is_checked_by_its_columns(tmp_path: Path) -> None:
    write(tmp_path / "x.tsv", "id\ten\tde", "1\ta cat\tKatze", "2\tno more", "3\t\tleer", "4\tone\tone")
    assert told(tmp_path, tmp_path / "x.tsv") == [
        "x.tsv:3: expected 3 columns, got 2; correct or remove the line",
        "x.tsv:4: en is empty; training leaves the pair out",
        "x.tsv:5: de equals en: 'one'; is it translated?",
    ]
    (tmp_path / "plain.tsv.gz").write_bytes(gzip.compress(b"a\tb\nsame\tsame\n"))
    assert told(tmp_path, tmp_path / "plain.tsv.gz") == [
        "plain.tsv.gz:2: target equals source: 'same'; is it translated?"
    ]


def test_files_that_cannot_be_read_are_findings_too(tmp_path: Path) -> None:
    (tmp_path / "empty.en").touch()
    write(tmp_path / "empty.de", "x")
    (tmp_path / "cut.tsv.gz").write_bytes(gzip.compress(b"a\tb\n" * 999)[:-20])
    (tmp_path / "bad.tsv.xz").write_bytes(b"plain")
    found = told(
        tmp_path,
        tmp_path / "none",
        tmp_path / "empty",
        tmp_path / "cut.tsv.gz",
        tmp_path / "bad.tsv.xz",
        tmp_path,
    )
    assert found == [
        "none: no such file, nor one with a language after the name, such as none.en",
        found[1],
        "bad.tsv.xz: not compressed, although its name says so; rename it or compress it again",
        "empty.en: the file is empty; give one with at least one line",
        found[4],
    ]
    assert found[1].startswith("cut.tsv.gz: damaged compressed file")
    assert found[4].endswith(": a directory; name a file in it")


def test_sources_that_training_has_too_are_counted(tmp_path: Path) -> None:
    write(tmp_path / "train.tsv", "cat\tKatze", "dog\tHund")
    write(tmp_path / "valid.tsv", "cat\tKater", "cow\tKuh")
    report = check_pairs(tmp_path / "valid.tsv", tmp_path / "train.tsv")
    assert (report.findings, report.shared_sources) == ([], 1)
    assert f"{tmp_path}/train.tsv: 2 pairs\n" in report.summary and "valid.tsv: 2 pairs\n" in report.summary
    assert "lines whose source also occurs in an earlier text: 1" in report.summary


def test_findings_are_bounded_and_counted_to_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 3)
    write(tmp_path / "x.tsv", *["same\tsame"] * 10)
    report = check_pairs(tmp_path / "x.tsv")
    assert len(report.findings) == 6
    assert report.counts == {"same": 10, "duplicate": 9}
    assert set(report.counts) <= set(PAIRS)


def test_one_language_alone_is_checked_for_its_lines(tmp_path: Path) -> None:
    write(tmp_path / "text.txt", "one", "two", "one", b"\xff")
    assert [line.split(": ")[0] for line in told(tmp_path, tmp_path / "text.txt")] == [
        "text.txt:3",
        "text.txt:4",
    ]


def test_plain_text_is_read_as_training_reads_it(tmp_path: Path) -> None:
    (tmp_path / "utf16.txt").write_bytes("one\ntwo\n".encode("utf-16"))
    (tmp_path / "old.txt").write_bytes(b"one\rtwo\rthree\r")
    (tmp_path / "letter.txt").write_bytes(b"%PDF-1.7\nabc\n")
    report = check_plain_texts([tmp_path / name for name in ("utf16.txt", "old.txt", "letter.txt")])
    assert list(report.lines.values()) == [2, 3, 0]
    (finding,) = report.findings
    assert finding.kind == "file" and "letter.txt: expected plain text, got a PDF" in str(finding)


def test_a_swapped_pair_is_found_where_words_have_no_spaces(tmp_path: Path) -> None:
    chance = random.Random(5)
    known = dict(
        zip(["red", "tea", "cat", "sky", "dog", "sea", "man", "sun"], "红茶猫天狗海人日", strict=True)
    )
    rows = [chance.choices(sorted(known), k=6) for _ in range(300)]
    pairs = [[" ".join(words), "".join(known[word] for word in words)] for words in rows]
    pairs[137].reverse()
    for side, name in enumerate(("en", "zh")):
        (tmp_path / f"a.{name}").write_text("".join(f"{pair[side]}\n" for pair in pairs), "utf-8")
    found = check_pairs(tmp_path / "a.en", tmp_path / "a.zh")
    assert [one.line for one in found.findings if one.kind == "swapped"] == [138]
