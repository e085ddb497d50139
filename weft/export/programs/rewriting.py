"""Models that write a text for a text: translators, summarisers."""

from pathlib import Path
from typing import Any

import numpy as np

from weft.export.programs.common import KINDS, VocabularyFile
from weft.export.programs.kept import KeptSource
from weft.export.programs.writers import SourceWriter


class Rewriter(SourceWriter):
    """Text to text: a translator or a summariser."""

    def __init__(self, folder: Path, about: dict[str, Any]) -> None:
        super().__init__(folder, about)
        self.source = VocabularyFile(folder / about["source"])
        forms, codes, parts = about["kept"], about["codes"], about["keeps_parts"]
        self.kept = KeptSource(forms, codes, self.source, parts=parts) if forms else None
        self.note = ""

    def __call__(
        self, text: str, beam: int | None = None, target: str | None = None, source: str | None = None
    ) -> str:
        """The best text for a text; a model of many languages needs the target.

        Text without letters is its own translation; `note` says what another one lacks of its source.
        """
        self.note, kept = "", self.kept if self.about["decoding"]["verbatim"] else None
        if kept and kept.whole(text):
            return text if text.strip() else ""
        tokens, names = self.read(kept.readable(text) if kept else text, source, target)
        answer = self.target.decode(self.search(tokens, beam)[0], names) if tokens else ""
        self.note = kept.lacking(text, answer) if kept else ""
        return answer

    def read(self, text: str, language: str | None, target: str | None) -> tuple[list[int], list[str]]:
        """The tokens of a source, and its unknown pieces where the model can copy them."""
        directions, names = self.about.get("directions"), list[str]()
        if directions is None and self.about["copies"]:
            source, names = self.source.named(text, self.about["cut"])
        elif directions is None:
            source = self.source.encode(text)[: self.about["cut"]]
        else:
            pairs = [pair for pair in directions if pair.split("-")[1] == target]
            pairs = [pair for pair in pairs if language in (None, pair.split("-")[0])]
            if not pairs:
                raise SystemExit(f"--target: expected a language of {', '.join(directions)}, got {target}")
            way = directions[pairs[0]]
            if not text.strip():
                return [], []
            source = [*way["first"], *self.source.encode(way["prompt"].replace("{text}", text))]
        most = self.about["max_source"]
        if most is not None and len(source) > most:
            raise ValueError(f"expected at most {most} tokens, got {len(source)}; shorten the text")
        return source, names

    def search(self, source: list[int], beam: int | None = None) -> tuple[list[int], float]:
        """The best token sequence for source tokens, and its score."""
        row = np.array([source], np.int64)
        return self.write({"source": row, "mask": np.ones(row.shape, bool)}, len(source), beam)


KINDS |= {"rewrite": Rewriter}
