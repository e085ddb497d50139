"""Documents of strangers in a process of their own: the same translation, and an end to what costs much."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from weft.documents.isolated import DocumentBounds, document_language, document_sentences, translated_document
from weft.errors import ConfigError, DataError
from weft.text.links import Links
from weft.text.segments import Sentence, WrittenSentence
from weft.words import spans as words

for _name in ("lxml", "sentencex"):
    pytest.importorskip(_name, reason=f"{_name} is not installed: pip install -e .[documents]")

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def docx(body: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        text = f'<w:document xmlns:w="{WORD}"><w:body>{body}</w:body></w:document>'
        archive.writestr("word/document.xml", text)
    return out.getvalue()


def test_a_document_is_read_and_written_as_in_this_process() -> None:
    data = b"<h1>One</h1><p>Two <b>three</b>. Four.</p>"
    found = document_sentences(data, "a.html", "en", "es", DocumentBounds())
    assert found == [Sentence("One"), Sentence("Two three.", True), Sentence("Four.", True)]
    written = []
    for one in found:
        spans = words(one.text)
        weights = [[float(row == column) for column in range(len(spans))] for row in range(len(spans))]
        written.append(WrittenSentence(one.text.upper(), Links(np.array(weights), spans, spans)))
    assert translated_document(data, "a.html", "en", "es", written, DocumentBounds()) == (
        b"<h1>ONE</h1><p>TWO <b>THREE</b>. FOUR.</p>"
    )
    assert document_language(data, "a.html", DocumentBounds(), 7) == ("", "One Two")


@pytest.mark.parametrize(
    ("bounds", "count", "sentence"),
    [
        (DocumentBounds(), 1_500_000, "word/document.xml: expected at most 1,000,000 tags, got 1,500,004"),
        pytest.param(
            DocumentBounds(memory_mib=200),
            400_000,
            "opening it takes more than 200 MiB of memory; send a part of it",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            DocumentBounds(cpu_seconds=1),
            400_000,
            "opening it takes more than 1 second of computing",
            marks=pytest.mark.slow,
        ),
        (DocumentBounds(seconds=0.05), 1, "opening it takes more than 0.05 seconds"),
    ],
    ids=["tags", "memory", "cpu", "clock"],
)
def test_a_small_file_that_costs_much_is_refused(bounds: DocumentBounds, count: int, sentence: str) -> None:
    data = docx("<w:p/>" * count)
    assert len(data) < 20_000
    with pytest.raises(DataError, match=sentence):
        document_sentences(data, "a.docx", "en", "es", bounds)


def test_errors_come_back_with_their_place() -> None:
    with pytest.raises(DataError, match=r"^a\.tmx:3: expected well-formed XML") as error:
        document_sentences(b"<tmx>\n<a>\n</tmx>", "a.tmx", "en", "es", DocumentBounds())
    assert error.value.line == 3
    with pytest.raises(ConfigError, match=r"expected a file that ends in \.txt"):
        document_sentences(b"x", "a.pdf", "en", "es", DocumentBounds())
    with pytest.raises(DataError, match="expected at most 9 characters, got 10"):
        document_sentences(b"0123456789", "a.txt", "en", "es", DocumentBounds(characters=9))


def test_nothing_in_the_current_folder_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("json", "lxml", "msgspec", "numpy", "pickle", "resource", "sentencex", "weft"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('a file of the current folder was run')")
    monkeypatch.chdir(tmp_path)
    assert document_sentences(b"One.", "a.txt", "en", "es", DocumentBounds()) == [Sentence("One.")]
