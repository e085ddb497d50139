r"""N lines in are N lines out, in order, whatever the lines are: empty, CRLF, without an end, with U+2028."""

from pathlib import Path

import pytest

from tests.commands.shell import weft


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
