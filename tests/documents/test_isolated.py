"""Documents of strangers in a process of their own: the same translation, and an end to what costs much."""

import asyncio
import io
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from weft.documents import isolated
from weft.documents.isolated import DocumentBounds
from weft.errors import ConfigError, DataError
from weft.text.segments import Links, Sentence, WrittenSentence
from weft.words import spans as words

for _name in ("lxml", "sentencex"):
    pytest.importorskip(_name, reason=f"{_name} is not installed: pip install -e .[documents]")

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def document_sentences(*arguments: Any) -> list[Sentence]:
    return asyncio.run(isolated.document_sentences(*arguments))


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
    translated = isolated.translated_document(data, "a.html", "en", "es", written, DocumentBounds())
    assert asyncio.run(translated) == b"<h1>ONE</h1><p>TWO <b>THREE</b>. FOUR.</p>"
    detected = isolated.document_language(data, "a.html", DocumentBounds(), 7)
    assert asyncio.run(detected) == ("", "One Two")


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


def test_a_child_ends_when_nobody_waits_for_it_any_more() -> None:
    async def left() -> int:
        started = asyncio.ensure_future(
            isolated.document_sentences(docx("<w:p/>" * 400_000), "a.docx", "en", "es", DocumentBounds())
        )
        while not (found := children()):
            await asyncio.sleep(0.01)
        started.cancel()
        with pytest.raises(asyncio.CancelledError):
            await started
        return found[0]

    assert asyncio.run(left()) not in children()


def children() -> list[int]:
    """Processes that open documents, of this one."""
    found = subprocess.run(["pgrep", "-P", str(os.getpid()), "-f", "isolated"], capture_output=True)
    return [*map(int, found.stdout.split())]


def test_a_child_that_still_writes_is_left_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its pipe is full when it is killed, as the loop had something else to do."""
    program, read, delays = tmp_path / "python", asyncio.StreamReader.read, iter([9.0, 9.0])
    program.write_text("#!/bin/sh\nexec yes\n")
    program.chmod(0o700)

    async def late(reader: asyncio.StreamReader, count: int = -1) -> bytes:
        await asyncio.sleep(next(delays, 0))
        return await read(reader, count)

    async def scene() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await isolated.document_language(b"a", "a.txt", DocumentBounds(), 9)

    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setattr(asyncio.StreamReader, "read", late)
    asyncio.run(asyncio.wait_for(scene(), 5))


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
