"""Models that write a text for a text: translators, summarisers."""

import re
import unicodedata
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from weft.export.programs.common import KINDS, VocabularyFile
from weft.export.programs.writers import SourceWriter

SIGNS = str.maketrans("’‘‚‛′“”„‟″‐‑‒–—―−", "'''''\"\"\"\"\"-------")


class KeptSource:
    """Text without letters; in translations also placeholders, numbers, and characters without a token."""

    def __init__(self, forms: str, codes: str, vocabulary: VocabularyFile, *, parts: bool) -> None:
        self.parts = parts  # whether parts of a text with letters are kept too
        self.forms, self.codes = re.compile(forms), re.compile(codes)
        self.vocabulary = vocabulary
        self.tokenizer, self.order = vocabulary.tokenizer, vocabulary.order
        self.listed = type(self.tokenizer.model).__name__ == "WordLevel"
        own = self.tokenizer.get_vocab().values() if self.order is None else self.order
        numbers = {number for here, number in enumerate(own) if (number if self.order is None else here) > 3}
        names = (name for name, number in self.tokenizer.get_vocab().items() if number in numbers)
        self.known = {" ", *("".join(names) if self.order is None or self.listed else "")}
        self.lost = set[str]()  # what another program's tokenizer lacks

    def readable(self, text: str) -> str:
        """The text with plain signs and other letter cases for characters that the vocabulary lacks."""
        if not self.parts:
            return text
        form = (
            text
            if self.order is not None or self.vocabulary.form == "none"
            else unicodedata.normalize("NFC", text)
        )
        return "".join(mark if mark.isspace() else self.other(mark) or mark for mark in form)

    def other(self, mark: str) -> str | None:
        """A form of a character that the vocabulary has."""
        forms = (mark, mark.translate(SIGNS), mark.lower(), mark.upper(), unicodedata.normalize("NFKC", mark))
        return next((one for one in forms if self.has(one)), None)

    def has(self, text: str) -> bool:
        """Whether the vocabulary has all characters of a text."""
        normaliser = self.tokenizer.normalizer if self.listed else None
        if self.order is None:
            text = self.vocabulary.normalise(text)
        elif normaliser is not None:
            text = normaliser.normalize_str(text)
        return all(mark in self.known or self.found(mark) for mark in text)

    def found(self, mark: str) -> bool:
        """Whether another program's tokenizer, which may have bytes, has a character."""
        if self.order is not None and mark not in self.lost:
            there = mark.isspace() or 1 not in self.vocabulary.encode(mark)
            (self.known if there else self.lost).add(mark)
        return mark in self.known

    def unknown(self, text: str) -> list[str]:
        """The characters that the vocabulary has in no form, outside of placeholders."""
        if not self.parts:
            return []
        return [mark for mark in self.readable(self.forms.sub(" ", text)) if not self.has(mark)]

    def whole(self, text: str) -> bool:
        """Whether a text has no letters to translate, beside placeholders, codes and unknown words."""
        unknown, bare = set(self.unknown(text)), self.codes.sub("0", self.forms.sub(" ", text))
        rest = [word for word in bare.split() if not unknown.intersection(word)]
        reads = self.order is not None or any(map(str.isalpha, self.known))
        return reads and not any(map(str.isalpha, "".join(rest)))

    def lost_codes(self, text: str, answer: str) -> list[str]:
        """The codes and keys of a text that its answer lacks; not amounts, which differ between languages."""
        names = [one.group().split("+")[-1].strip() for one in self.codes.finditer(self.forms.sub(" ", text))]
        known = [one for one in names if re.fullmatch(r"[A-Za-z](\S*\d\S*)?", one)]
        return [one for one in known if not re.search(rf"(?<!\w){re.escape(one)}(?!\w)", answer, re.ASCII)]

    def lacking(self, text: str, answer: str) -> str:
        """What an answer lacks of its text, as a sentence; empty if it lacks nothing."""
        if not self.parts:
            return ""
        wanted, given = (Counter(one.group() for one in self.forms.finditer(each)) for each in (text, answer))
        unknown = [mark for mark in dict.fromkeys(self.unknown(text)) if mark not in answer]
        # groups of digits: their separators differ between languages
        digits = [Counter(re.findall(r"\d+", self.forms.sub(" ", each))) for each in (text, answer)]
        codes = self.lost_codes(text, answer)
        groups = [one for one in (digits[0] - digits[1]).elements() if not any(one in code for code in codes)]
        lost = [*(wanted - given).elements(), *codes, *groups, *unknown]
        if lost:
            return f"the answer lacks {' '.join(lost[:10])} of the text; correct it"
        added = [*(digits[1] - digits[0]).elements()]
        return f"the answer has {' '.join(added[:10])}, which the text lacks; correct it" if added else ""


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
