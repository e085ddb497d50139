"""Models that describe a picture in a sentence."""

from pathlib import Path
from typing import Any

import numpy as np

from weft.export.programs.common import KINDS
from weft.export.programs.picture_files import Given, numbers, picture, read_file
from weft.export.programs.writers import SourceWriter


class PictureCaptioner(SourceWriter):
    """A caption for a picture."""

    def __init__(self, folder: Path, about: dict[str, Any]) -> None:
        super().__init__(folder, about)
        self.shape, self.size = about["shape"], about["size"]

    def __call__(self, given: Given, beam: int | None = None) -> str:
        """The caption."""
        source = {"picture": self.read(given)[None]}
        return self.target.decode(self.write(source, 0, beam)[0])

    def read(self, given: Given) -> np.ndarray:
        """A file as the model reads it, float32: pixels from -1 to 1, or features."""
        found = read_file(given, self.shape, self._content)
        return found.astype(np.float32) / np.float32(127.5) - 1 if found.dtype == np.uint8 else found

    def _content(self, given: Path | bytes) -> np.ndarray:
        found = numbers(given)
        return picture(given, self.size) if found is None else found.astype(np.float32)


KINDS |= {"captions": PictureCaptioner}
