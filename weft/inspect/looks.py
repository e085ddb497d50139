"""Where translations looked, line by line: Pharaoh alignments and heat maps beside what `predict` says."""

from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TextIO

import numpy as np
from matplotlib.figure import Figure

from weft.errors import DataError
from weft.inspect.alignment import heat_map, save
from weft.inspect.pharaoh import merge, pharaoh
from weft.tasks.translator import Alignment, Translation, Translator


class Looks:
    """Writes what is asked for, and nothing where nothing is.

    Args:
        translator: at work.
        alignments: file of Pharaoh alignments between words, a line for each line; None for none.
        plot: directory of pictures, numbered as the lines are; None for none.
        limit: pictures at most.

    Attributes:
        drawn: pictures made.
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
        self._stack = ExitStack()
        self._file: TextIO | None = None

    def __enter__(self) -> "Looks":
        try:
            if self.path is not None:
                self._file = self._stack.enter_context(open(self.path, "w", encoding="utf-8", newline="\n"))
        except OSError as error:
            raise DataError(f"{self.path}: cannot be written ({error.strerror})") from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def see(self, line: str, found: Translation) -> None:
        """Align one line with its translation, as far as anything was asked for."""
        self._number += 1
        draws = self.plot is not None and self.drawn < self.limit
        if self._file is None and not draws:
            return
        if not found.tokens:
            if self._file is not None:
                self._file.write("\n")
            return
        looked = self.translator.align(self.translator.source.encode(line), found.tokens)
        if self._file is not None:
            self._file.write(pharaoh(_between_words(self.translator, looked)) + "\n")
        if draws and self.plot is not None:
            for suffix in ("png", "svg"):
                save(_figure(self.translator, line, found, looked), self.plot / f"{self._number}.{suffix}")
            self.drawn += 1


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


def _figure(translator: Translator, line: str, found: Translation, looked: Alignment) -> Figure:
    pieces = translator.source.pieces(looked.source), translator.target.pieces(looked.target)
    return heat_map(looked.weights, *pieces, title=f"{line}\n{found.text}\n({looked.shown})")


def _between_words(translator: Translator, looked: Alignment) -> np.ndarray:
    sides = (translator.source, looked.source), (translator.target, looked.target)
    return merge(looked.weights, *([word.positions for word in side.words(tokens)] for side, tokens in sides))
