"""What a translation keeps of its source, or names: one rule for lines, Python, documents and the server."""

from pathlib import Path

import pytest

import weft as package
from tests.commands.shell import weft
from tests.shared import shared_run

COPIED = [
    "2",
    "2026-11-26",
    "1,234.50 €",
    "🙂",
    "北京",
    "{count} / {0}",
    "%s: %d",
    "&nbsp;",
    "https://a.org/b",
    "½",
    "F1",
    "Ctrl+Shift+F5",
    "19.99 EUR",
]
KEPT = {
    "alpha 🙂 beta": "🙂",
    "alpha 北京 beta": "北京",
    "alpha %s beta": "%s",
    "beta {count} gamma": "{count}",
    "beta %(name)s": "%(name)s",
    "mailto me@a.org beta": "me@a.org",
    r"beta\ngamma": r"\n",
    "alpha F12 beta": "F12",
}


@pytest.mark.parametrize("options", [(), ("--beam", 1), ("--nbest", 2)])
def test_text_without_letters_is_copied(trained: Path, options: tuple[object, ...]) -> None:
    found = weft("predict", trained, *options, stdin="".join(f"{one}\n" for one in COPIED).encode(), code=0)
    times = 2 if "--nbest" in options else 1
    assert found.lines == [one for one in COPIED for _ in range(times)]
    (line,) = found.err.splitlines()[-1:]
    assert line.startswith("note: the vocabulary lacks") and "🙂 北 京" in line
    assert line.endswith("; the answers copy them") and "the first standard input:" in line


def test_parts_are_kept_and_other_lines_stay_the_same(trained: Path) -> None:
    lines = [*KEPT, "alpha beta"]
    text = "".join(f"{one}\n" for one in lines).encode()
    found, alone = (
        weft("predict", trained, stdin=text),
        weft("predict", trained, "--set", "verbatim=false", stdin=text),
    )
    assert found.code == alone.code == 0
    for line, answer in zip(KEPT, found.lines, strict=False):
        assert answer.count(KEPT[line]) == 1, answer
    assert "expected placeholders" not in found.err
    assert found.lines[-1] == alone.lines[-1] == "uno due"
    assert not any(part in answer for part, answer in zip(KEPT.values(), alone.lines, strict=False))
    assert "the model reads them as unknown" in alone.err


def test_tags_surround_their_words(trained: Path) -> None:
    found = weft("predict", trained, stdin=b'alpha <g id="1">beta</g> gamma\nalpha<x/> beta\n')
    assert found.lines == ['uno <g id="1">due</g> tre', "uno<x/> due"]


def test_what_is_lost_is_named_with_its_line(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weft.tasks.seq2seq.translator.restored", lambda line, found, lost: found.text)
    (tmp_path / "in.txt").write_text("alpha\nbeta %s\n")
    for options in ((), ("--output", tmp_path / "out.txt")):
        found = weft("predict", trained, tmp_path / "in.txt", *options, code=0)
        assert (
            f"{tmp_path}/in.txt:2: expected placeholders %s, got none; correct the translation" in found.err
        )
        assert found.err.splitlines()[-1] == "note: 1 answer named above; --strict refuses what is named"


def test_strict_refuses_what_it_would_name(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.tasks.seq2seq.translator.restored", lambda line, found, lost: found.text)
    found = weft("predict", trained, "--strict", stdin=b"alpha\nbeta %s\ngamma 14\n")
    assert found.code == 3 and found.lines[1:] == ["", ""] and found.lines[0]
    assert "standard input:2: expected placeholders %s, got none" in found.err
    assert "standard input:3: 14 may not be in its place" in found.err


def test_what_a_required_word_displaces_is_named(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "weft.tasks.seq2seq.translator.restored", lambda line, found, lost: found.text.replace("due", "🙂")
    )
    found = weft("predict", trained, "--require", "due", stdin="alpha 🙂 beta\n".encode())
    assert found.code == 0 and "due" in found.lines[0].split()
    assert "standard input:1: the answer lacks 🙂, which would stand in place of a required word" in found.err
    assert "🙂, in 1 input, the first standard input:1; the answers copy them, except in place" in found.err


def test_python_warns(trained: Path) -> None:
    translator = package.load(trained, device="cpu")
    with pytest.warns(
        UserWarning, match="the vocabulary lacks 🙂, in 1 input, the first input; the answers copy them"
    ):
        assert translator.predict("alpha 🙂").split()[-1] == "🙂"
    assert translator.predict("2026-11-26") == "2026-11-26"


def test_documents_keep_the_same(trained: Path, tmp_path: Path) -> None:
    pytest.importorskip("polib", reason="polib is not installed: pip install -e .[documents]")
    pytest.importorskip("sentencex", reason="sentencex is not installed: pip install -e .[documents]")
    (tmp_path / "a.txt").write_text("2026-11-26\nalpha 🙂 beta\n%s beta\n", "utf-8")
    entries = ["2", "beta %s gamma", "alpha 🙂"]
    catalogue = 'msgid ""\nmsgstr ""\n\n' + "".join(f'msgid "{one}"\nmsgstr ""\n\n' for one in entries)
    (tmp_path / "a.po").write_text(catalogue, "utf-8")
    text = weft("predict", trained, "--document", tmp_path / "a.txt")
    assert text.code == 0 and text.lines[0] == "2026-11-26"
    assert "🙂" in text.lines[1] and "%s" in text.lines[2]
    assert "a.txt: 'alpha 🙂 beta'; the answers copy them" in text.err
    found = weft("predict", trained, "--document", tmp_path / "a.po")
    assert 'msgstr "2"' in found.out and "%s" in found.out.split('msgid "beta')[1].split("msgstr")[1]
    assert "the vocabulary lacks 🙂" in found.err


def test_without_attention_characters_are_named_and_placeholders_kept(blind: Path) -> None:
    found = weft("predict", blind, stdin="2\nalpha 🙂\nbeta %s\n".encode())
    assert found.lines[0] == "2" and "%s" in found.lines[2]
    assert "the vocabulary lacks 🙂" in found.err and "the model reads them as unknown" in found.err


def test_alignments_count_the_words_that_are_written(trained: Path, tmp_path: Path) -> None:
    lines = ["2 / 3", "alpha 🙂 beta"]
    file = tmp_path / "out.pharaoh"
    found = weft(
        "predict", trained, "--alignments", file, stdin="".join(f"{one}\n" for one in lines).encode()
    )
    pairs = [[pair.split("-") for pair in row.split()] for row in file.read_text().splitlines()]
    assert pairs[0] == [["0", "0"], ["1", "1"], ["2", "2"]]
    place = str(found.lines[1].split().index("🙂"))
    assert ["1", place] in pairs[1]


@pytest.mark.parametrize(
    "name", ["summarise", pytest.param("summarise without copying", marks=pytest.mark.slow)]
)
def test_a_summary_of_text_without_letters_is_the_text(name: str) -> None:
    lines = ["2026-11-26", "42", "€ 1,50", "🙂", "%s / {count}", "https://a.org/b"]
    text = "".join(f"{one}\n" for one in [*lines, "北京"]).encode()
    found = weft("predict", shared_run(name), stdin=text)
    assert found.lines[:-1] == lines and found.lines[-1] != "北京"
    assert "lacks 北 京, in 1 input, the first standard input:7; the model reads them as unknown" in found.err
    left = weft("predict", shared_run(name), "--set", "verbatim=false", stdin=text)
    assert not set(left.lines) & {"2026-11-26", "42"}


@pytest.mark.parametrize("task", ["classify", "tag", "language", "summarise"])
def test_other_tasks_name_what_they_read_as_unknown(task: str) -> None:
    found = weft("predict", shared_run(task), stdin="a 🙂 and 京\nb 🙂\n".encode(), code=0)
    (note,) = [line for line in found.err.splitlines() if line.startswith("note: ")]
    assert "🙂" in note and "京" in note and "in 2 inputs, the first standard input:1" in note
    assert note.endswith("the model reads them as unknown")


def test_an_evaluation_names_what_the_vocabulary_lacks(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "t.xx").write_text("alpha 🙂 beta\n2\n", "utf-8")
    (tmp_path / "t.yy").write_text("uno 🙂 due\n2\n", "utf-8")
    found = weft("evaluate", trained, "--data", tmp_path / "t", code=0)
    assert "lacks" in found.out and "🙂" in found.out and "; the answers copy them" in found.out
