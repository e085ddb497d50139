"""A line that is not UTF-8 leaves its answer empty and is named with the remedy; the others are answered."""

from pathlib import Path

import pytest

from tests.commands.shell import refused, unanswered, weft
from tests.shared import run_fixture
from weft.commands import bulk

BYTE = "not UTF-8 (byte 0xe9 at position 4 of the line); "
LINES = [b"alpha", b"caf\xe9 beta", b"beta gamma", b"", b"caf\xe9", b"gamma"]


def test_predict_answers_the_other_lines(trained: Path, tmp_path: Path) -> None:
    good = [line if b"\xe9" not in line else b"" for line in LINES]
    expected = weft("predict", trained, stdin=b"\n".join(good), code=0)
    path, out = tmp_path / "in.txt", tmp_path / "out.txt"
    path.write_bytes(b"\n".join(LINES))
    for options, stdin, name in (((), b"\n".join(LINES), "standard input"), ((path,), b"", str(path))):
        answer = weft("predict", trained, *options, stdin=stdin)
        first, second = unanswered(answer)
        assert first.startswith(f"weft: {name}:2: {BYTE}") and second.startswith(f"weft: {name}:5: {BYTE}")
        assert "correct or remove the line" in first or "iconv" in first
        assert answer.out == expected.out
    assert len(unanswered(weft("predict", trained, path, "--output", out))) == 2
    assert out.read_text() == expected.out


def test_lines_of_several_chunks_are_named_by_their_place_in_the_file(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "CHUNK", 2)
    path, out = tmp_path / "in.txt", tmp_path / "out.txt"
    path.write_bytes(b"".join(line + b"\n" for line in LINES))
    answer = weft("predict", trained, path, "--output", out, "--processes", 1)
    said = unanswered(answer)
    places = [number for number, line in enumerate(LINES, 1) if b"\xe9" in line]
    assert [one.split(": ")[1] for one in said] == [f"{path}:{place}" for place in places]
    assert out.read_text() == weft("predict", trained, path).out


def test_training_and_evaluation_name_the_line(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.xx").write_bytes(b"alpha\ncaf\xe9\n")
    (tmp_path / "bad.yy").write_bytes(b"uno\ndue\n")
    said = refused(weft("evaluate", trained, "--data", tmp_path / "bad"))
    assert said.startswith(f"weft: {tmp_path / 'bad.xx'}:2: {BYTE}")


tagger = run_fixture("tag")


def sentence(word: bytes, number: int = 1) -> bytes:
    return str(number).encode() + b"\t" + word + b"\t" + b"\t".join([b"_"] * 8) + b"\n"


@pytest.mark.parametrize(
    ("parts", "line"),
    [
        ([b"telo beding\n", b"caf\xe9 telo\n", b"gruno telo\n"], 2),
        ([b"telo\nbeding\n\n", b"telo\ncaf\xe9\nbeding\n\n", b"gruno\n\n"], 5),
        ([sentence(b"telo") + b"\n", sentence(b"caf\xe9") + b"\n", sentence(b"gruno") + b"\n"], 3),
        ([sentence(b"telo") + b"\n", sentence(b"beding", 3) + b"\n", sentence(b"gruno") + b"\n"], 3),
    ],
    ids=["sentences", "words", "conllu", "conllu, wrong number"],
)
def test_a_sentence_with_such_a_line_has_no_tags(
    tagger: Path, parts: list[bytes], line: int, tmp_path: Path
) -> None:
    (tmp_path / "in").write_bytes(b"".join(parts))
    answer = weft("predict", tagger, tmp_path / "in")
    (said,) = unanswered(answer)
    assert said.startswith(f"weft: {tmp_path / 'in'}:{line}: ")
    alone = [weft("predict", tagger, stdin=part).out for part in parts[::2]]
    assert answer.out == alone[0] + "\n" + alone[1]
