"""Lines of any bytes: N in are N out; bad ones and pairs without a side are named; forms of Unicode count."""

import json
import re
import shutil
import unicodedata
from pathlib import Path

import pytest

from tests.commands.shell import refused, unanswered, weft
from tests.shared import run_fixture, shared_run
from weft.commands import bulk


@pytest.mark.parametrize(
    ("text", "outputs"),
    [
        (b"\n", [""]),
        (b"alpha", ["uno"]),
        (b"alpha\n\n\nbeta\n", ["uno", "", "", "due"]),
        (b"alpha\r\n\r\nbeta\r\n", ["uno", "", "due"]),
        (b"\xef\xbb\xbfalpha\nbeta", ["uno", "due"]),
        ("alpha\u2028beta\ngamma\n".encode(), ["uno due", "tre"]),
        ("alpha\x0cbeta\x85gamma\n".encode(), ["uno due tre"]),
        (b"  \t \n alpha   beta \n", ["", "uno due"]),
    ],
    ids=["empty", "no-end", "gaps", "crlf", "bom", "u2028", "form-feed", "spaces"],
)
def test_as_many_lines_come_out(trained: Path, text: bytes, outputs: list[str]) -> None:
    answer = weft("predict", trained, stdin=text, code=0)
    assert answer.out == "".join(f"{line}\n" for line in outputs)


@pytest.mark.parametrize("options", [("--nbest", 3), ("--nbest", 3, "--sample")])
def test_an_empty_line_has_as_many_answers_as_the_others(trained: Path, options: tuple[object, ...]) -> None:
    answer = weft("predict", trained, *options, stdin=b"alpha\n\nbeta\n")
    assert len(answer.lines) == 9
    assert answer.lines[3:6] == ["", "", ""]


def test_more_lines_than_a_window_keep_their_order(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from weft.tasks.seq2seq.translator import Translator

    monkeypatch.setattr(Translator, "piped", 5)
    words = ["alpha", "", "beta gamma", "delta", "zeta eta theta", "iota"] * 4
    one_by_one = [weft("predict", trained, stdin=f"{word}\n".encode()).out for word in words[:6]] * 4
    assert weft("predict", trained, stdin="\n".join(words).encode()).out == "".join(one_by_one)


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


def figures(run: Path, data: Path, *more: object) -> dict:
    path = data.with_suffix(".json")
    answer = weft(
        "evaluate", run, "--data", data, "--json", path, "--output", data.with_suffix(".out"), *more, code=0
    )
    return {"printed": answer.out, **json.loads(path.read_text())}


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
    scores = [
        [
            json.loads(line).get("scores")
            for line in (tmp_path / name / "metrics.jsonl").read_text().splitlines()
        ]
        for name in ("kept", "whole")
    ]
    assert any(scores[0]) and scores[0] == scores[1]


def test_data_without_a_whole_pair_is_refused(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "none.tsv").write_text("xx\tyy\nalpha\t\n\tuno\n")
    assert "text on both sides" in refused(weft("evaluate", trained, "--data", tmp_path / "none.tsv"))
