"""Lists of files with a text each: recordings with transcripts, pictures with captions or labels.

One reader knows the lists of many toolkits: what they call their columns, and their files that are no table.
Read next: tables.py, which reads tables; audio.py and images.py, which use this.
"""

import csv
import json
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, islice
from pathlib import Path, PurePath
from typing import Any, BinaryIO, NamedTuple

from weft.data.files import archive_folders, is_stored
from weft.data.guess import has_header
from weft.data.held import folder_of
from weft.data.lines import each_line, numbered_lines, read_lines
from weft.data.report import Finding
from weft.data.tables import HEAD, RECORDS, WORKBOOKS, Row, TableFile, is_number, is_table, kind_of
from weft.errors import DataError, DataWarning
from weft.store import jsonfile

FILES = (
    *("file", "path", "image", "image_name", "file_name", "filename", "audio", "audio_filepath", "wav"),
    *("wav_filename", "audio_path", "audio_file", "filepath", "file_path", "image_path", "img", "img_path"),
    *("video", "clip", "youtube_id", "image_id", "id"),  # a file's name without its ending
)
TEXTS = (
    *("text", "comment", "transcript", "transcription", "sentence", "wrd", "words", "captions"),
    *("sentences", "raw_text", "normalized_text", "description", "caption_str", "title", "prompt", "raw"),
    *("utterance", "normalized_transcription"),
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

FEW = 5  # rows in which the column of the files is looked for

MOST_FOLDERS = 20_000
"""Most folders below that of a list in which its files are looked for, as it may lie in a home folder."""

BESIDE = (".txt", ".lab", ".caption")  # endings of files with the text of the file beside them

BELOW = re.compile(r"anno|meta|imagesets|.*(label|list|split)s?$|(etc|main)$", re.IGNORECASE)
"""Names of folders with lists, beside the folders of the files."""

IDS = {"text": "wav.scp", "image_class_labels.txt": "images.txt"}
"""Lists of Kaldi and of CUB-200 that name files by numbers, and the lists that say which these are."""

WEB = ("http://", "https://")

TIMED = (".stm", ".ctm", ".srt", ".vtt", ".textgrid", ".eaf")
"""Endings of transcripts of parts of a recording, with times."""

DECODERS = ("cat", "ffmpeg", "flac")
"""Commands of a wav.scp of Kaldi that only decode a recording, which is read itself then."""

_COUNTED = re.compile(r"[ _-]?(?<!\d)\d+$")  # caption_1, the first of several columns
_NUMBERED = re.compile(r"(\.[A-Za-z]{3,4})#\d+$")  # a.jpg#0, the first caption of a.jpg in Flickr8k
_ROOT = re.compile(r"^(\$data_root|\{data_root\}|\$\{data_root\}|\{ROOT\}|\$ROOT)/")  # of SpeechBrain


class ListForm(NamedTuple):
    """What a list holds: the names of its two columns, endings of its files, further names of its texts."""

    file: str
    text: str
    endings: tuple[str, ...]
    others: Sequence[str] = TEXTS
    folders: bool = False  # whether a row may name a folder, the frames of a clip
    classes: bool = False  # whether the texts are classes: also columns of 0 and 1, and names of folders

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
        found = {_COUNTED.sub("", cell.casefold()) for cell in cells}
        return not found.isdisjoint([self.text, *self.others])


class ListedText(NamedTuple):
    """A row of a list."""

    number: int  # of the line, row or record, from 1
    file: str
    text: str
    path: Path | None = None  # None if there is no such file
    id: int | str = ""  # COCO's image_id
    split: str = ""  # train, valid or test, where the list says it


class FileFinder:
    """Finds the files that a list (`source`) names, as it names them or by their own names in its folders."""

    def __init__(self, source: Path, where: Sequence[Path], form: ListForm) -> None:
        self._source, self._where, self._form = source, where, form
        self._said = False  # that one of several files of a name was taken

    def find(self, name: str) -> Path | None:
        """The file of this name: as it is named, or one in a folder like the list, or the nearest alone."""
        parts = PurePath(name).parts
        if not parts or any(len(part) > LONGEST_NAME for part in parts):
            return None
        for first in range(len(parts)):  # the list may come from another machine
            for folder in self._where:
                file = folder.joinpath(*parts[first:])
                if is_stored(file) or (self._form.folders and file.is_dir()):
                    return file
        every = self.called(name)
        alike = [one for one in every if self._source.stem.startswith(one.parent.name)]
        near = [one for one in every if len(one.parts) == min(len(each.parts) for each in every)]
        found = next((some[0] for some in (every, alike, near) if len(some) == 1), None)
        if found is not None and len(every) > 1 and len(alike) != 1 and not self._said:
            self._said = True
            what = f"{len(every)} files are called {parts[-1]}; {found} is read, as the nearest"
            warnings.warn(f"{self._source}: {what}", DataWarning, stacklevel=1)
        return found

    def called(self, name: str) -> list[Path]:
        """The files below the folders with the last part of this name."""
        return self._inside.get(PurePath(name).name, [])

    def place(self, rows: Sequence[Sequence[str]]) -> int | None:
        """The column of the files, by their endings or because there are such files; None if none has any."""
        cells = [(n, cell.strip()) for row in rows[:FEW] for n, cell in enumerate(row)]
        known = [n for n, cell in cells if cell.lower().endswith(self._form.endings)]
        return next(chain(known, (n for n, cell in cells if self.find(cell))), None)

    @cached_property
    def _inside(self) -> Mapping[str, list[Path]]:
        """The files below the folders by their names, and by those without an ending."""
        found: dict[str, list[Path]] = {}
        for top in dict.fromkeys(self._where):
            for place, folders, files in walk(top):
                known = [name for name in files if name.lower().endswith(self._form.endings)]
                for each in [*known, *folders] if self._form.folders else known:
                    for name in {each, PurePath(each).stem}:
                        found.setdefault(name, []).append(place / each)
        return found


def walk(top: Path) -> Iterator[tuple[Path, list[str], list[str]]]:
    """The folders below one, MOST_FOLDERS at most, each with the names of its visible folders and files."""
    for place, folders, files in islice(os.walk(top), MOST_FOLDERS):
        folders[:] = sorted(name for name in folders if name[0] != ".")
        yield Path(place), folders, sorted(name for name in files if name[0] != ".")


def files_below(folder: Path) -> list[Path]:
    """The visible files in a folder and below it, sorted."""
    every = list(walk(folder))
    if len(every) == MOST_FOLDERS:
        raise DataError(
            f"expected fewer than {MOST_FOLDERS:,} folders in it; name the one you mean", path=folder
        )
    return sorted(place / name for place, _, files in every for name in files)


def list_of(path: Path) -> Path:
    """The file of a list: x.csv of x.csv#COLUMN, and book.xlsx of book.xlsx#SHEET."""
    name, mark, _ = path.name.rpartition("#")
    return path.with_name(name) if mark and not path.exists() else path


def column_of(path: Path) -> tuple[Path, str]:
    """A list and the column that x.csv#COLUMN names; none if it names none, or a sheet."""
    file = list_of(path)
    column = "" if kind_of(path) in WORKBOOKS else path.name[len(file.name) + 1 :]
    return (file, column) if column else (path, "")


def folders_for(path: Path) -> list[Path]:
    """Where the files of a list are: its folder, images.zip in it, and those above a folder of lists."""
    above = [path.parent]
    while BELOW.match(above[-1].name):
        above.append(above[-1].parent)
    return [path.parent, *archive_folders(path.parent / "images.zip"), *above[1:]]


def listed(
    path: Path,
    form: ListForm,
    *,
    where: Sequence[Path] | None = None,
    language: str = "en",
    textless: bool = False,
) -> Iterator[ListedText | Finding]:
    """All rows of a list, or a finding for each that is damaged; reading continues after it.

    A table has two columns, or a header with names of `form`, FILES or TEXTS; x.csv#COLUMN names that of the
    texts. Any other file has a file name and a text in each line, with a tab between, or is of Kaldi,
    LibriSpeech, LJSpeech or wav2letter; a .json may be COCO's or Karpathy's. Files are in the folders
    `where`, by default that of the list; with `textless`, rows may have a file alone.
    """
    path, asked = column_of(path)
    where = [path, *(where or folders_for(path))] if path.is_dir() else where or folders_for(path)
    path = _in_folder(path)
    finder = FileFinder(path, where, form)
    if path.suffix.lower() in TIMED:
        what = "expected a recording in each line, got times within recordings; cut them, such as with"
        raise DataError(f"{what} ffmpeg -ss BEGIN -to END -i FILE PART.wav, and list the parts", path=path)
    rows = _of_no_table(path, form, finder, asked, textless)
    rows = rows or _rows(path, form, finder, language, asked, textless)
    known = path.parent / IDS.get(path.name, "")
    files = _ids(known) if known.is_file() else {}
    for row in rows:
        if isinstance(row, Finding):
            yield row
        elif files and row.file not in files:
            cut = ", as segments cuts the recordings; cut them with Kaldi's extract-segments"
            more = cut if path.with_name("segments").is_file() else "; correct or remove the line"
            what = f"expected {row.file} in {known.name} with a file or a command of {', '.join(DECODERS)}"
            yield Finding(str(path), row.number, "columns", f"{what}, got none{more}")
        elif row.file.startswith(WEB) or row.text.startswith(WEB):
            what = "expected the name of a file, got an address; fetch the files first, and name them"
            yield Finding(str(path), row.number, "columns", what)
        else:
            name = _NUMBERED.sub(r"\1", _ROOT.sub("", files.get(row.file, row.file).strip()))
            found = finder.find(name)
            if found is None and (several := finder.called(name)):
                what = f"expected one {form.file} called {name}, got {', '.join(map(str, several))[:300]}"
                yield Finding(str(path), row.number, "file", f"{what}; write the folder before the name")
            else:
                yield row._replace(file=name, text=" ".join(row.text.split()), path=found)


def listed_pictures(
    path: Path,
    form: ListForm,
    where: Sequence[Path] | None = None,
    *,
    split: str | None = None,
    language: str = "en",
) -> Iterator[ListedText | Finding]:
    """The rows of a list, or of a split, whose pictures exist and have a text; what is wrong with others."""
    for row in listed(path, form, where=where, language=language):
        if isinstance(row, ListedText) and split is not None and row.split not in ("", split):
            continue
        if isinstance(row, ListedText) and row.path is None:
            missing = str((where or [path.parent])[0] / row.file)[:300]
            what = f"no such picture {missing}; correct the name or remove the line"
            yield Finding(str(path), row.number, "file", what)
        elif isinstance(row, ListedText) and not row.text:
            what = f"the {form.text} is empty; write one or remove the line"
            yield Finding(str(path), row.number, "unlabelled", what)
        else:
            yield row


def named_files(
    source: Path | BinaryIO, form: ListForm, where: Sequence[Path] = ()
) -> Iterator[tuple[ListedText, Path]]:
    """The rows of a list and the files that they name, whose texts may be missing; a stream has lines."""
    if not isinstance(source, Path):
        for number, line in enumerate(read_lines(source), 1):
            if name := line.split("\t")[0].strip():
                yield ListedText(number, name, ""), Path(name)
        return
    folder = folder_of(source)
    own = None if folder == source.parent else [folder]
    for row in listed(source, form, where=where or own, textless=True):
        if isinstance(row, Finding):
            raise row.error()
        yield row, row.path or folder / row.file


def _of_no_table(
    path: Path, form: ListForm, finder: FileFinder, asked: str, textless: bool = True
) -> Iterator[ListedText | Finding] | None:
    """The rows of a list that is not a table; None for a table."""
    if path.is_dir():
        return _beside(path, form, textless)
    rows = _of_json(path, form) or _manifest(path, form, textless)
    cells_of = None if rows else _line_form(path, form, finder, asked, textless)
    return _lines(path, form, cells_of, textless) if cells_of else rows


def _beside(folder: Path, form: ListForm, textless: bool) -> Iterator[ListedText | Finding]:
    """The files of a folder with the texts beside them, also in a folder like theirs, or in .trans.txt."""
    every = files_below(folder)
    lines = (each_line(each) for each in every if each.name.endswith(".trans.txt"))
    said = dict(str(line).split(maxsplit=1) for each in lines for line in each if " " in str(line))
    texts = {each.stem: each for each in every if each.suffix in BESIDE}
    files = [each for each in every if each.suffix.lower() in form.endings]
    for number, file in enumerate(files, 1):
        own = [one for ending in BESIDE if (one := file.with_suffix(ending)).is_file()]
        text = said.get(file.stem)
        if text is None and (found := own[:1] or [one for one in [texts.get(file.stem)] if one]):
            text = " ".join(read_lines(found[0]))
        if text is None and not textless:
            what = f"expected its {form.text} in {file.stem}{BESIDE[0]}, got no such file"
            yield Finding(str(file), 0, "columns", f"{what}; write it, or remove this one")
        else:
            yield ListedText(number, str(file.relative_to(folder)), text or "")
    if not files:
        yield Finding(
            str(folder), 0, "columns", f"expected files and their texts, got no {form.file}; name a list"
        )


def _in_folder(path: Path) -> Path:
    """The list in a folder of Kaldi; any other path as it is."""
    return path / "text" if (path / "wav.scp").is_file() else path


def _line_form(
    path: Path, form: ListForm, finder: FileFinder, asked: str, textless: bool
) -> Callable[[str], list[str]] | None:
    """What makes a file's name and its text of a line; None for tables."""
    if kind_of(path) not in (".csv", ""):
        return None
    lines = [str(line) for line in islice(each_line(path), HEAD)]
    first = next(iter(lines), "")
    bars, words = first.split("|"), first.split(maxsplit=3)
    if len(bars) > 1 and not form.names(bars) and finder.find(bars[0]):  # LJSpeech
        return lambda line: line.split("|")[:: max(1, line.count("|"))]
    if is_table(path) or form.names(re.split("[,;|\t]", first)):
        return None
    if form.classes:
        return _class_form(path, lines, finder, asked, textless)
    if len(words) > 2 and words[1].lower().endswith(form.endings) and is_number(words[2]):  # wav2letter
        return lambda line: line.split(maxsplit=3)[1::2]
    if path.name == "text" or ("\t" not in first and words[1:] and finder.find(words[0])):  # LibriSpeech
        return lambda line: line.split(maxsplit=1)
    mark = next((one for one in "\t,;" if finder.find(first.split(one)[0].strip())), "\t")
    return lambda line: line.split(mark, -1 if mark == "\t" else 1)


def _class_form(
    path: Path, lines: Sequence[str], finder: FileFinder, asked: str, textless: bool
) -> Callable[[str], list[str]]:
    """What makes a file's name and its class of a line, which may have further numbers, or only the file."""
    if len(lines) > 2 and lines[0].strip().isdecimal():  # CelebA: a count, and the names of columns
        names = lines[1].split()
        if asked not in names:
            if textless and not asked:
                return lambda line: [] if line in lines[:2] else line.split()[:1]
            what = f"expected a column with the classes, got {', '.join(names)[:200]}"
            raise DataError(f"{what}; name one: {path.name}#{names[0]}", path=path)
        return lambda line: [] if line in lines[:2] else line.split()[:: names.index(asked) + 1][:2]

    def cells_of(line: str, mark: str) -> list[str]:
        return [cell for cell in next(csv.reader([line], delimiter=mark, skipinitialspace=True), []) if cell]

    def named(line: str) -> list[str]:
        cells = [] if line.startswith("#") else cells_of(line, mark)
        if not cells[place:]:
            return cells
        others = cells[place + 1 :] or cells[:place][-1:] or [PurePath(cells[place]).parent.name]
        whole = mark == " " and not all(map(is_number, others))
        return [cells[place], " ".join(others) if whole else others[0]]

    rows = [line for line in lines if line[:1] != "#"]
    places = {one: finder.place([cells_of(line, one) for line in rows]) for one in "\t,; "}
    found = next(((one, at) for one, at in places.items() if at is not None), None)
    mark, place = found or (next((one for one in places if one in rows[0].strip()), "\t"), 0)
    return named


def _lines(
    path: Path, form: ListForm, cells_of: Callable[[str], list[str]], textless: bool
) -> Iterator[ListedText | Finding]:
    for line in numbered_lines(path):
        if isinstance(line, Finding):
            yield line
            continue
        cells = cells_of(line[1]) if line[1].strip() else []
        if len(cells) == 2 or (cells and textless):
            yield ListedText(line[0], cells[0], cells[1] if cells[1:] else "")
        elif cells:
            yield _wrong(path, line[0], f"expected 2 columns ({form})", cells)


def _ids(path: Path) -> dict[str, str]:
    """The files of a list with ID FILE, or in Kaldi's wav.scp ID and a command that decodes the file."""
    found = {}
    for line in read_lines(path):
        name, *words = line.split()
        if words[-1:] == ["|"]:
            sounds = [word for word in words[1:-1] if "." in word and (path.parent / word).is_file()]
            words = sounds if len(sounds) == 1 and words[0] in DECODERS else []
        if words:
            found[name] = " ".join(words)
    return found


def _manifest(path: Path, form: ListForm, textless: bool) -> Iterator[ListedText | Finding] | None:
    """The rows of fairseq's .tsv: a folder, then FILE TAB SAMPLES, with texts in .wrd or .ltr beside it."""
    if kind_of(path) != ".tsv":
        return None
    folder, *rows = [str(line) for line in islice(each_line(path), FEW)]
    if "\t" in folder or not rows or not all(re.fullmatch(r"[^\t]+\t\d+", row) for row in rows):
        return None
    texts = next((one for ending in (".wrd", ".ltr") if (one := path.with_suffix(ending)).is_file()), None)
    said = [] if texts is None else list(read_lines(texts))
    if texts is not None and texts.suffix == ".ltr":
        said = [line.replace(" ", "").replace("|", " ") for line in said]
    names = [str(line).partition("\t")[0] for line in islice(each_line(path), 1, None)]
    said = said or [PurePath(name).parent.name if form.classes else "" for name in names]
    if len(said) != len(names):
        raise DataError(f"expected a line for each of {len(names):,} files, got {len(said):,}", path=texts)
    if not (textless or any(said)):
        place = f"in {path.stem}.wrd" + ", or as the folder of each file" * form.classes
        what = f"expected the {form.text}s {place}, got none; the number after a name is read as a size"
        raise DataError(f"{what}: if it is the {form.text}, remove the first line", path=path)
    return (
        ListedText(number, f"{folder}/{name}", text)
        for number, (name, text) in enumerate(zip(names, said, strict=True), 2)
    )


def _of_json(path: Path, form: ListForm) -> Iterator[ListedText | Finding] | None:
    """The rows of a .json of COCO, Karpathy, TextCaps, LLaVA or StyleGAN, or a map; None of other files."""
    if kind_of(path) != ".json":
        return None
    try:
        found = jsonfile.parse("\n".join(read_lines(path)))
    except ValueError as error:
        if isinstance(error, DataError):
            raise
        return None  # tables.py says what is wrong
    if isinstance(found, dict) and isinstance(found.get(form.all_files), list):
        return _of_files(path, found, form)
    if isinstance(found, dict) and all(PurePath(name).suffix.lower() in form.endings for name in found):
        return _named(found.items())
    by_class = form.classes and isinstance(found, dict) and not form.names(list(found))
    if by_class and all(map(_are_texts, found.values())):
        return _named((name, label) for label, names in found.items() for name in names)  # Food-101
    inside = (
        next((found[one] for one in ("data", "labels") if one in found), None)
        if isinstance(found, dict)
        else found
    )
    if not isinstance(inside, list) or not inside:
        return None
    if all(isinstance(one, list) and len(one) == 2 for one in inside):
        return _named(inside)
    if not all(isinstance(one, dict) for one in inside):
        return None
    for key, reader in (("conversations", _answered), ("annotations", _annotated)):
        if all(_are_records(one.get(key)) for one in inside):
            return _named(reader(one, form) for one in inside)
    if inside is found:
        return None
    keys = (form.file, *FILES), (form.text, *form.others)
    return _named([next((one[key] for key in some if key in one), "") for some in keys] for one in inside)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _are_records(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, dict) for one in value)


def _answered(record: Mapping[str, Any], form: ListForm) -> tuple[str, list[str]]:
    """The file of a record of LLaVA, and the first answer."""
    told = [one.get("value", "") for one in record["conversations"] if one.get("from") == "gpt"]
    return record.get(form.file, ""), told[:1]


def _annotated(record: Mapping[str, Any], form: ListForm) -> tuple[str, list[str]]:
    """The file of a record of Label Studio, and its choices or texts; none if it is not labelled yet."""
    data, told = record.get("data"), []
    for results in (one.get("result") for one in record["annotations"]):
        values = [one.get("value") for one in results] if _are_records(results) else []
        for value in values if _are_records(values) else []:
            texts = value.get("choices", value.get("text"))
            told += texts if isinstance(texts, list) else []
    named = [str(data[one]) for one in (form.file, *FILES) if isinstance(data, dict) and one in data]
    return next(iter(named), ""), told


def _named(rows: Iterable[Sequence[Any]]) -> Iterator[ListedText | Finding]:
    """Names of files, and a text of each, or several."""
    for number, (name, texts) in enumerate(rows, 1):
        for text in texts if isinstance(texts, list) else [texts]:
            yield ListedText(number, str(name), str(text))


def _of_files(path: Path, whole: Mapping[str, Any], form: ListForm) -> Iterator[ListedText | Finding]:
    """The texts of COCO (images and annotations), or of Karpathy (images with sentences)."""
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
        classes = {one["id"]: one["name"] for one in whole.get("categories", ())}
        rows = [
            (one["image_id"], str(one[form.text] if form.text in one else classes[one["category_id"]]))
            for one in whole["annotations"]
        ]
    except (KeyError, TypeError, AttributeError):
        wanted = f'("images" with id and file_name, "annotations" with image_id and {form.text})'
        why = f"expected COCO's form {wanted}, or Karpathy's, got other JSON; convert it, or give a .tsv"
        raise DataError(why, path=path) from None
    for at, (number, text) in enumerate(rows, 1):
        if not isinstance(number, int | str) or number not in names:
            what = f"annotation {at} is for image {repr(number)[:80]}, which is not among the images"
            yield Finding(str(path), 0, "columns", f"{what}; correct or remove it")
        else:
            yield ListedText(at, names[number], text, id=number)


def _rows(
    path: Path, form: ListForm, finder: FileFinder, language: str, asked: str, textless: bool
) -> Iterator[ListedText | Finding]:
    table = TableFile(path)
    file, text, split, header = columns(table, form, finder, language, asked)
    names = table.names() if header else []
    several = [
        n for n, one in enumerate(names) if n != file and _COUNTED.search(one) and form.names_text([one])
    ]
    others = [n for n in range(len(table.first)) if n not in (file, split)]
    if text is None and not several and header and form.classes and others:
        yield from _one_hot(table, file, others, textless)
        return
    if text is None and not several and not textless and (others or not form.classes):
        wanted = f"expected 2 columns ({form}), or a header with {form.file} and {form.text}"
        raise _wrong(path, table.number, wanted, table.first).error()
    for note in table.notes:
        warnings.warn(note, DataWarning, stacklevel=1)
    more = (table.find(one) for one in (form.text, *form.others) if table.kind in RECORDS and not asked)
    every = [one for one in dict.fromkeys([text, *more]) if one is not None and one != file]
    seconds = [n for one in ("time_start", "time_end") if header and (n := table.find(one)) is not None]
    for row in islice(table.rows(), header, None):
        if isinstance(row, Finding):
            yield row
            continue
        part = "" if split is None else row.cells[split].strip()
        cells = [row.cells[one] for one in several if row.cells[one].strip()]
        said = next(filter(None, (row.cells[one] for one in every)), "")
        if not others and form.classes:
            said = PurePath(row.cells[file]).parent.name
        for cell in cells or [said]:
            for each in _texts(cell, table.kind, language):
                name = "_".join([_path(row.cells[file]), *(row.cells[n].zfill(6) for n in seconds)])
                yield ListedText(row.number, name, each, split=SPLITS.get(part.casefold(), part))


def _one_hot(
    table: TableFile, file: int, classes: Sequence[int], textless: bool
) -> Iterator[ListedText | Finding]:
    """Files with a column of 0 and 1 for each class."""
    names = table.names()
    shown = ", ".join(names[n] for n in classes)[:100]
    what = f"expected a column with the label, or one 1 and 0 in all others of {shown}"
    way = f"; name the column ({table.path.name}#{names[classes[0]]})"
    for row in islice(table.rows(), 1, None):
        if isinstance(row, Finding):
            yield row
            continue
        cells = [row.cells[n].strip() for n in classes]
        values = [float(cell) if is_number(cell) else -1.0 for cell in cells]
        binary = {*values} <= {0.0, 1.0}
        if binary and len(values) > 1 and sum(values) == 1:
            yield ListedText(row.number, row.cells[file], names[classes[values.index(1.0)]])
        elif textless:
            yield ListedText(row.number, row.cells[file], "")
        elif not binary:
            raise DataError(what + way, path=table.path, line=row.number)
        else:
            yield Finding(str(table.path), row.number, "columns", f"{what}{way}, or correct the line")


def _path(cell: str) -> str:
    """The name of a file, which a record of Hugging Face has as {"path": NAME}."""
    if not cell.startswith("{"):
        return cell
    try:
        return str(json.loads(cell).get("path", cell))
    except (ValueError, AttributeError):
        return cell


def _texts(cell: str, kind: str, language: str) -> list[str]:
    """The texts of a cell: a record may have a list of them, also one for each language."""
    if not cell.startswith(("[", "{") if kind in RECORDS else '["'):
        return [cell]
    try:
        found = json.loads(cell)
    except (ValueError, RecursionError):  # such as [laughs]
        return [cell]
    found = found.get(language, "") if isinstance(found, dict) else found
    every = found if isinstance(found, list) else [found]
    return [str(one.get("raw", one)) if isinstance(one, dict) else str(one) for one in every]


def first_texts(path: Path, form: ListForm) -> list[str]:
    """The texts of the first rows of a list of files with endings of its form; none of any other file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # notes, which come again when it is read
        try:
            rows = list(islice(listed(path, form, textless=True), HEAD))
        except DataError:
            return []
    every = [(row.path or Path(row.file), row.text) for row in rows if isinstance(row, ListedText)]
    known = [
        text for one, text in every if one.suffix.lower() in form.endings or (form.folders and one.is_dir())
    ]
    several = [row for row in rows if isinstance(row, Finding) and row.kind == "file"]
    return known if len(rows) == len(known) + len(several) else []


class ListColumns(NamedTuple):
    """The columns of a table that is a list."""

    file: int
    text: int | None
    split: int | None
    header: bool


def columns(
    table: TableFile, form: ListForm, finder: FileFinder, language: str = "", asked: str = ""
) -> ListColumns:
    """The columns of a table by their names, else by what is in them; no text if that is not clear."""
    rows = [row.cells for row in islice(table.rows(), HEAD) if isinstance(row, Row)]
    file = next((n for one in (form.file, *FILES) if (n := table.find(one)) is not None), None)
    header = file is not None
    if file is None and (file := finder.place(rows)) is not None:
        header = finder.place([[rows[0][file]]]) is None and has_header(rows[0], rows[1:])
    file = file or 0
    split, every = table.find("split") if header else None, range(len(table.first))
    if not header:
        parts = (n for n in every if all(row[n].strip().casefold() in SPLITS for row in rows))
        split = next(parts, None)
    others = [n for n in every if n not in (file, split)]
    names = (form.text, *form.others, language) if header or not others[1:] else ()
    found = [n for one in ([asked] if asked else names) if one and (n := table.find(one)) is not None]
    if asked and not found:
        shown = ", ".join(table.names())[:200]
        raise DataError(f"expected a column {asked!r}, got {shown}; name one of them", path=table.path)
    text = next((n for n in found if n != file), others[0] if len(others) == 1 else None)
    if text is None and others and form.classes and not header:
        text = next((n for n in others if n > file), others[-1])
    return ListColumns(file, text, split, header)


def columns_note(path: Path, form: ListForm) -> tuple[str, ...]:
    """Which columns of a table are read, for a report; nothing for other lists."""
    path, asked = column_of(_in_folder(path))
    finder = FileFinder(path, folders_for(path), form)
    if _of_no_table(path, form, finder, asked):
        return ()
    table = TableFile(path)
    file, text, _, header = columns(table, form, finder, asked=asked)
    shown = [repr(table.names()[n]) if header else str(n + 1) for n in (file, text) if n is not None]
    return (f"{path}: columns {' and '.join(shown)} are read as {form.file} and {form.text}",)


def _wrong(path: Path, number: int, what: str, cells: Sequence[str]) -> Finding:
    return Finding(str(path), number, "columns", f"{what}, got {len(cells)}; correct or remove the line")
