"""Where translations looked, line by line: Pharaoh alignments and heat maps beside what `predict` says."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TextIO

import numpy as np
from matplotlib.figure import Figure

from weft.errors import DataError
from weft.inspect.alignment import heat_map, save
from weft.inspect.pharaoh import merge, pharaoh
from weft.tasks.translator import Alignment, Translation, Translator
from weft.text.vocabulary import EOS


class Looks:
    """Writes what is asked for, and nothing where nothing is.

    Args:
        translator: at work.
        alignments: file of Pharaoh alignments between words, a line for each line; None for none. It is
            there when all lines are seen, and one that was there before stays until then.
        plot: directory of pictures, numbered as the lines are; None for none.
        limit: pictures at most.

    Attributes:
        drawn: pictures made.

    Raises:
        ConfigError: on entering, alignments or pictures are asked of a model without attention.
        DataError: a place cannot be written.
    """

    def __init__(
        self,
        translator: Translator,
        alignments: Path | None = None,
        plot: Path | None = None,
        limit: int = 20,
    ) -> None:
        self.translator = translator
        self.path = alignments
        self.plot = plot
        self.limit = limit
        self.drawn = 0
        self._number = 0
        self._file: TextIO | None = None

    def __enter__(self) -> "Looks":
        if self.path is not None or self.plot is not None:
            self.translator.align(
                [EOS], []
            )  # a model without attention is refused before anything is written
        if self.plot is not None:
            with _refusing(self.plot):
                self.plot.mkdir(parents=True, exist_ok=True)
        if self.path is not None:
            with _refusing(self.path):
                if self.path.is_dir():
                    raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
                self._file = open(self._part, "w", encoding="utf-8", newline="\n")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is None or self.path is None:
            return
        try:
            with _refusing(self.path):
                self._file.close()
                if error is None:
                    os.replace(self._part, self.path)
        finally:
            self._part.unlink(missing_ok=True)

    @property
    def _part(self) -> Path:
        """The file of alignments until it is whole."""
        assert self.path is not None
        return self.path.with_name(f".{self.path.name}.{os.getpid()}.part")

    def see(self, line: str, found: Translation) -> None:
        """Align one line with its translation, as far as anything was asked for."""
        self._number += 1
        draws = self.plot is not None and self.drawn < self.limit
        if self._file is None and not draws:
            return
        if not found.tokens:
            self._write("")
            return
        looked = self.translator.align(self.translator.source.encode(line), found.tokens)
        if self._file is not None:
            self._write(pharaoh(_between_words(self.translator, looked)))
        if draws and self.plot is not None:
            for suffix in ("png", "svg"):
                save(_figure(self.translator, line, found, looked), self.plot / f"{self._number}.{suffix}")
            self.drawn += 1

    def _write(self, text: str) -> None:
        if self._file is not None and self.path is not None:
            with _refusing(self.path):
                self._file.write(text + "\n")


def draw(translator: Translator, line: str, found: Translation, path: Path) -> None:
    """One heat map as PNG and SVG.

    Args:
        translator: at work.
        line: the source.
        found: its translation.
        path: of the PNG; the SVG stands beside it.
    """
    looked = translator.align(translator.source.encode(line), found.tokens)
    figure = _figure(translator, line, found, looked)
    save(figure, path)
    save(figure, path.with_suffix(".svg"))


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DataError(
            f"{path}: cannot be written ({error.strerror or error}); make room or choose another place"
        ) from error


def _figure(translator: Translator, line: str, found: Translation, looked: Alignment) -> Figure:
    pieces = translator.source.pieces(looked.source), translator.target.pieces(looked.target)
    return heat_map(looked.weights, *pieces, title=f"{line}\n{found.text}\n({looked.shown})")


def _between_words(translator: Translator, looked: Alignment) -> np.ndarray:
    sides = (translator.source, looked.source), (translator.target, looked.target)
    return merge(looked.weights, *([word.positions for word in side.words(tokens)] for side, tokens in sides))
