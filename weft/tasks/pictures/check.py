"""Reports every problem with pictures and their captions or classes at once, each with its place."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from weft.data.captions import CAPTIONED, folders, located, read_captions
from weft.data.images import CLIPS, PICTURES, is_clip, read_clip
from weft.data.lines import read_lines
from weft.data.listed import listed
from weft.data.report import COMMON, Finding, Report, placed
from weft.errors import DataError
from weft.tasks.pictures.data import read

SIZES = "pictures of other sizes"
CAPTIONS = COMMON | {
    "file": "pictures or files that cannot be read",
    "unlabelled": "pictures without a caption",
    "ratio": SIZES,
}
CLASSES = COMMON | {
    "file": "pictures, clips or folders that cannot be read",
    "single": "folders without two classes",
    "label": "classes without pictures",
    "nothing": "files that are not pictures",
    "again": "duplicate pictures",
    "ratio": SIZES,
}


def check_captions(files: Sequence[Path]) -> Report:
    """Check every line of captions files, and every picture they name."""
    findings: list[Finding] = []
    lines = {}
    for path in files:
        try:
            if path.suffix.lower() in (".json", ".jsonl"):
                found, wrong = [one.path for one in read_captions(path)], list[Finding]()
                count = len(list(read_lines(path)))
            else:
                found, wrong, count = _table(path)
        except DataError as error:
            findings.append(placed(str(path), error))
            lines[str(path)] = 0
            continue
        findings += wrong
        lines[str(path)] = count
        sizes: dict[tuple[int, ...], Path] = {}
        for picture in dict.fromkeys(found):
            findings += _picture(picture, sizes)
    return _report(findings, lines, CAPTIONS, "lines")


def check_classes(files: Sequence[Path]) -> Report:
    """Check every picture or clip in folders with a folder for each class."""
    findings: list[Finding] = []
    lines = {}
    for path in files:
        sizes: dict[tuple[int, ...], Path] = {}
        seen: dict[bytes, Path] = {}
        lines[str(path)] = 0
        if not path.is_dir():
            what = "no such folder; give one with a folder for each class"
            findings.append(Finding(str(path), 0, "file", what))
            continue
        folders = sorted(each for each in path.iterdir() if each.is_dir() and each.name[0] != ".")
        if len(folders) < 2:
            findings.append(
                Finding(str(path), 0, "single", f"expected two or more folders, got {len(folders)}")
            )
        for folder in folders:
            inside = sorted(each for each in folder.iterdir() if each.name[0] != ".")
            known = [each for each in inside if each.suffix.lower() in PICTURES + CLIPS]
            if not known:
                findings.append(
                    Finding(str(folder), 0, "label", "expected pictures or clips, got none; add some")
                )
            for other in set(inside) - set(known):
                findings.append(
                    Finding(
                        str(other), 0, "nothing", "not a picture or clip by its extension; it is left out"
                    )
                )
            for each in known:
                lines[str(path)] += 1
                findings += _picture(each, sizes, clip=is_clip(each))
                first = seen.setdefault(each.read_bytes(), each)
                if first != each:
                    findings.append(Finding(str(each), 0, "again", f"the same file as {first}"))
    return _report(findings, lines, CLASSES, "pictures")


def _picture(path: Path, sizes: dict[tuple[int, ...], Path], clip: bool = False) -> Iterator[Finding]:
    try:
        shape = (read_clip(path) if clip else read(path, None)).shape
    except DataError as error:
        yield placed(str(path), error)
        return
    first = next(iter(sizes), shape)
    if shape != first and shape not in sizes:
        ours, theirs = (" x ".join(map(str, one)) for one in (shape, first))
        what = f"{ours}, but {sizes[first]} has {theirs}; set data.size so that all are scaled"
        yield Finding(str(path), 0, "ratio", what)
    sizes.setdefault(shape, path)


def _table(path: Path) -> tuple[list[Path], list[Finding], int]:
    """The pictures of a table, what is wrong, and the number of rows; past any error."""
    found, wrong, count = [], [], 0
    where = folders(path)
    for row in listed(path, CAPTIONED):
        count += 1
        if isinstance(row, Finding):
            wrong.append(row)
        elif not row.text:
            wrong.append(Finding(str(path), row.number, "unlabelled", "the caption is empty; write one"))
        elif (picture := located(row.file, where)) is None:
            what = f"no picture {path.parent / row.file}; correct the name or remove the line"
            wrong.append(Finding(str(path), row.number, "file", what))
        else:
            found.append(picture)
    return found, wrong, count


def _report(findings: list[Finding], lines: dict[str, int], words: Mapping[str, str], item: str) -> Report:
    counts: dict[str, int] = {}
    for one in findings:
        counts[one.kind] = counts.get(one.kind, 0) + 1
    return Report(findings, counts, lines, words, item)
