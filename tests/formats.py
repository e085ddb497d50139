"""Files as other programs write them: the rows of the page "Files that Weft reads", each with its test.

FORMATS has them by the headings and the first cells of the page. To add one: write a function that writes
such a file and returns what is read and what was written, and list it there and on the page. Read next:
docs/reference/formats.md.
"""

import csv
import io
import json
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
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

import weft.tasks
from weft import rooms
from weft.commands.data import guessed_task
from weft.data import audio, images, listed, pairs, tables, video
from weft.data.audio import read_paths, read_sound, read_spoken
from weft.data.conllu import read_sentences
from weft.data.files import COMPRESSED
from weft.data.images import read_captions, read_clip, read_folders, read_picture
from weft.data.labelled import LabelledText
from weft.data.lines import read_lines
from weft.data.parallel import ParallelText
from weft.data.tables import TableFile
from weft.data.vectors import read_vectors
from weft.errors import DataWarning
from weft.tasks.forecast.task import ForecastTask
from weft.tasks.task import Task

TASKS = rooms.parts(weft.tasks, Task)

Pair = tuple[Any, Any]
"""What is read, and what was written."""


@dataclass(frozen=True)
class Written:
    """Writes a list, or a folder, of this name into a folder; returns what is read and what was written."""

    name: str
    run: Callable[[Path], Pair]

    def __call__(self, folder: Path) -> Pair:
        return self.run(folder)


CELLS = [["id", "en", "de"], ["007", 'a "b", c', "NA"], ["2", "two\nlines", "1,5; null"], ["", "é", "x\ty"]]
TWO = [row[:1] + row[2:] for row in CELLS]
SIMPLE = [["en", "de"], ['5" disk', '"Hi," he said'], ["a", "b"]]


def text(cells: list[list[str]], **how: Any) -> str:
    out = io.StringIO()
    csv.writer(out, **how).writerows(cells)
    return out.getvalue()


def file(
    name: str, content: str | bytes | Callable[[Path], Any], read: Callable[[Path], Any], want: Any
) -> Callable[[Path], Pair]:
    """A file with this content, or that a function writes: what is read of it, and what was written."""

    def run(folder: Path) -> Pair:
        if callable(content):
            content(folder / name)
        else:
            (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
        return read(folder / name), want

    return run


def cells(path: Path) -> list[list[str]]:
    return [row.cells for row in TableFile(path)]


def table(name: str, content: str | bytes, want: list[list[str]] = CELLS) -> Callable[[Path], Pair]:
    """A table with this content, and the cells that were written into it."""
    return file(name, content, cells, want)


def frame(name: str, write: Callable[[pd.DataFrame, Path], Any]) -> Callable[[Path], Pair]:
    """A table that pandas writes."""
    return file(name, partial(write, pd.DataFrame(CELLS[1:], columns=CELLS[0])), cells, CELLS)


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
    read = [cells(folder / name) for name in ("x.xlsx", "x.xlsx#more")]
    return read, [CELLS, [[cell.upper() for cell in row] for row in CELLS]]


def libreoffice(folder: Path) -> Pair:
    document, sheet = OpenDocumentSpreadsheet(), Table(name="One")
    for texts in SIMPLE:
        row = TableRow()
        for each in texts:
            cell = TableCell(valuetype="string")
            cell.addElement(P(text=each))
            row.addElement(cell)
        sheet.addElement(row)
    document.spreadsheet.addElement(sheet)
    document.save(str(folder / "x.ods"))
    return cells(folder / "x.ods"), SIMPLE


def picture(name: str, write: Callable[[Path], Any], want: list[list[int]]) -> Callable[[Path], Pair]:
    """A picture of two rows: what is read of its red channel, and the levels from 0 to 255 that it has."""
    return file(name, write, lambda path: read_picture(path)[..., 0].tolist(), want)


def guessed(said: str, run: Callable[[Path], Pair]) -> Callable[[Path], Pair]:
    """A file of which a warning says what is guessed."""

    def run_warned(folder: Path) -> Pair:
        with pytest.warns(DataWarning, match=said):
            return run(folder)

    return run_warned


def turned(path: Path) -> None:
    """A grey picture that a phone stored upside down, with the note that it is."""
    exif = Image.Exif()
    exif[0x0112] = 3
    Image.fromarray(np.array([[40, 30], [20, 10]], np.uint8)).save(path, exif=exif)


def plain(path: Path) -> None:
    """A grey picture, without loss."""
    how = {".webp": {"lossless": True}, ".jp2": {"irreversible": False}}.get(path.suffix, {})
    Image.fromarray(np.array([[10, 200], [30, 40]], np.uint8)).convert("RGB").save(path, **how)


def twelve_bits(path: Path) -> None:
    """A grey picture of a camera of 12 bits that does not say so."""
    Image.fromarray(np.array([[0, 16], [2040, 4095]], np.uint16)).save(path)


def named_bits(path: Path) -> None:
    """A PNG whose chunk sBIT names 12 bits; its largest value would fit 11."""
    Image.fromarray(np.array([[0, 16], [257, 2040]], np.uint16)).save(path)
    content, chunk = path.read_bytes(), b"sBIT\x0c"
    chunk = struct.pack(">I", 1) + chunk + struct.pack(">I", zlib.crc32(chunk))
    path.write_bytes(content[:33] + chunk + content[33:])


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


def encoded(name: str, codec: str, rate: int = 16_000) -> Callable[[Path], Pair]:
    """A recording of one second that only PyAV reads; encoders add silence and change the phase."""

    def run(folder: Path) -> Pair:
        av = pytest.importorskip("av", reason="PyAV is not installed: pip install -e .[video]")
        wave = np.sin(np.arange(rate) / 9).astype(np.float32) / 2
        with av.open(str(folder / name), "w") as file:
            stream = file.add_stream(codec, rate=rate, layout="mono")
            forms = stream.codec_context.codec.audio_formats
            sound = av.AudioFrame.from_ndarray(wave[None], format="fltp", layout="mono")
            sound.sample_rate = rate
            plain = av.AudioResampler(format=forms[0].name, layout="mono", rate=rate, frame_size=1024)
            for part in [*plain.resample(sound), *plain.resample(None), None]:
                file.mux(stream.encode(part))
        found = read_sound(folder / name)
        close = abs(found.samples.std() - wave.std()) < 0.08 and abs(len(found.samples) - rate) < rate / 8
        return [found.rate, bool(close)], [rate, True]

    return run


def filmed(name: str, codec: str) -> Callable[[Path], Pair]:
    """A video of two seconds, 8 pictures each, the later the lighter: a clip of a dog."""

    def run(folder: Path) -> Pair:
        av = pytest.importorskip("av", reason="PyAV is not installed: pip install -e .[video]")
        (folder / "clips" / "dog").mkdir(parents=True, exist_ok=True)
        path = folder / "clips" / "dog" / name
        with av.open(str(path), "w") as file:
            stream = file.add_stream(codec, rate=8)
            stream.width, stream.height, stream.pix_fmt = 16, 16, "yuv420p"
            for number in range(16):
                grey = np.full((16, 16, 3), 15 * number, np.uint8)
                file.mux(stream.encode(av.VideoFrame.from_ndarray(grey, format="rgb24")))
            file.mux(stream.encode(None))
        levels, four = read_clip(path).mean((1, 2, 3)), read_clip(path, 8, 4)
        close = np.abs(levels - 15 * np.arange(16)).max() < 4
        listed = path in [one.path for one in read_folders(folder / "clips")]
        return [four.shape, bool(close), listed], [(4, 8, 8, 3), True, True]

    return run


def framed(folder: Path) -> Pair:
    """Clips as folders of pictures, of which the tenth comes last: in folders of classes, and in a list."""
    levels = {"a": ("dog", 0), "b": ("dog", 5), "c": ("cat", 9)}
    for clip, (label, level) in levels.items():
        (folder / "x" / label / clip).mkdir(parents=True)
        for number in range(1, 11):
            grey = np.full((2, 2), 20 * number + level, np.uint8)
            Image.fromarray(grey).save(folder / "x" / label / clip / f"frame{number}.png")
    (folder / "x.csv").write_text("video,label\nx/dog/a,dog\nx/dog/b,dog\nx/cat/c,cat\n")
    with pytest.warns(DataWarning, match="folders of numbered pictures are read as clips"):
        clips = read_folders(folder / "x")
    found = {one.path.name: (one.label, read_clip(one.path)[:, 0, 0, 0].tolist()) for one in clips}
    want = {name: (label, [20 * n + level for n in range(1, 11)]) for name, (label, level) in levels.items()}
    named = {one.path.name: one.label for one in read_folders(folder / "x.csv")}
    return (found, named), (want, {name: label for name, (label, _) in levels.items()})


def put(
    folder: Path, files: Sequence[str], write: Callable[[Path], Any], *texts: Mapping[str, str] | None
) -> None:
    """Write files by a function, and the texts that there are."""
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write(folder / name)
    for name, content in ((name, text) for each in texts for name, text in (each or {}).items() if text):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)


def tiny(path: Path) -> None:
    Image.new("L", (2, 2)).save(path)


def spoken(name: str, content: str, *named: str, others: Mapping[str, str] | None = None) -> Written:
    """A list of recordings: the files and transcripts that are read, for training and for transcription."""

    def run(folder: Path) -> Pair:
        files = named or ("a.wav", "b.wav")
        put(folder, files, lambda path: soundfile.write(path, np.zeros(80), 8000), others, {name: content})
        found = [(one.file.relative_to(folder).as_posix(), one.text) for one in read_spoken(folder / name)]
        paths = [path.relative_to(folder).as_posix() for _, path in read_paths(folder / name)]
        assert guessed_task([folder / name], TASKS) == "speech"
        return (found, paths), ([*zip(files, ("go now", "stop"), strict=True)], [*files])

    return Written(name, run)


def captioned(
    name: str, content: str, folder_of: str = "", beside: Mapping[str, str] | None = None
) -> Written:
    """A list of two captions of a picture and one of another."""

    def run(folder: Path) -> Pair:
        put(folder / folder_of, ("a.jpg", "b.jpg"), tiny, beside)
        put(folder, (), tiny, {name: content})
        found = [(one.path.name, one.captions) for one in read_captions(folder / name, split="train")]
        assert guessed_task([folder / name], TASKS) == "caption"
        return found, [("a.jpg", ["a dog, asleep", *["a dog"] * (not beside)]), ("b.jpg", ["two cats"])]

    return Written(name, run)


def classified(
    name: str,
    content: str,
    files: Sequence[str] = ("1.jpg", "2.jpg"),
    *,
    labels: tuple[str, str] = ("dog", "cat"),
    beside: Mapping[str, str] | None = None,
) -> Written:
    """A list, or folders, of a picture of a dog and one of a cat."""

    def run(folder: Path) -> Pair:
        put(folder, files, tiny, beside, {name.partition("#")[0]: content})
        assert guessed_task([folder / name], TASKS) == "images"
        found = [(one.path.stem[-1], one.label) for one in read_folders(folder / name)]
        return sorted(found), [*zip("12", labels, strict=True)]

    return Written(name, run)


def each(*runs: Callable[[Path], Pair]) -> Callable[[Path], Pair]:
    """Several files of one row of the page."""

    def run(folder: Path) -> Pair:
        read, written = zip(*(one(folder) for one in runs), strict=True)
        return read, written

    return run


def labelled(name: str, content: str, **form: Any) -> Callable[[Path], Pair]:
    """Two texts of the classes a and b."""

    def read(path: Path) -> list[tuple[str, str]]:
        return [(one.label, one.text) for one in LabelledText(path, **form)]

    return file(name, content, read, [("a", "one text"), ("b", "and another")])


def tagged(name: str, content: str, column: Any = "upos") -> Callable[[Path], Pair]:
    """A sentence of three words with their tags."""

    def run(folder: Path) -> Pair:
        (folder / name).write_text(content)
        found = [one for one in read_sentences(folder / name, column=column) if one.forms]
        want = (["Ann", "sees", "Bob"], ["P", "O", "P"])
        return [(one.forms, one.tags) for one in found], [want] * len(found)

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

    def read(path: Path) -> list[tuple[str, str]]:
        pytest.importorskip("lxml", reason="lxml is not installed: pip install -e .[documents]")
        pytest.importorskip("polib", reason="polib is not installed: pip install -e .[documents]")
        return [(one.source, one.target) for one in ParallelText(path, "en", "de")]

    return file(name, content, read, [("The old dog", "Der alte Hund")])


def lines(content: bytes) -> Callable[[Path], Pair]:
    """Two lines of text."""
    return file("x.txt", content, lambda path: [*read_lines(path)], ["čaša", "two"])


def vectors(content: bytes, second: str = ". .") -> Callable[[Path], Pair]:
    """Vectors of two words."""

    def read(path: Path) -> dict[str, list[float]]:
        return {word: np.asarray(vector).tolist() for word, vector in read_vectors(path)[0].items()}

    return file("x.txt", content, read, {"a": [1, 2], second: [3, 4]})


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
        "`.csv` with carriage returns": table("x.csv", text(TWO, lineterminator="\r"), TWO),
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
        "12 bits in 16, `.png`, `.tif`": each(
            guessed("read as 12 bits", picture("x.png", twelve_bits, [[0, 1], [127, 255]])),
            guessed("read as 12 bits", picture("x.tif", twelve_bits, [[0, 1], [127, 255]])),
            picture("named.png", named_bits, [[0, 1], [16, 127]]),
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
        "`.ogg`, `.opus`": recording("x.ogg"),
        "`.mp3`": recording("x.mp3", shifted=True),
        "`.m4a`, `.aac`, `.amr`, `.webm`, `.3gp`": each(
            encoded("x.m4a", "aac"),
            encoded("x.aac", "aac"),
            encoded("x.amr", "libopencore_amrnb", 8000),
            encoded("x.webm", "libopus", 48_000),
            encoded("x.3gp", "aac"),
        ),
    },
    "Lists of recordings": {
        "`FILE TAB TRANSCRIPT`": spoken("x.txt", "a.wav\tgo now\nb.wav\tstop\n"),
        "`.csv` with `wav_filename`, `transcript`": spoken(
            "x.csv",
            "wav_filename,wav_filesize,transcript\nw/a.wav,204,go now\nw/b.wav,204,stop\n",
            *("w/a.wav", "w/b.wav"),
        ),
        "`.tsv` with `path`, `sentence`": spoken(
            "train.tsv",
            "client_id\tpath\tsentence\tup_votes\nx\ta.mp3\tgo now\t2\ny\tb.mp3\tstop\t2\n",
            *("clips/a.mp3", "clips/b.mp3"),
        ),
        "`.csv` with `ID`, `duration`, `wav`, `wrd`": spoken(
            "x.csv",
            "ID,duration,wav,spk_id,wrd\na,1,$data_root/w/a.wav,1,go now\nb,1,{data_root}/w/b.wav,1,stop\n",
            *("w/a.wav", "w/b.wav"),
        ),
        "`.json` with a record for each `ID`": spoken(
            "x.json",
            '{"a": {"wav": "{data_root}/a.wav", "length": 1.0, "words": "go now"}, '
            '"b": {"wav": "{data_root}/b.wav", "length": 1.0, "words": "stop"}}',
        ),
        "`.json`, `.jsonl` with `audio_filepath`, `text`": spoken(
            "x.json",
            '{"audio_filepath": "/their/w/a.wav", "duration": 1, "text": "go now"}\n'
            '{"audio_filepath": "/their/w/b.wav", "duration": 1, "text": "stop"}\n',
            *("w/a.wav", "w/b.wav"),
        ),
        "`metadata.csv`, `.jsonl` with `file_name`": spoken(
            "metadata.csv", "file_name,transcription\na.wav,go now\nb.wav,stop\n"
        ),
        "`text` with `wav.scp`": spoken(
            "text",
            "a go now\nb stop\n",
            *("s/a.wav", "s/b.flac"),
            others={"wav.scp": "a s/a.wav\nb flac -c -d -s s/b.flac |\n"},
        ),
        "`.lst`": spoken("x.lst", "a w/a.wav 9.5 go now\nb w/b.wav 9 stop\n", "w/a.wav", "w/b.wav"),
        "`.trans.txt`": spoken("84-1.trans.txt", "84-0 go  now\n84-1 stop\n", "84-0.flac", "84-1.flac"),
        "`metadata.csv` with bars": spoken(
            "metadata.csv", "a|1|go now\nb|2|stop\n", "wavs/a.wav", "wavs/b.wav"
        ),
        "`ID TAB TRANSCRIPT`": spoken(
            "transcripts.txt", "9_1_0\tgo now\n9_1_1\tstop\n", "audio/9/9_1_0.flac", "audio/9/9_1_1.flac"
        ),
        "`etc/PROMPTS`": spoken(
            "etc/PROMPTS", "x/mfc/a1 go now\nx/mfc/a2 stop\n", "wav/a1.wav", "wav/a2.wav"
        ),
        "`.tsv` with `.wrd` or `.ltr`": each(
            spoken(
                "train.tsv",
                "/their/w\na.wav\t80\nb.wav\t80\n",
                *("w/a.wav", "w/b.wav"),
                others={"train.wrd": "go now\nstop\n"},
            ),
            spoken(
                "valid.tsv",
                "/their/w\na.wav\t80\nb.wav\t80\n",
                *("w/a.wav", "w/b.wav"),
                others={"valid.ltr": "g o | n o w |\ns t o p |\n"},
            ),
        ),
        "`.json`, a transcript for each name": spoken("x.json", '{"a.wav": "go now", "b.wav": "stop"}'),
        "a folder with `.txt` or `.lab` files": spoken(
            "x",
            "",
            *("x/wav48/p1/p1_1.wav", "x/wav48/p1/p1_2.wav"),
            others={"x/txt/p1/p1_1.txt": "go now\n", "x/wav48/p1/p1_2.lab": "stop", "x/README.txt": "about"},
        ),
        "a folder with `.trans.txt` files": spoken(
            "x",
            "",
            *("x/84/1/84-1-0.flac", "x/84/2/84-2-0.flac"),
            others={"x/84/1/84-1.trans.txt": "84-1-0 go now\n", "x/84/2/84-2.trans.txt": "84-2-0 stop\n"},
        ),
    },
    "Lists of captions": {
        "`IMAGE TAB CAPTION`": captioned("x.txt", "a.jpg\ta dog, asleep\na.jpg\ta dog\nb.jpg\ttwo cats\n"),
        "`captions.txt` with `image`, `caption`": captioned(
            "captions.txt", 'image,caption\na.jpg,"a dog, asleep"\na.jpg,a dog\nb.jpg,two cats\n', "Images"
        ),
        "`results.csv` with bars": captioned(
            "results.csv",
            "image_name| comment_number| comment\n"
            "a.jpg| 0| a dog, asleep\na.jpg| 1| a dog\nb.jpg| 0| two cats\n",
        ),
        "`a.jpg#0 TAB CAPTION`": captioned(
            "x.token.txt", "a.jpg#0\ta dog, asleep\na.jpg#1\ta dog\nb.jpg#0\ttwo cats\n"
        ),
        "`.json` with `images`, `annotations`": captioned(
            "x.json",
            '{"images": [{"id": 1, "file_name": "a.jpg"}, {"id": 2, "file_name": "b.jpg"}], "annotations": ['
            '{"image_id": 1, "caption": "a dog, asleep"}, {"image_id": 1, "caption": "a dog"}, '
            '{"image_id": 2, "caption": "two cats"}]}',
            "train2014",
        ),
        "`.json` with `images`, `sentences`": captioned(
            "x.json",
            '{"dataset": "flickr8k", "images": ['
            '{"filename": "a.jpg", "imgid": 0, "split": "train", "sentences": ['
            '{"raw": "a dog, asleep", "tokens": ["a", "dog,", "asleep"]}, '
            '{"raw": "a dog", "tokens": ["a", "dog"]}]}, '
            '{"filename": "b.jpg", "imgid": 1, "split": "restval", "sentences": [{"raw": "two cats"}]}, '
            '{"filename": "a.jpg", "imgid": 2, "split": "test", "sentences": [{"raw": "a dog at night"}]}]}',
        ),
        "`.json`, a list with `image`, `caption`": captioned(
            "x.json",
            '[{"image": "train/a.jpg", "caption": ["a dog, asleep", "a dog"], "image_id": "i1"}, '
            '{"image": "train/b.jpg", "caption": "two cats", "image_id": "i2"}]',
            "train",
        ),
        "`metadata.jsonl` with `file_name`, `text`": captioned(
            "metadata.jsonl",
            '{"file_name": "a.jpg", "text": "a dog, asleep"}\n{"file_name": "a.jpg", "text": "a dog"}\n'
            '{"file_name": "b.jpg", "text": "two cats"}\n',
        ),
        "`.csv` with `caption_1`, `caption_2`": captioned(
            "x.csv", 'image,caption_1,caption_2\na.jpg,"a dog, asleep",a dog\nb.jpg,two cats,\n'
        ),
        "`.csv` with `raw`, a list": captioned(
            "x.csv",
            'raw,filename,split\n"[""a dog, asleep"", ""a dog""]",a.jpg,train\n'
            '"[""two cats""]",b.jpg,train\n',
        ),
        "`.json` with `data`": captioned(
            "x.json",
            '{"dataset_name": "textcaps", "data": ['
            '{"image_id": "a", "caption_str": "a dog, asleep", "image_path": "train/a.jpg"}, '
            '{"image_id": "a", "caption_str": "a dog", "image_path": "train/a.jpg"}, '
            '{"image_id": "b", "caption_str": "two cats", "image_path": "train/b.jpg"}]}',
        ),
        "`.json` with `conversations`": captioned(
            "x.json",
            '[{"id": "1", "image": "a.jpg", "conversations": [{"from": "human", "value": "What?"}, '
            '{"from": "gpt", "value": "a dog, asleep"}]}, {"id": "2", "image": "a.jpg", "conversations": ['
            '{"from": "human", "value": "What?"}, {"from": "gpt", "value": "a dog"}]}, {"id": "3", "image": '
            '"b.jpg", "conversations": [{"from": "human", "value": "What?"}, '
            '{"from": "gpt", "value": "two cats"}]}]',
        ),
        "`.json`, captions for each name": captioned(
            "x.json", '{"a.jpg": ["a dog, asleep", "a dog"], "b.jpg": "two cats"}'
        ),
        "a folder with `.txt` or `.caption` files": captioned(
            "x", "", "x", {"a.txt": "a dog, asleep\n", "b.caption": "two cats"}
        ),
    },
    "Pictures with classes": {
        "a folder for each class": classified("x", "", ("x/dog/old/1.tga", "x/cat/2.jp2")),
        "a folder with `train` and `test`": classified(
            "x", "", ("x/train/dog/1.png", "x/train/cat/2.png", "x/test/cat/3.png")
        ),
        "`.csv` with `image`, `label`": classified("x.csv", "image,label\n1.jpg,dog\n2.jpg,cat\n"),
        "`.csv` with `id`, `label`": classified(
            "trainLabels.csv", "id,label\n1,dog\n2,cat\n", ("train/1.png", "train/2.png", "test/1.png")
        ),
        "`metadata.csv` with `file_name`, `label`": classified(
            "metadata.csv",
            "file_name,label\ntrain/1.png,dog\ntrain/2.png,cat\n",
            ("train/1.png", "train/2.png"),
        ),
        "`.csv` with a column for each class": classified(
            "x.csv", "image,cat,dog\n1,0.0,1.0\n2,1.0,0.0\n", ("x/1.jpg", "x/2.jpg")
        ),
        "`FILE LABEL`": each(
            classified("train.txt", "t/1.jpg dog\nt/2.jpg cat\n", ("t/1.jpg", "t/2.jpg")),
            classified("x.txt", "t/1.jpg,dog\nt/2.jpg,cat\n", ("t/1.jpg", "t/2.jpg")),
        ),
        "`FILE LABEL NUMBER NUMBER`": each(
            classified(
                "annotations/list.txt",
                "#Image CLASS-ID SPECIES\na_1 1 1\nb_2 2 1\n",
                ("images/a_1.jpg", "images/b_2.jpg"),
                labels=("1", "2"),
            ),
            classified(
                "val_annotations.txt",
                "v_1.JPEG\tdog\t0\t32\nv_2.JPEG\tcat\t5\t9\n",
                ("images/v_1.JPEG", "images/v_2.JPEG"),
            ),
        ),
        "`NUMBER TAB LABEL TAB FILE`": classified(
            "x.lst", "0\tdog\tt/1.jpg\n1\tcat\tt/2.jpg\n", ("t/1.jpg", "t/2.jpg")
        ),
        "`PART,FILE,LABEL`": classified(
            "x.csv",
            "TRAIN,gs://t/1.jpg,dog\nTRAIN,gs://t/2.jpg,cat\nTEST,gs://t/3.jpg,cat\n",
            ("1.jpg", "2.jpg", "3.jpg"),
        ),
        "`list_attr_celeba.txt#COLUMN`": classified(
            "Anno/list_attr_celeba.txt#Smiling",
            "2\nMale Smiling Young\n1.jpg -1  1  1\n2.jpg  1 -1 -1\n",
            ("Img/1.jpg", "Img/2.jpg"),
            labels=("1", "-1"),
        ),
        "`.csv#COLUMN`": classified("x.csv#kind", "image,age,kind\n1.jpg,7,dog\n2.jpg,8,cat\n"),
        "`image_class_labels.txt` with `images.txt`": classified(
            "image_class_labels.txt",
            "1 7\n2 8\n",
            ("images/a/1.jpg", "images/b/2.jpg"),
            labels=("7", "8"),
            beside={"images.txt": "1 a/1.jpg\n2 b/2.jpg\n"},
        ),
        "files alone": each(
            classified("meta/train.txt", "dog/1\ncat/2\n", ("images/dog/1.jpg", "images/cat/2.jpg")),
            classified(
                "meta/train.json",
                '{"dog": ["dog/1"], "cat": ["cat/2"]}',
                ("images/dog/1.jpg", "images/cat/2.jpg"),
            ),
            classified("train.tsv", "/their\ndog/1.jpg\t80\ncat/2.jpg\t9\n", ("dog/1.jpg", "cat/2.jpg")),
        ),
        "`.csv` with `label`, `youtube_id`, `time_start`": classified(
            "x.csv",
            "label,youtube_id,time_start,time_end,split\ndog,a,0,1,train\ncat,b,1,2,train\n",
            ("dog/a_000000_000001.png", "cat/b_000001_000002.png"),
        ),
        "`.json`, `.csv` with `choice`": each(
            classified(
                "x.json",
                '[{"data": {"image": "/data/upload/1.jpg"}, "annotations": [{"result": [{"value": '
                '{"choices": ["dog"]}}]}]}, {"data": {"image": "/data/upload/2.jpg"}, "annotations": '
                '[{"result": [{"value": {"choices": ["cat"]}}]}]}]',
            ),
            classified("x.csv", "annotation_id,choice,image\n1,dog,/u/1.jpg\n2,cat,/u/2.jpg\n"),
        ),
        "`.json`, a label for each name": classified("x.json", '{"1.jpg": "dog", "2.jpg": "cat"}'),
        "`dataset.json` with `labels`": classified(
            "dataset.json",
            '{"labels": [["0/1.png", "dog"], ["0/2.png", "cat"]]}',
            ("0/1.png", "0/2.png"),
        ),
        "`.json` with `images`, `categories`": classified(
            "x.json",
            '{"images": [{"id": 1, "file_name": "1.jpg"}, {"id": 2, "file_name": "2.jpg"}], '
            '"annotations": [{"image_id": 2, "category_id": 5}, {"image_id": 1, "category_id": 3}], '
            '"categories": [{"id": 3, "name": "dog"}, {"id": 5, "name": "cat"}]}',
        ),
        "`.mp4`, `.avi`, `.mov`, `.webm`, `.mkv`": each(
            filmed("1.webm", "libvpx"),
            *(filmed(f"1.{end}", "mpeg4") for end in ("mp4", "avi", "mov", "mkv")),
        ),
        "a folder of pictures for each clip": framed,
    },
}

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "formats.md"
BEGIN, END = "<!-- `python -m tests.formats` writes this table -->\n", "<!-- end -->\n"


def declared() -> str:
    """What the readers themselves say that they know, as a table of the page."""
    endings = {
        "Tables": tables.ENDINGS,
        "Any text file, compressed": COMPRESSED,
        "Series also": [one for one in ForecastTask.suffixes if one not in tables.ENDINGS],
        "Translation memories": pairs.ENDINGS,
        "Pictures": [one for one in images.PICTURES if one not in images.UNREAD],
        "Clips": (*images.CLIPS, *video.VIDEOS),
        "Recordings": audio.SOUNDS,
        "Texts beside files": listed.BESIDE,
    }
    names = {
        "Columns of files": (*dict.fromkeys(["image", *listed.FILES]),),
        "Columns of transcripts and captions": ("transcript", "caption", *listed.TEXTS),
        "Columns of classes": (images.LABELLED.text, *images.LABELLED.others),
    }
    rows = [
        f"| {name} | {', '.join(f'`{one}`' for one in dict.fromkeys(known))} |"
        for name, known in (endings | names).items()
    ]
    return "\n".join(["| Reader | knows |", "|---|---|", *rows]) + "\n"


def with_declared(page: str) -> str:
    """The page with the table that the readers make."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}{declared()}{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(with_declared(PAGE.read_text("utf-8")), "utf-8")
