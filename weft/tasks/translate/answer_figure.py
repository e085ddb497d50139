"""Where translations looked, line by line: Pharaoh alignments and heat maps beside what `predict` says."""

import errno
import os
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

import numpy as np
from matplotlib.figure import Figure

from weft import files
from weft.figures.alignment import heat_map, save
from weft.figures.answers import Look, refusing
from weft.figures.pharaoh import merge, pharaoh
from weft.tasks.shared.writing.translator import Alignment, Translation, Translator
from weft.text.vocabulary import EOS


class TranslateLook(Look):
    """Writes what is asked for, and nothing where nothing is.

    The file of Pharaoh alignments between words has a line for each line; it is there when all lines are
    seen, and one that was there before stays until then.
    """

    predictor: Translator
    _number = 0
    _file: BinaryIO | None = None

    def __enter__(self) -> "TranslateLook":
        if self.alignments is not None or self.plot is not None:
            self.predictor.align([EOS], [])  # a model without attention is refused before anything is written
        super().__enter__()
        self._written = ExitStack()
        if self.alignments is not None:
            with refusing(self.alignments):
                if self.alignments.is_dir():
                    raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
                self._file = self._written.enter_context(files.replacing(self.alignments))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.alignments is not None:
            with refusing(self.alignments):
                self._written.__exit__(kind, error, trace)

    def see(self, look: tuple[str, Translation]) -> None:
        """Align one line with its translation, as far as anything was asked for."""
        line, found = look
        self._number += 1
        draws = self.plot is not None and self.drawn < self.limit
        if self._file is None and not draws:
            return
        if not found.tokens:
            self._write("")
            return
        translator = self.predictor.beside(line)
        looked = translator.align(translator.source.encode(line), found.tokens)
        if self._file is not None:
            self._write(pharaoh(_between_words(translator, looked)))
        if draws and self.plot is not None:
            for suffix in ("png", "svg"):
                save(_figure(translator, line, found, looked), self.plot / f"{self._number}.{suffix}")
            self.drawn += 1

    def _write(self, text: str) -> None:
        if self._file is not None and self.alignments is not None:
            with refusing(self.alignments):
                self._file.write(f"{text}\n".encode())


def draw(translator: Translator, line: str, found: Translation, path: Path) -> None:
    """One heat map as PNG and SVG.

    Args:
        translator: at work.
        line: the source.
        found: its translation.
        path: of the PNG; the SVG stands beside it.
    """
    translator = translator.beside(line)
    looked = translator.align(translator.source.encode(line), found.tokens)
    figure = _figure(translator, line, found, looked)
    save(figure, path)
    save(figure, path.with_suffix(".svg"))


def _figure(translator: Translator, line: str, found: Translation, looked: Alignment) -> Figure:
    pieces = translator.source.pieces(looked.source), translator.target.pieces(looked.target)
    return heat_map(looked.weights, *pieces, title=f"{line}\n{found.text}\n({looked.shown})")


def _between_words(translator: Translator, looked: Alignment) -> np.ndarray:
    sides = (translator.source, looked.source), (translator.target, looked.target)
    return merge(looked.weights, *([word.positions for word in side.words(tokens)] for side, tokens in sides))
