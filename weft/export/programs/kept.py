"""What a translation keeps of its source: text without letters. Anything else that it lacks is named."""

import re
import unicodedata
from collections import Counter

from weft.export.programs.common import VocabularyFile

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
