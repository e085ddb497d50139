"""weft predict --document: a file in, the same file in the other language out; options and errors."""

import re
import sys
from pathlib import Path

import pytest

from tests.commands.shell import refused, weft
from weft.commands.documents import OTHERS, check_options
from weft.errors import ConfigError

for _name in ("sentencex", "lxml", "polib"):
    pytest.importorskip(_name, reason=f"{_name} is not installed: pip install -e .[documents]")

PAGE = "<h1>alpha</h1>\n<p>beta <b>gamma</b> delta</p><!-- eta -->\n"
THERE = "<h1>uno</h1>\n<p>due <b>tre</b> quattro</p><!-- eta -->\n"


def test_a_page_is_translated_and_its_markup_moves(trained: Path, tmp_path: Path) -> None:
    page, out = tmp_path / "page.html", tmp_path / "out.html"
    page.write_text(PAGE)
    assert weft("predict", trained, "--document", page).out == THERE
    page.write_text(f"<!DOCTYPE html>\n<html>{PAGE}</html>")
    assert weft("predict", trained, "--document", page).out == f"<!DOCTYPE html>\n<html>{THERE}</html>"
    page.write_text(PAGE)
    answer = weft("predict", trained, "--document", page, "--output", out)
    assert (answer.code, answer.out, out.read_text()) == (0, "", THERE)
    assert "2 sentences" in answer.err


def test_a_model_without_attention_places_markup_in_proportion(blind: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(PAGE)
    found = weft("predict", blind, "--document", page).out
    assert found.startswith("<h1>") and found.endswith("</p><!-- eta -->\n")
    (marked,) = [part.partition("</b>")[0] for part in found.split("<b>")[1:]]
    assert marked.strip()


def test_a_memory_gets_what_it_lacks(trained: Path, tmp_path: Path) -> None:
    memory = tmp_path / "a.tmx"
    memory.write_text('<tmx><body><tu><tuv xml:lang="xx"><seg>zeta eta</seg></tuv></tu></body></tmx>')
    found = weft("predict", trained, "--document", memory).out
    assert '<tuv xml:lang="yy"><seg>sei sette</seg></tuv>' in found


def test_files_that_cannot_be_read_are_refused_with_their_place(trained: Path, tmp_path: Path) -> None:
    assert "cannot be read" in refused(weft("predict", trained, "--document", tmp_path / "no.txt"))
    broken = tmp_path / "a.tmx"
    broken.write_text("<tmx>\n<body>\n</tmx>")
    assert f"{broken}:3: expected well-formed XML" in refused(weft("predict", trained, "--document", broken))
    broken.write_text('<tmx><body><tu><tuv xml:lang="de"><seg>x</seg></tuv></tu></body></tmx>')
    assert "expected texts in 'xx'" in refused(weft("predict", trained, "--document", broken))


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.pdf", b"%PDF-1.7\n", "got a PDF; convert it: pdftotext"),
        ("a.txt", b"%PDF-1.7\n", "got a PDF; convert it: pdftotext"),
        ("a.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(99), "--convert-to docx"),
        ("a.odt", b"PK\3\4" + bytes(26) + b"word/document.xml", r"a Word document; name it a\.docx"),
        ("a.docx", b"\x89PNG\r\n\x1a\n\0\0", "got a PNG picture; name another file"),
        ("a.docx", b"", "the file is empty"),
    ],
)
def test_a_file_that_is_no_document_says_what_it_is(
    trained: Path, tmp_path: Path, name: str, content: bytes, said: str
) -> None:
    (tmp_path / name).write_bytes(content)
    answer = refused(weft("predict", trained, "--document", tmp_path / name))
    assert re.search(rf"{name}: .*{said}", answer), answer


@pytest.mark.parametrize(("name", "said"), [("a.docx", "--output"), ("a.txt", "")])
def test_a_file_that_no_terminal_shows_needs_an_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, said: str
) -> None:
    path = tmp_path / name
    path.write_bytes(b"PK\3\4" + bytes(26) + b"word/document.xml" if said else b"text\n")
    given = dict.fromkeys(OTHERS) | {"document": path, "output": None}
    check_options(given)  # into a pipe
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    if said:
        with pytest.raises(ConfigError, match=r"add --output \S*a\.translated\.docx"):
            check_options(given)
    else:
        check_options(given)


def test_a_document_given_as_lines_is_named(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "film.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nalpha\n")
    answer = weft("predict", trained, tmp_path / "film.srt")
    assert answer.code == 0
    assert "film.srt is read as lines; to translate its text alone, give it with --document" in answer.err
    (tmp_path / "film.txt").write_text("alpha\n")
    assert "--document" not in weft("predict", trained, tmp_path / "film.txt").err
