"""Data that cannot be trained on or translated: a sentence with file, line and remedy; bytes not UTF-8."""

import gzip
import os
import re
from pathlib import Path

import pytest

from tests.commands.shell import content, refused, unanswered, untouched, weft
from tests.shared import run_fixture
from weft.commands import bulk


def train(recipe: Path, *options: object) -> str:
    """The sentence that training is refused with; the corpus stays as it is, and no model is made."""
    run = recipe.parent.parent / "run"
    said = untouched(recipe.parent, lambda: weft("train", recipe, "--run", run, *options))
    assert not (run / "model.safetensors").exists()
    return said


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", r"train\.yy: the file is empty; give one with at least one line"),
        (b"\x7fELF\x02\x01\x01\0\0\0\n" * 400, r"train\.yy: expected plain text, got a program"),
        (b"\1\0\0\2\n" * 400, r"train\.yy:1: a NUL byte, .*convert the file \(iconv"),
        (b"uno\n" * 396 + b"caf\xe9\n", r"train\.yy:397: not UTF-8 \(byte 0xe9.*convert the file, .*iconv"),
        ("uno\n".encode("utf-16-le"), r"train\.yy:1: a NUL byte.*convert the file, probably UTF-16LE"),
        (b"uno\n" * 396, r"train\.xx has 397 lines and .*train\.yy has 396; .* must be equal"),
        (b"\n" * 397, r"(there is no text to learn a vocabulary from|no pair is left)"),
        (
            gzip.compress(b"uno\n" * 397, mtime=0)[:-9],
            r"train\.yy: damaged compressed file .*copy or download it again",
        ),
    ],
    ids=["empty", "program", "binary", "latin-1", "utf-16", "unequal", "blank", "cut"],
)
@pytest.mark.parametrize("name", ["train", "valid"])
def test_a_bad_file_is_named(toy: Path, name: str, data: bytes, sentence: str) -> None:
    if name == "valid":
        if not data.strip():
            return
        data = data.replace(b"uno\n" * 384, b"", 1)
        sentence = sentence.replace("train", "valid").replace("397", "13").replace("396", "12")
    (toy.parent / f"{name}.yy").write_bytes(data)
    assert re.search(sentence, train(toy))


@pytest.mark.parametrize("name", ["train.xx", "train.yy", "valid.xx", "test.yy"])
def test_a_missing_file_is_named_before_a_run_is_made(toy: Path, tmp_path: Path, name: str) -> None:
    (toy.parent / name).unlink()
    before = content(tmp_path)
    said = train(toy)
    assert f"{toy.parent / name}: no such file" in said and "give the part of the name before" in said
    assert content(tmp_path) == before


def test_a_vocabulary_that_the_data_cannot_give_leaves_no_run(toy: Path) -> None:
    before = content(toy.parent.parent)
    said = train(toy, "data.vocabulary.kind=bpe", "data.vocabulary.size=7")
    assert re.search(r"size 7 is too small for bpe: .* set data.vocabulary.size to \d+ or more", said)
    assert content(toy.parent.parent) == before


def test_pairs_that_are_all_too_long(toy: Path) -> None:
    (toy.parent / "train.xx").write_text("alpha beta gamma\n" * 5)
    (toy.parent / "train.yy").write_text("uno due tre\n" * 5)
    said = train(toy, "data.max_length=2")
    assert re.search(
        r"no pair is left of 5: 0 .* empty side, 5 have more than 2 tokens; raise max_length", said
    )


@pytest.mark.parametrize(
    ("older", "sentence"),
    [(False, "valid.yy: has changed since the training of"), (True, "valid.yy:1: not UTF-8")],
    ids=["digests", "older version"],
)
def test_a_run_whose_data_is_damaged_later_is_as_it_was(
    toy: Path, tmp_path: Path, older: bool, sentence: str
) -> None:
    run = tmp_path / "run"
    assert weft("train", toy, "--run", run, "training.max_updates=1").code == 0
    if older:
        (run / "data.json").unlink()  # runs of earlier versions have no digests of their data
    (toy.parent / "valid.yy").write_bytes(b"\xff\n")
    before = content(run)
    assert sentence in refused(weft("train", toy, "--run", run, "training.max_updates=1"))
    assert content(run) == before


def test_lines_to_translate(trained: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.txt"
    bad.write_bytes(b"alpha\n\0\n")
    assert f"{bad}:2: a NUL byte" in unanswered(weft("predict", trained, bad))[0]
    bad.write_bytes(b"\0\nalpha\n")
    assert f"{bad}:1: a NUL byte" in refused(weft("predict", trained, bad))
    bad.write_bytes(b"")
    assert f"{bad}: the file is empty" in refused(weft("predict", trained, bad))
    assert "standard input: the input is empty" in refused(weft("predict", trained, stdin=b""))
    assert "no such file; check the name" in refused(weft("predict", trained, tmp_path / "none.txt"))
    assert "a directory; name a file in it" in refused(weft("predict", trained, tmp_path))


def test_a_bad_file_leaves_older_alignments(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "old.pharaoh").write_text("0-0\n")
    (tmp_path / "bad.txt").write_bytes(b"\0\n" + b"alpha\n" * 3000)
    before = content(tmp_path)
    answer = weft("predict", trained, tmp_path / "bad.txt", "--alignments", tmp_path / "old.pharaoh")
    assert (answer.code, answer.err.count("\n")) == (2, 1)
    assert "bad.txt:1: a NUL byte" in answer.err
    assert content(tmp_path) == before


def test_an_unreadable_directory_is_named(
    trained: Path, toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stat = Path.stat

    def closed(path: Path, **options: bool) -> os.stat_result:
        if "closed" in path.parts:
            raise PermissionError(13, "Permission denied", str(path))
        return stat(path, **options)

    monkeypatch.setattr(Path, "stat", closed)
    sentence = "cannot be read (Permission denied); check its permissions"
    for command in ("predict", "evaluate", "show"):
        assert sentence in refused(weft(command, tmp_path / "closed" / "run"))
    said = refused(weft("train", toy, "--run", tmp_path / "closed" / "run"))
    assert "Permission denied); choose another directory with --run" in said
    said = train(toy, f"data.train={tmp_path / 'closed' / 'train'}")
    assert "train.xx: cannot be read (Permission denied); check the file and its permissions" in said
    said = refused(weft("evaluate", trained, "--output", tmp_path / "closed" / "out"))
    assert "Permission denied); choose another place" in said


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
