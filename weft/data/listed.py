"""Lists of files with a text each: recordings with transcripts, pictures with captions or labels.

One reader knows the lists of many toolkits: what they call their columns, and their files that are no table.
Read next: tables.py, which reads tables; captions.py, audio.py and images.py, which use this.
"""

import json
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from weft.data import archive
from weft.data.lines import each_line, read_lines
from weft.data.report import Finding, placed
from weft.data.tables import HEAD, RECORDS, TableFile, is_number, is_table, kind_of
from weft.errors import DataError, DataWarning
from weft.store import jsonfile

FILES = (
    *("file", "path", "image", "image_name", "file_name", "filename", "audio", "audio_filepath", "wav"),
    *("wav_filename", "audio_path", "audio_file", "filepath", "file_path", "image_path", "img", "img_path"),
    *("image_id", "id"),  # a file's name without its ending
)
TEXTS = (
    *("text", "comment", "transcript", "transcription", "sentence", "wrd", "words", "captions"),
    *("sentences", "raw_text", "normalized_text", "description"),
)
"""Further names of columns, in any letter case; of several, the first here."""

SPLITS = {"train": "train", "training": "train", "val": "valid", "valid": "valid", "dev": "valid"}
SPLITS |= {
    "validation": "valid",
    "test": "test",
    "testing": "test",
    "restval": "train",
}  # restval: Karpathy's, for training

LONGEST_NAME = 255

DECODERS = ("cat", "ffmpeg", "flac")
"""Commands of a wav.scp of Kaldi that only decode a recording, which is read itself then."""

_NUMBERED = re.compile(r"(\.[A-Za-z]{3,4})#\d+$")  # a.jpg#0, the first caption of a.jpg in Flickr8k
_ROOT = re.compile(r"^(\$data_root|\{data_root\}|\$\{data_root\}|\{ROOT\}|\$ROOT)/")  # of SpeechBrain


class ListForm(NamedTuple):
    """What a list holds: the names of its two columns, endings of its files, further names of its texts."""

    file: str
    text: str
    endings: tuple[str, ...]
    others: Sequence[str] = TEXTS

    def __str__(self) -> str:
        return f"{self.file.upper()} TAB {self.text.upper()}"

    @property
    def all_files(self) -> str:
        """Where COCO and Karpathy list the files."""
        return f"{self.file}s"

    def names(self, cells: Sequence[str]) -> bool:
        """Whether several cells of a header name the column of the files."""
        found = {cell.strip().strip('"').casefold() for cell in cells}
        return len(found) > 1 and not found.isdisjoint([self.file, *FILES])

    def names_text(self, cells: Sequence[str]) -> bool:
        """Whether a cell of a header names the column of the texts."""
        return not {cell.casefold() for cell in cells}.isdisjoint([self.text, *self.others])


class ListedText(NamedTuple):
    """A row of a list."""

    number: int  # of the line, row or record, from 1
    file: str
    text: str
    path: Path | None = None  # None if there is no such file
    id: int | str = ""  # COCO's image_id
    split: str = ""  # train, valid or test, where the list says it


class FileFinder:
    """Finds the files that a list names: as it names them, or by their own names in its folder.

    Args:
        source: the list.
        where: folders of the files.
        endings: of a file that is named without one.
    """

    def __init__(self, source: Path, where: Sequence[Path], endings: Sequence[str]) -> None:
        self._source, self._where, self._endings = source, where, endings

    def find(self, name: str) -> Path | None:
        """The file of this name; None if there is none, or several and none in a folder like the list."""
        parts = PurePath(name).parts
        if not parts or any(len(part) > LONGEST_NAME for part in parts):
            return None
        for first in range(len(parts)):  # the list may come from another machine
            for folder in self._where:
                if archive.is_file(file := folder.joinpath(*parts[first:])):
                    return file
        every = self._inside.get(parts[-1], [])
        alike = [one for one in every if self._source.stem.startswith(one.parent.name)]
        return next(iter(every if len(every) == 1 else alike[:1] if len(alike) == 1 else []), None)

    @cached_property
    def _inside(self) -> Mapping[str, list[Path]]:
        """All files in the folders by their names, and by those without an ending."""
        found: dict[str, list[Path]] = {}
        for folder in dict.fromkeys(self._where):
            for file in sorted(folder.rglob("*")) if folder.is_dir() else ():
                if file.suffix.lower() in self._endings and file.name[0] != ".":
                    for name in {file.name, file.stem}:
                        found.setdefault(name, []).append(file)
        return found


def listed(
    path: Path,
    form: ListForm,
    *,
    where: Sequence[Path] | None = None,
    language: str = "en",
    textless: bool = False,
) -> Iterator[ListedText | Finding]:
    """All rows of a list, or a finding for each that is damaged; reading continues after it.

    A table has two columns, or a header with names of `form`, FILES or TEXTS. Any other file has a file name
    and a text in each line, with a tab between, or is of Kaldi, LibriSpeech, LJSpeech or wav2letter; a .json
    may be COCO's or Karpathy's.

    Args:
        where: folders of the files; by default that of the list.
        language: which text to take of records with texts in several languages.
        textless: whether rows may have a file alone.
    """
    path = _in_folder(path)
    finder = FileFinder(path, [path.parent] if where is None else where, form.endings)
    if (whole := _nested(path, form)) is not None:
        rows = _of_files(path, whole, form)
    elif cells_of := _line_form(path, form, finder):
        rows = _lines(path, form, cells_of, textless)
    else:
        rows = _rows(path, form, language, textless)
    known = path.with_name("wav.scp")
    files = _kaldi(known) if path.name == "text" and known.is_file() else {}
    for row in rows:
        if isinstance(row, Finding):
            yield row
        elif files and row.file not in files:
            cut = ", as segments cuts the recordings; cut them with Kaldi's extract-segments"
            more = cut if path.with_name("segments").is_file() else "; correct or remove the line"
            what = f"expected {row.file} in wav.scp with a file or a command of {', '.join(DECODERS)}"
            yield Finding(str(path), row.number, "columns", f"{what}, got none{more}")
        else:
            name = _NUMBERED.sub(r"\1", _ROOT.sub("", files.get(row.file, row.file).strip()))
            text = " ".join(row.text.split())
            yield row._replace(file=name, text=text, path=finder.find(name))


def _in_folder(path: Path) -> Path:
    """The list in a folder of Kaldi; any other path as it is."""
    return path / "text" if (path / "wav.scp").is_file() else path


def _line_form(path: Path, form: ListForm, finder: FileFinder) -> Callable[[str], list[str]] | None:
    """What makes a file's name and its text of a line; None for tables."""
    if kind_of(path) not in (".csv", ""):
        return None
    first = str(next(each_line(path), ""))
    bars, words = first.split("|"), first.split(maxsplit=3)
    if len(bars) > 1 and not form.names(bars) and finder.find(bars[0]):  # LJSpeech
        return lambda line: line.split("|")[:: max(1, line.count("|"))]
    if is_table(path) or form.names(re.split("[,;|\t]", first)):
        return None
    if len(words) > 2 and words[1].lower().endswith(form.endings) and is_number(words[2]):  # wav2letter
        return lambda line: line.split(maxsplit=3)[1::2]
    if path.name == "text" or ("\t" not in first and words[1:] and finder.find(words[0])):  # LibriSpeech
        return lambda line: line.split(maxsplit=1)
    return lambda line: line.split("\t")


def _lines(
    path: Path, form: ListForm, cells_of: Callable[[str], list[str]], textless: bool
) -> Iterator[ListedText | Finding]:
    for number, line in enumerate(each_line(path), 1):
        if isinstance(line, DataError):
            yield placed(str(path), line, "bytes")
        elif line.strip():
            cells = cells_of(line)
            if textless or len(cells) == 2:
                yield ListedText(number, cells[0], cells[1] if cells[1:] else "")
            else:
                yield _wrong(path, number, f"expected 2 columns ({form})", cells)


def _kaldi(path: Path) -> dict[str, str]:
    """The files of a wav.scp: ID FILE, or ID and a command that decodes the file."""
    found = {}
    for line in read_lines(path):
        name, *words = line.split()
        if words[-1:] == ["|"]:
            sounds = [word for word in words[1:-1] if "." in word and (path.parent / word).is_file()]
            words = sounds if len(sounds) == 1 and words[0] in DECODERS else []
        if words:
            found[name] = " ".join(words)
    return found


def _nested(path: Path, form: ListForm) -> Mapping[str, Any] | None:
    """The content of a .json that has a list of images, as COCO's and Karpathy's; None of other files."""
    if kind_of(path) != ".json":
        return None
    try:
        found = jsonfile.parse("\n".join(read_lines(path)))
    except ValueError as error:
        if isinstance(error, DataError):
            raise
        return None  # tables.py says what is wrong
    return found if isinstance(found, dict) and isinstance(found.get(form.all_files), list) else None


def _of_files(path: Path, whole: Mapping[str, Any], form: ListForm) -> Iterator[ListedText | Finding]:
    """The captions of COCO (images and annotations), or of Karpathy (images with sentences)."""
    try:
        files = whole[form.all_files]
        if files and all("sentences" in one for one in files):
            for number, one in enumerate(files, 1):
                name = "/".join(filter(None, [one.get("filepath", ""), one["filename"]]))
                split, known = SPLITS.get(one.get("split", ""), ""), one.get("cocoid", one.get("imgid", ""))
                for said in one["sentences"]:
                    yield ListedText(number, name, str(said["raw"]), id=known, split=split)
            return
        names = {image["id"]: str(image["file_name"]) for image in files}
        rows = [(one["image_id"], str(one[form.text])) for one in whole["annotations"]]
    except (KeyError, TypeError, AttributeError):
        wanted = '("images" with id and file_name, "annotations" with image_id and caption)'
        why = f"expected COCO's form {wanted}, or Karpathy's, got other JSON; convert it, or give a .tsv"
        raise DataError(why, path=path) from None
    for at, (number, caption) in enumerate(rows, 1):
        if not isinstance(number, int | str) or number not in names:
            what = f"annotation {at} is for image {repr(number)[:80]}, which is not among the images"
            yield Finding(str(path), 0, "columns", f"{what}; correct or remove it")
        else:
            yield ListedText(at, names[number], caption, id=number)


def _rows(path: Path, form: ListForm, language: str, textless: bool) -> Iterator[ListedText | Finding]:
    table = TableFile(path)
    file, text, header = columns(table, form, language)
    if text is None and not textless:
        wanted = f"expected 2 columns ({form}), or a header with {form.file} and {form.text}"
        raise _wrong(path, table.number, wanted, table.first).error()
    for note in table.notes:
        warnings.warn(note, DataWarning, stacklevel=1)
    split = table.find("split") if header else None
    others = (table.find(one) for one in (form.text, *form.others) if table.kind in RECORDS)
    every = [one for one in dict.fromkeys([text, *others]) if one is not None and one != file]
    for row in islice(table.rows(), header, None):
        if isinstance(row, Finding):
            yield row
            continue
        part = "" if split is None else row.cells[split].strip()
        cell = next(filter(None, (row.cells[one] for one in every)), "")
        for each in _texts(cell, table.kind, language):
            yield ListedText(row.number, row.cells[file], each, split=SPLITS.get(part, part))


def _texts(cell: str, kind: str, language: str) -> list[str]:
    """The texts of a cell: a record may have a list of them, also one for each language."""
    if kind not in RECORDS or not cell.startswith(("[", "{")):
        return [cell]
    try:
        found = json.loads(cell)
    except (ValueError, RecursionError):  # such as [laughs]
        return [cell]
    found = found.get(language, "") if isinstance(found, dict) else found
    every = found if isinstance(found, list) else [found]
    return [str(one.get("raw", one)) if isinstance(one, dict) else str(one) for one in every]


def lists_files(path: Path, form: ListForm) -> bool:
    """Whether the files that the first rows of a list name have endings of its form."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # notes, which come again when it is read
        rows = list(islice(listed(path, form), HEAD))
    return bool(rows) and all(
        isinstance(row, ListedText) and (row.path or Path(row.file)).suffix.lower() in form.endings
        for row in rows
    )


def columns(table: TableFile, form: ListForm, language: str = "") -> tuple[int, int | None, bool]:
    """The columns of the files and of the texts, and whether the first row is a header.

    Without a header, the text has no column unless there are two.
    """
    first = next((n for one in (form.file, *FILES) if (n := table.find(one)) is not None), None)
    names = (form.text, *form.others, language)
    found = (table.find(one) for one in names if one)
    second = next((n for n in found if n is not None and n != first), None)
    if first is not None and second is None and len(table.first) == 2:
        second = 1 - first
    if first is not None and (second is not None or len(table.first) == 1):
        return first, second, True
    return 0, 1 if len(table.first) == 2 else None, False


def columns_note(path: Path, form: ListForm) -> tuple[str, ...]:
    """Which columns of a table are read, for a report; nothing for other lists."""
    path = _in_folder(path)
    if _nested(path, form) or _line_form(path, form, FileFinder(path, [path.parent], form.endings)):
        return ()
    table = TableFile(path)
    file, text, header = columns(table, form)
    shown = [repr(table.names()[n]) if header else str(n + 1) for n in (file, text) if n is not None]
    return (f"{path}: columns {' and '.join(shown)} are read as {form.file} and {form.text}",)


def _wrong(path: Path, number: int, what: str, cells: Sequence[str]) -> Finding:
    return Finding(str(path), number, "columns", f"{what}, got {len(cells)}; correct or remove the line")
