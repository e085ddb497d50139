"""The corpus of weft distill: sources, what a teacher writes for them, and the student's held-out pairs.

    CORPUS/teacher.json, a README         teacher, search settings, sources
    CORPUS/train.en, CORPUS/train.es      sources, and the teacher's text for each
    CORPUS/mixed.en, CORPUS/mixed.es      the same and the original pairs (--mix)
    CORPUS/valid.*, CORPUS/test.*         the student's own
    CORPUS/<student>.yaml                 its recipe

A task with several directions has a folder of these for each. Every file is written atomically, so that
whatever exists is complete. Read next: distill.py.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.commands.options import search_of
from weft.data.lines import read_lines
from weft.errors import ConfigError
from weft.run.train import TEACHER_FILE, Teacher, teacher_of
from weft.store import files
from weft.store.digests import file_digest, named_files
from weft.tasks.abilities import OnPairs, PairDirection, Rewrites
from weft.tasks.task import Split

if TYPE_CHECKING:
    from weft.run import LoadedRun
    from weft.run.training import CheckedRecipe

MIXED = "mixed"
HELD_OUT: tuple[Split, ...] = ("valid", "test")


@dataclass(frozen=True)
class RewriteJob:
    """One direction of a corpus."""

    folder: Path
    student: PairDirection
    texts: Sequence[Path]
    pairs: Any
    languages: Mapping[str, str]

    @property
    def read(self) -> Path:
        """The file of the sources."""
        return self._file("train")

    @property
    def answers(self) -> Path:
        """The file of the teacher's texts."""
        return self._file("train", target=True)

    def copy(self) -> None:
        """Write the teacher's sources, and the student's validation and test pairs."""
        for split in HELD_OUT:
            if self.student.data.has(split):
                pairs = list(self.student.data.open(split))
                _same(self._file(split), (pair.source for pair in pairs))
                _same(self._file(split, target=True), (pair.target for pair in pairs))
        files.remove_leftovers(self.folder)
        if self.student.trained and not self.read.exists():
            write(self.read, _text(text for text in self._sources() if text.strip()))

    def mix(self) -> None:
        """Write the teacher's pairs and the original ones into one text."""
        if self.student.trained:
            originals = [pair for text in self.student.data.texts() for pair in text]
            _same(self._file(MIXED), [*read_lines(self.read), *(pair.source for pair in originals)])
            targets = [*read_lines(self.answers), *(pair.target for pair in originals)]
            _same(self._file(MIXED, target=True), targets)

    def _sources(self) -> Iterable[str]:
        if self.texts:
            return [line for file in self.texts for line in read_lines(file)]
        return [pair.source for text in self.pairs.texts() for pair in text]

    def _file(self, name: str, *, target: bool = False) -> Path:
        data = self.student.data
        return self.folder / f"{name}.{data.target if target else data.source}"


def jobs(
    opened: "LoadedRun", student: "CheckedRecipe", texts: Sequence[Path], corpus: Path
) -> list[RewriteJob]:
    """What to write in each direction of a student."""
    task, place, own = student.task, opened.path, str(student.plain["task"])
    if not isinstance(opened.pipeline, Rewrites) or not isinstance(opened.task, OnPairs):
        raise ConfigError(
            f"{place}: expected a run that turns a text into another, got one of the task "
            f"{opened.name}; name another"
        )
    known = opened.pipeline.directions()
    wanted = task.corpora() if isinstance(task, OnPairs) else ()
    missing = [one for one in wanted if one.trained and known and _languages(one) not in known]
    if not wanted or (own != opened.name and (missing or not known)):
        raise ConfigError(f"--student: expected a recipe for the task {opened.name}, got {own}; name another")
    if missing:
        names = ", ".join(map(_named, known))
        raise ConfigError(
            f"--student: expected languages of the teacher ({names}), got {_named(_languages(missing[0]))}; "
            "change the recipe's section data"
        )
    if texts and sum(one.trained for one in wanted) > 1:
        raise ConfigError("--sources: expected a student of one direction, got several; leave it out")
    read = {_languages(one): one.data for one in opened.task.corpora()}
    named = "target" in opened.task.prediction_settings.options()
    found = []
    for one in wanted:
        source, target = _languages(one)
        languages = {"source": source, "target": target} if named else {}
        pairs = read.get((source, target), next(iter(read.values())))
        found.append(RewriteJob(corpus / one.name, one, texts, pairs, languages))
    return found


def about(opened: "LoadedRun", options: Mapping[str, Any], texts: Sequence[Path]) -> Teacher:
    """The teacher as the corpus names it."""
    pipeline = opened.pipeline
    assert isinstance(pipeline, Rewrites)
    return Teacher(
        run=str(opened.path.resolve()),
        weights=file_digest(opened.path / "model.safetensors"),
        about=f"{opened.name}, {opened.task.about()}",
        decoding=pipeline.decoding.with_settings(search_of(options)).describe(),
        sources=[str(file.absolute()) for file in texts] or ["its training data"],
        ensemble=[str(Path(run).resolve()) for run in (options.get("ensemble") or ())],
        files=named_files({**options, "sources": tuple(texts)}),
    )


def begin(corpus: Path, teacher: Teacher) -> None:
    """Create the folder of a corpus, or check that it is the one of this teacher."""
    if files.claim(corpus, TEACHER_FILE, "corpus of distill", "choose another --corpus"):
        known = teacher_of(corpus)
        assert known is not None
        names = [name for name in Teacher.__struct_fields__ if name != "files"]
        differs = [name for name in names if getattr(known, name) != getattr(teacher, name)]
        if known.files:  # earlier versions wrote none
            used = {**known.files, **teacher.files}
            differs += [name for name in used if known.files.get(name) != teacher.files.get(name)]
        if differs:
            raise ConfigError(
                f"{corpus}: was written by a teacher with another {' and '.join(dict.fromkeys(differs))}; "
                "remove it, or choose another --corpus or --run"
            )
    teacher.save(corpus)  # first: it says whose the folder is
    write(corpus / "README.md", f"# {corpus.name}\n\n{teacher.paragraph()}\n".encode())


def write(path: Path, content: bytes) -> None:
    """Write a file of a corpus, atomically; one with this content stays as it is."""
    with files.refusals(path, files.AGAIN):
        if not path.exists() or path.read_bytes() != content:
            path.parent.mkdir(exist_ok=True)
            files.replace(path, content)


def _same(path: Path, lines: Iterable[str]) -> None:
    """Write the lines of a file that students may share, or check that it has them."""
    content = _text(lines)
    if path.exists() and path.read_bytes() != content:
        raise ConfigError(f"{path}: has different pairs from the student's recipe; choose another --corpus")
    write(path, content)


def _text(lines: Iterable[str]) -> bytes:
    return "".join(f"{' '.join(line.splitlines())}\n" for line in lines).encode("utf-8", "replace")


def _languages(direction: PairDirection) -> tuple[str, str]:
    return direction.data.source, direction.data.target


def _named(languages: tuple[str, str]) -> str:
    return " to ".join(languages)
