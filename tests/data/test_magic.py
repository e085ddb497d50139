"""Files that other programs wrote, given as text: what they are, and what to type."""

import io
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import openpyxl
import pandas as pd
import pytest
import soundfile
from odf.opendocument import OpenDocumentSpreadsheet, OpenDocumentText
from PIL import Image

from weft.data.check import check_pairs
from weft.data.lines import read_lines
from weft.data.magic import kind_of_bytes, not_text
from weft.errors import DataError


def packed(*names: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for name in names:
            file.writestr(name, "<x/>")
    return out.getvalue()


def saved(save: object, *given: object, **named: object) -> bytes:
    out = io.BytesIO()
    save(out, *given, **named)  # type: ignore[operator]
    return out.getvalue()


def tar() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as file:
        file.addfile(tarfile.TarInfo("a.txt"))
    return out.getvalue()


FRAME = pd.DataFrame({"a": [1.0, 2.0]})
TONE = np.zeros(8000)
FILES = {
    "a.xlsx": (saved(openpyxl.Workbook().save), "an Excel workbook; .*convert it: soffice .* csv"),
    "a.docx": (
        packed("[Content_Types].xml", "_rels/.rels", "word/document.xml"),
        "a Word document; .*--document",
    ),
    "a.pptx": (packed("[Content_Types].xml", "ppt/presentation.xml"), "a PowerPoint presentation"),
    "a.odt": (saved(OpenDocumentText().write), "an OpenDocument text; .*--document.*pandoc"),
    "a.ods": (saved(OpenDocumentSpreadsheet().write), "an OpenDocument spreadsheet; .* csv"),
    "a.zip": (packed("one.txt", "two.txt"), "a .zip archive; unpack it: unzip"),
    "a.tar.gz": (tar(), "a tar archive; unpack it: tar xf"),
    "a.feather": (
        saved(FRAME.to_feather),
        r"a Feather table; convert it: python -c .*pd\.read_feather\('",
    ),
    "a.dta": (saved(FRAME.to_stata), r"a Stata table; convert it: .*read_stata\('.*csv', index=False\)"),
    "a.orc": (saved(FRAME.to_orc), "an ORC table; .*read_orc"),
    "a.sav": (b"$FL2@(#) SPSS DATA FILE" + bytes(99), "an SPSS table; .*read_spss"),
    "a.sas7bdat": (bytes(12) + b"\xc2\xea\x81\x60" + bytes(99), "a SAS table; .*read_sas"),
    "a.pkl": (saved(FRAME.to_pickle), "a pickle of Python; save it as plain text"),
    "a.h5": (b"\x89HDF\r\n\x1a\n" + bytes(99), "an HDF5 file; save it"),
    "a.numbers": (packed("Index/Document.iwa"), "a document of Numbers, Pages or Keynote; save it"),
    "a.lfs": (
        b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 3\n",
        r"a Git LFS pointer \(type git lfs pull\)",
    ),
    "a.pdf": (b"%PDF-1.7\n", "a PDF; convert it: pdftotext"),
    "a.rtf": (rb"{\rtf1\ansi text}", "an RTF document; convert it: pandoc"),
    "a.doc": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504), "an old Office file; convert it: soffice"),
    "a.npy": (saved(np.save, np.zeros(3)), "an array of NumPy"),
    **{
        f"a.{form.lower()}": (saved(Image.new("RGB", (9, 9)).save, form), f"a {form} picture")
        for form in ("PNG", "JPEG", "GIF", "BMP", "TIFF")
    },
    "a.webp": (saved(Image.new("RGB", (9, 9)).save, "WEBP"), "a WebP picture"),
    "a.avif": (b"\0\0\0\x1cftypavif\0\0\0\0", "an AVIF picture"),
    **{
        f"a.{form.lower()}": (saved(soundfile.write, TONE, 8000, format=form), f"an? {name}")
        for form, name in (
            ("WAV", "wav file"),
            ("FLAC", "FLAC file"),
            ("OGG", "Ogg file"),
            ("MP3", "MP3 file"),
        )
    },
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_no_text_says_what_it_is_and_what_to_type(tmp_path: Path, name: str) -> None:
    content, said = FILES[name]
    (tmp_path / name).write_bytes(content)
    if name != "a.zip":  # of which one file would be read
        with pytest.raises(DataError, match=f"{name}: expected plain text, got {said}"):
            list(read_lines(tmp_path / name))
    (tmp_path / "renamed.txt").write_bytes(content)
    with pytest.raises(DataError, match=f"expected plain text, got {said}"):
        list(read_lines(io.BytesIO(content) if name != "a.tar.gz" else tmp_path / "renamed.txt"))


@pytest.mark.parametrize(
    "text",
    ["BMW is a car", "ID3 tags", "MZ", "II* two", "RIFF", "PK is a shop", "%", "%PDX", "GIF89a is a format"],
)
def test_texts_that_begin_like_other_files_are_texts(text: str) -> None:
    assert not_text(f"{text}, she said.\nčšž\n".encode(), "a.txt") is None
    assert list(read_lines(io.BytesIO(text.encode()))) == [text]


def test_a_check_of_a_document_names_the_command_that_translates_it(tmp_path: Path) -> None:
    path = tmp_path / "my notes.docx"
    path.write_bytes(b"PK\3\4" + bytes(26) + b"word/document.xml")
    report = check_pairs(path)
    assert [one.text for one in report.with_too_few(1).findings] == [not_text(path.read_bytes(), str(path))]
    assert f"weft predict RUN --document '{path}'" in report.findings[0].text
    assert not_text(b"PK\3\4", "cut.docx") is not None  # of a download that stopped


def test_the_command_names_the_file_and_quotes_it() -> None:
    said = not_text(b"%PDF-1.7\n", "my letter.PDF")
    assert said is not None and said.endswith("pdftotext 'my letter.PDF' 'my letter.txt'")
    assert "pdftotext FILE FILE.txt" in str(not_text(b"%PDF-1.7\n", "<stdin>"))
    assert "name it .xlsx where a table is read" in str(not_text(FILES["a.xlsx"][0], "a.txt"))


def test_a_photo_of_an_iphone_and_a_memo_of_a_phone_are_told_apart() -> None:
    kinds = [kind_of_bytes(b"\0\0\0\x18ftyp" + brand + bytes(8)) for brand in (b"heic", b"mif1", b"M4A ")]
    assert [kind and kind.ending for kind in kinds] == [".heic", ".heic", ".m4a"]
