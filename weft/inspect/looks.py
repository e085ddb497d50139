"""Where translations looked, line by line: Pharaoh alignments and heat maps beside the output of `predict`."""

from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TextIO

from weft.errors import DataError
from weft.inspect.alignment import heat_map, save
from weft.inspect.pharaoh import merge, pharaoh
from weft.tasks.translator import Translation, Translator


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
        self, translator: Translator, alignments: Path | None = None, plot: Path | None = None, limit: int = 20
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
        source = self.translator.source.encode(line)
        looked = self.translator.align(source, found.tokens)
        if self._file is not None:
            words = [
                [word.positions for word in side.words(tokens)]
                for side, tokens in ((self.translator.source, source), (self.translator.target, found.tokens))
            ]
            self._file.write(pharaoh(merge(looked.weights, *words)) + "\n")
        if draws and self.plot is not None:
            pieces = self.translator.source.pieces(source), self.translator.target.pieces(looked.target)
            figure = heat_map(looked.weights, *pieces, title=f"{line}\n{found.text}\n({looked.shown})")
            for suffix in ("png", "svg"):
                save(figure, self.plot / f"{self._number}.{suffix}")
            self.drawn += 1
