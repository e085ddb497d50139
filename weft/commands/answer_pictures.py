"""The figures and alignments that `weft predict` writes in addition to its answers.

Read next: ../tasks/predictor.py, what an answer can show.
"""

import errno
import os
from collections.abc import Mapping
from contextlib import ExitStack, nullcontext
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from weft.errors import DataError
from weft.figures.picture import png, svg
from weft.store import files
from weft.tasks.predictor import Answer, Predictor


class AnswerPictures:
    """Writes the pictures of the first answers, and the word alignments of all of them.

    Pictures are named by the number of their answer, or as the answer says. The file of alignments has a line
    for each answer and appears when all of them are written.

    `plot` is the directory of the pictures, `drawn` their number so far.
    """

    def __init__(
        self, predictor: Predictor[Any], plot: Path | None, alignments: Path | None, limit: int
    ) -> None:
        self.drawn = 0
        self._predictor = predictor
        self._plot = plot
        self._alignments = alignments
        self._limit = limit
        self._seen = 0
        self._kept: list[Answer] = []
        self._names: set[str] = set()
        self._file: BinaryIO | None = None
        self._stack = ExitStack()

    def __enter__(self) -> "AnswerPictures":
        for path in (self._alignments, self._plot):
            if path is not None:
                self._predictor.check_figures(alignments=path is self._alignments)
        if self._plot is not None:
            with files.refusals(self._plot):
                self._plot.mkdir(parents=True, exist_ok=True)
        if self._alignments is not None:
            with files.refusals(self._alignments):
                if self._alignments.is_dir():
                    raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
                self._file = self._stack.enter_context(files.replacing(self._alignments))
        self._stack.push(self._draw_overview)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with nullcontext() if self._alignments is None else files.refusals(self._alignments):
            self._stack.__exit__(kind, error, trace)

    def _draw_overview(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._plot is None or kind is not None or not self._kept:
            return
        overview = self._predictor.overview(self._kept)
        if overview is not None:
            self._write("sheet", {".png": png(overview), ".svg": svg(overview).encode()})

    def see(self, answer: Answer) -> None:
        """Draw and align one answer, if figures or alignments were requested."""
        self._seen += 1
        if self._file is not None and self._alignments is not None:
            with files.refusals(self._alignments):
                self._file.write(f"{answer.alignment()}\n".encode())
        if self._plot is None or self.drawn >= self._limit:
            return
        pictures = answer.pictures()
        if not pictures:
            return
        self.drawn += 1
        self._kept.append(answer)
        name = answer.figure_name() or str(self._seen)
        self._write(f"{name}-{self._seen}" if name in self._names else name, pictures)
        self._names.add(name)

    def _write(self, name: str, pictures: Mapping[str, bytes]) -> None:
        assert self._plot is not None
        for ending, content in pictures.items():
            path = self._plot / f"{name}{ending}"
            if ".svg" in pictures and path.exists() and not path.with_suffix(".svg").exists():
                # An earlier one of Weft has an .svg beside it; this may be one of the pictures that are read.
                raise DataError("is a picture that Weft has not drawn; choose another directory", path=path)
            with files.refusals(path):
                files.replace(path, content)
