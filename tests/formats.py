"""Files as other programs write them: the rows of the page "Files that Weft reads", each with its test.

FORMATS has them by the headings and the first cells of the page. To add one: write a function that writes
such a file and returns what is read and what was written, and list it there and on the page. Read next:
docs/reference/formats.md.
"""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pandas as pd
import pytest
import soundfile
from odf.opendocument import OpenDocumentSpreadsheet
from odf.table import Table, TableCell, TableRow
from odf.text import P
from PIL import Image

from weft.data.audio import read_paths, read_sound, read_spoken
from weft.data.conllu import read_sentences
from weft.data.images import read_picture
from weft.data.labelled import LabelledText
from weft.data.lines import read_lines
from weft.data.parallel import ParallelText
from weft.data.tables import TableFile
from weft.data.vectors import read_vectors

Pair = tuple[Any, Any]
"""What is read, and what was written."""

CELLS = [["id", "en", "de"], ["007", 'a "b", c', "NA"], ["2", "two\nlines", "1,5; null"], ["", "é", "x\ty"]]
SIMPLE = [["en", "de"], ['5" disk', '"Hi," he said'], ["a", "b"]]


def text(cells: list[list[str]], **how: Any) -> str:
    out = io.StringIO()
    csv.writer(out, **how).writerows(cells)
    return out.getvalue()


def table(name: str, content: str | bytes, want: list[list[str]] = CELLS) -> Callable[[Path], Pair]:
    """A table with this content, and the cells that were written into it."""

    def run(folder: Path) -> Pair:
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
        return [row.cells for row in TableFile(folder / name)], want

    return run


def frame(name: str, write: Callable[[pd.DataFrame, Path], Any]) -> Callable[[Path], Pair]:
    """A table that pandas writes."""

    def run(folder: Path) -> Pair:
        write(pd.DataFrame(CELLS[1:], columns=CELLS[0]), folder / name)
        return [row.cells for row in TableFile(folder / name)], CELLS

    return run


def r_table(folder: Path) -> Pair:
    quoted = ['"{}"'.format(cell.replace('"', '""')) for cell in ("en", "de", "1", 'a "b"', "2", "c")]
    content = "\t".join(quoted[:2]) + "\n" + "\t".join([*quoted[2:4], "NA"]) + "\n"
    want = [["", "en", "de"], ["1", 'a "b"', "NA"], ["2", "c", "3"]]
    return table("x.tsv", content + "\t".join([*quoted[4:], "3"]) + "\n", want)(folder)


def workbook(folder: Path) -> Pair:
    book = openpyxl.Workbook()
    book.active.title = "hidden"
    book.active.sheet_state = "hidden"
    for row in CELLS:
        book.active.append(["no"])
        if "more" not in book.sheetnames:
            book.create_sheet("pairs"), book.create_sheet("more")
        book["pairs"].append(row)
        book["more"].append([cell.upper() for cell in row])
    book.save(folder / "x.xlsx")
    read = [[row.cells for row in TableFile(folder / name)] for name in ("x.xlsx", "x.xlsx#more")]
    return read, [CELLS, [[cell.upper() for cell in row] for row in CELLS]]


def libreoffice(folder: Path) -> Pair:
    document, sheet = OpenDocumentSpreadsheet(), Table(name="One")
    for cells in SIMPLE:
        row = TableRow()
        for each in cells:
            cell = TableCell(valuetype="string")
            cell.addElement(P(text=each))
            row.addElement(cell)
        sheet.addElement(row)
    document.spreadsheet.addElement(sheet)
    document.save(str(folder / "x.ods"))
    return [row.cells for row in TableFile(folder / "x.ods")], SIMPLE


def picture(name: str, write: Callable[[Path], Any], want: list[list[int]]) -> Callable[[Path], Pair]:
    """A picture of two rows: what is read of its red channel, and the levels from 0 to 255 that it has."""

    def run(folder: Path) -> Pair:
        write(folder / name)
        return read_picture(folder / name)[..., 0].tolist(), want

    return run


def turned(path: Path) -> None:
    """A grey picture that a phone stored upside down, with the note that it is."""
    exif = Image.Exif()
    exif[0x0112] = 3
    Image.fromarray(np.array([[40, 30], [20, 10]], np.uint8)).save(path, exif=exif)


def plain(path: Path) -> None:
    """A grey picture, without loss."""
    how = {".webp": {"lossless": True}, ".jp2": {"irreversible": False}}.get(path.suffix, {})
    Image.fromarray(np.array([[10, 200], [30, 40]], np.uint8)).convert("RGB").save(path, **how)


def recording(
    name: str, subtype: str | None = None, *, shifted: bool = False, **how: Any
) -> Callable[[Path], Pair]:
    """A recording of 800 samples at 8 kHz; of one that its format shifts, the loudness alone is compared."""

    def run(folder: Path) -> Pair:
        wave = np.sin(np.arange(800) / 9) / 2
        soundfile.write(folder / name, wave, 8000, subtype=subtype, **how)
        found = read_sound(folder / name)
        error = found.samples.std() - wave.std() if shifted else np.abs(found.samples[:800] - wave).max()
        close = abs(error) < 0.03
        return [found.rate, bool(close)], [8000, True]

    return run


def librispeech(folder: Path) -> Pair:
    soundfile.write(folder / "84-1-0000.flac", np.zeros(80), 8000)
    (folder / "84-1.trans.txt").write_text("84-1-0000 GO  DO YOU HEAR\n")
    found = [(one.file.name, one.text) for one in read_spoken(folder / "84-1.trans.txt")]
    paths = [path.name for _, path in read_paths(folder / "84-1.trans.txt")]
    return (found, paths), ([("84-1-0000.flac", "GO DO YOU HEAR")], ["84-1-0000.flac"])


def each(*runs: Callable[[Path], Pair]) -> Callable[[Path], Pair]:
    """Several files of one row of the page."""

    def run(folder: Path) -> Pair:
        read, written = zip(*(one(folder) for one in runs), strict=True)
        return read, written

    return run


def labelled(name: str, content: str, **form: Any) -> Callable[[Path], Pair]:
    """Two texts of the classes a and b."""

    def run(folder: Path) -> Pair:
        (folder / name).write_bytes(content.encode())
        found = [(one.label, one.text) for one in LabelledText(folder / name, **form)]
        return found, [("a", "one text"), ("b", "and another")]

    return run


def tagged(name: str, content: str, column: Any = "upos") -> Callable[[Path], Pair]:
    """A sentence of three words with their tags."""

    def run(folder: Path) -> Pair:
        (folder / name).write_text(content)
        found = [one for one in read_sentences(folder / name, column=column) if one.forms]
        return [(one.forms, one.tags) for one in found], [(["Ann", "sees", "Bob"], ["P", "O", "P"])] * len(
            found
        )

    return run


_OLD_XLIFF = (
    '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file source-language="en-US" '
    'target-language="de-DE"><body><trans-unit id="1"><source>The <g id="1">old</g> dog</source>{}'
    "<target>{}</target></trans-unit></body></file></xliff>"
)
_NEW_XLIFF = (
    '<xliff version="2.0" xmlns="urn:oasis:names:tc:xliff:document:2.0" srcLang="en" trgLang="de"><file '
    'id="f"><unit id="1"><segment><source>The <pc id="1">old</pc> dog</source><target>Der alte Hund'
    "</target></segment></unit></file></xliff>"
)
_TMX = (
    '<tmx version="1.4"><header srclang="en"/><body><tu><tuv xml:lang="en"><seg>The old dog</seg></tuv>'
    '<tuv xml:lang="de"><seg>Der <hi>alte</hi> Hund</seg></tuv></tu></body></tmx>'
)


def memory(name: str, content: str | bytes) -> Callable[[Path], Pair]:
    """A pair of texts."""

    def run(folder: Path) -> Pair:
        pytest.importorskip("lxml", reason="lxml is not installed: pip install -e .[documents]")
        pytest.importorskip("polib", reason="polib is not installed: pip install -e .[documents]")
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
        found = [(one.source, one.target) for one in ParallelText(folder / name, "en", "de")]
        return found, [("The old dog", "Der alte Hund")]

    return run


def lines(content: bytes) -> Callable[[Path], Pair]:
    """Two lines of text."""

    def run(folder: Path) -> Pair:
        (folder / "x.txt").write_bytes(content)
        return list(read_lines(folder / "x.txt")), ["čaša", "two"]

    return run


def vectors(content: bytes, second: str = ". .") -> Callable[[Path], Pair]:
    """Vectors of two words."""

    def run(folder: Path) -> Pair:
        (folder / "x.txt").write_bytes(content)
        found, _ = read_vectors(folder / "x.txt")
        return {word: np.asarray(vector).tolist() for word, vector in found.items()}, {
            "a": [1, 2],
            second: [3, 4],
        }

    return run


_CONLLU = "".join(f"{n}\t{w}\t_\t{t}\t_\t_\t0\t_\t_\t_\n" for n, w, t in
                  [(1, "Ann", "P"), (2, "sees", "O"), (3, "Bob", "P")])  # fmt: skip
_FOUR = "-DOCSTART- -X- -X- O\n\nAnn NNP B-NP P\nsees VBZ B-VP O\nBob NNP B-NP P\n\n"

FORMATS: dict[str, dict[str, Callable[[Path], Pair]]] = {
    "Tables": {
        "`.csv`, commas": table("x.csv", text(CELLS)),
        "`.csv`, semicolons, byte order mark": table(
            "x.csv", ("\ufeff" + text(CELLS, delimiter=";")).encode()
        ),
        "`.csv` that begins with `sep=;`": table("x.csv", "sep=;\n" + text(CELLS, delimiter=";")),
        "`.csv`, `.xlsx` with titles above the header": table("x.csv", "Report 2024,,\n,,\n" + text(CELLS)),
        '`.csv`, `.tsv` with `\\"` inside quotes': table(
            "x.csv", 'en,de\n"a \\"b\\", c","d"\n', [["en", "de"], ['a "b", c', "d"]]
        ),
        "`.csv` with carriage returns": table(
            "x.csv",
            text([row[:1] + row[2:] for row in CELLS], lineterminator="\r"),
            [row[:1] + row[2:] for row in CELLS],
        ),
        "`.tsv` with quoted cells": frame("x.tsv", lambda one, path: one.to_csv(path, sep="\t", index=False)),
        "`.tsv` with names of rows": r_table,
        "`.tsv` with stray quotes": table("x.tsv", "".join("\t".join(row) + "\n" for row in SIMPLE), SIMPLE),
        "`.tsv` in UTF-16": table("x.tsv", text(CELLS, delimiter="\t").encode("utf-16")),
        "`.csv` in UTF-16 with tabs": table("x.csv", text(CELLS, delimiter="\t").encode("utf-16")),
        "`.csv` with row numbers": table(
            "x.csv", ",en,de\n0,a,b\n1,c,d\n", [["", "en", "de"], ["0", "a", "b"], ["1", "c", "d"]]
        ),
        "`.csv`, `.tsv` with `\\N`": table(
            "x.tsv", "en\tde\na\t\\N\nb\tc\n", [["en", "de"], ["a", ""], ["b", "c"]]
        ),
        "`.xlsx`": workbook,
        "`.ods`": libreoffice,
        "`.jsonl`": frame("x.jsonl", lambda one, path: one.to_json(path, orient="records", lines=True)),
        "`.ndjson`": frame("x.ndjson", lambda one, path: one.to_json(path, orient="records", lines=True)),
        "`.json`, a list for each column": frame(
            "x.json", lambda one, path: path.write_text(json.dumps(one.to_dict("list")))
        ),
        "`.json`": frame("x.json", lambda one, path: one.to_json(path)),
        "`.parquet`": frame("x.parquet", lambda one, path: one.to_parquet(path)),
    },
    "Translation memories": {
        "`.tmx`, also in UTF-16": each(
            memory("x.tmx", _TMX),
            memory("y.tmx", ('<?xml version="1.0" encoding="utf-16"?>' + _TMX).encode("utf-16")),
        ),
        "`.xliff`, `.xlf`, 1.2 and 2": each(
            memory("x.xliff", _OLD_XLIFF.format("", "Der alte Hund")), memory("y.xlf", _NEW_XLIFF)
        ),
        "`.sdlxliff`, `.mxliff`, `.mqxliff`": each(
            memory(
                "x.sdlxliff",
                _OLD_XLIFF.format(
                    '<seg-source><mrk mtype="seg" mid="1">The <g id="1">old</g> dog</mrk></seg-source>',
                    '<mrk mtype="seg" mid="1">Der alte Hund</mrk>',
                ),
            ),
            memory("x.mxliff", _OLD_XLIFF.format("", "Der alte Hund")),
            memory("x.mqxliff", _OLD_XLIFF.format("", "Der alte Hund")),
        ),
        "`.po`": memory(
            "x.po", 'msgid ""\nmsgstr ""\n"Language: de\\n"\n\nmsgid "The old dog"\nmsgstr "Der alte Hund"\n'
        ),
    },
    "Labelled lines": {
        "`__label__a TEXT`": labelled("x.txt", "__label__a one text\n__label__b\tand another\n"),
        "`TEXT __label__a`": labelled("x.txt", "one text __label__a\nand another __label__b\n"),
        "`__label__a, TEXT`": labelled("x.txt", "\ufeff__label__a, one text\r\n__label__b, and another\r\n"),
        "`a TAB TEXT`, no header": labelled("x.tsv", "a\tone text\nb\tand another\n"),
        '`"a","TEXT"`, no header': labelled(
            "x.csv", '"a","one text"\n"b","and another"\n', text="2", label="1"
        ),
        "`a TEXT`": labelled("x.txt", "a one text\nb and another\n", labels="first"),
    },
    "Tagged sentences": {
        "CoNLL-U": tagged("x.conllu", _CONLLU + "\n"),
        "CoNLL-2003, four columns": tagged("x.txt", _FOUR, "ner"),
        "three columns": tagged("x.txt", "Ann NNP P\nsees VBZ O\nBob NNP P\n\n" * 3, "ner"),
        "`word TAB tag`, `word tag`": tagged("x.txt", "Ann\tP\nsees\tO\nBob\tP\n\n"),
        "`word/TAG word/TAG`": tagged("x.txt", "Ann/P sees/O Bob/P\n"),
    },
    "Text": {
        "UTF-8, LF or CRLF": lines("\ufeffčaša\r\ntwo\r\n".encode()),
        "UTF-16 or UTF-32 with a byte order mark": lines("čaša\ntwo\n".encode("utf-16")),
        "lines that end with CR": lines("čaša\rtwo\r\n".encode()),
    },
    "Word vectors": {
        "word2vec, text": vectors(b"2 2\na 1 2\n. . 3 4\n"),
        "word2vec, binary": vectors(
            b"2 2\na " + np.array([1, 2], "<f4").tobytes() + b"\nb " + np.array([3, 4], "<f4").tobytes(), "b"
        ),
        "GloVe": vectors(b"a 1 2\n. . 3 4\n\n"),
    },
    "Pictures": {
        "`.jpg`, `.png`, `.webp`, `.tif` with EXIF": picture("x.png", turned, [[10, 20], [30, 40]]),
        "16-bit grey `.png`, `.tif`": picture(
            "x.png",
            lambda path: Image.fromarray(np.array([[0, 257], [32639, 65535]], np.uint16)).save(path),
            [[0, 1], [127, 255]],
        ),
        "palettes, `.gif`": picture(
            "x.png",
            lambda path: Image.fromarray(np.array([[0, 255], [255, 0]], np.uint8)).convert("P").save(path),
            [[0, 255], [255, 0]],
        ),
        "`.bmp`, `.tga`, lossless `.webp`, `.jp2`": each(
            *(picture(f"x.{end}", plain, [[10, 200], [30, 40]]) for end in ("bmp", "tga", "webp", "jp2"))
        ),
    },
    "Recordings": {
        "`.wav`, 16 or 24 bits": recording("x.wav", "PCM_24"),
        "`.wav`, float": recording("x.wav", "FLOAT"),
        "`.wav`, extensible header": recording("x.wav", "PCM_16", format="WAVEX"),
        "`.wav` RF64, `.w64`": each(recording("x.wav", format="RF64"), recording("x.w64")),
        "`.wav`, A-law, µ-law": each(recording("x.wav", "ULAW"), recording("y.wav", "ALAW")),
        "`.aiff`, `.caf`, `.au`": each(recording("x.aiff", "FLOAT"), recording("x.caf"), recording("x.au")),
        "`.flac`": recording("x.flac"),
        "`.trans.txt`": librispeech,
        "`.ogg`, `.opus`": recording("x.ogg"),
        "`.mp3`": recording("x.mp3", shifted=True),
    },
}
