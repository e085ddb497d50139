"""The beginning of every program: graphs, and text as numbers. Read next: writers.py."""

import json
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

Arrays = dict[str, np.ndarray]

KINDS: dict[str, Any] = {}  # the class of each kind of model


class OnnxGraph:
    """A graph on one thread; call it with its inputs by name, it returns its outputs by name."""

    def __init__(self, path: Path, threads: int = 1) -> None:
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = settings.inter_op_num_threads = threads
        settings.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(str(path), settings, providers=["CPUExecutionProvider"])
        self.inputs = {each.name for each in self.session.get_inputs()}
        self.outputs = [each.name for each in self.session.get_outputs()]

    def __call__(self, given: Arrays) -> Arrays:
        used = {name: value for name, value in given.items() if name in self.inputs}
        return dict(zip(self.outputs, self.session.run(None, used), strict=True))


def spelled(words: Sequence[str], numbers: dict[str, int], longest: int) -> np.ndarray:
    """[N, L] the numbers of the letters of words; of a long word its beginning and its end."""
    half = longest // 2
    cut = [word if len(word) <= longest else word[:half] + word[-half:] for word in words]
    letters = np.zeros((len(cut), max(map(len, cut))), np.int64)
    for row, word in enumerate(cut):
        letters[row, : len(word)] = [numbers.get(letter, 1) for letter in word]  # 1: unknown
    return letters


class VocabularyFile:
    """Text to numbers and back."""

    def __init__(self, path: Path) -> None:
        from tokenizers import Tokenizer

        content = json.loads(Path(path).read_text("utf-8"))
        about = content.pop("weft")
        self.form, self.lowercase = about["form"], about["lowercase"]
        self.order, self.framed = about.get("order"), about.get("framed", False)
        self.opening = about.get("opening")  # read before a whole text; None if texts are lines
        self.tokenizer = Tokenizer.from_str(json.dumps(content))
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        if self.order is not None:
            pairs = list(enumerate(self.order))
            # Of a symbol with two roles, a language model predicts the last one; others read the first.
            pairs = pairs[::-1] if self.opening is None else pairs
            self.numbers = {there: here for here, there in pairs if there >= 0}

    def normalise(self, text: str) -> str:
        """The text in the form that the model was trained on."""
        form = self.form.upper()
        text = text if form == "NONE" else unicodedata.normalize(form, text)
        if self.lowercase:
            text = text.lower()
            text = text if form == "NONE" else unicodedata.normalize(form, text)
        return " ".join(text.split())

    def encode(self, text: str) -> list[int]:
        """The numbers of a text."""
        if self.order is not None:  # another program's tokenizer, renumbered
            found = self.tokenizer.encode(text, add_special_tokens=self.framed).ids
            return [self.numbers.get(there, 1) for there in found]  # 1: unknown to the model
        text = self.normalise(text)
        return self.tokenizer.encode(text, add_special_tokens=False).ids if text else []

    def named(self, text: str, most: int | None) -> tuple[list[int], list[str]]:
        """The numbers of a text, and its unknown pieces, which are numbered after those of the vocabulary."""
        size, names = self.tokenizer.get_vocab_size(), dict[str, int]()
        unknown, numbers = iter(self.lacking(text)), self.encode(text)[:most]
        found = [one if one != 1 else size + names.setdefault(next(unknown), len(names)) for one in numbers]
        return found, list(names)

    def lacking(self, text: str) -> list[str]:
        """The pieces of a text that the vocabulary lacks, one for each unknown number, in order."""
        normal, found = self.tokenizer.normalizer.normalize_str(text), []
        for part, _ in self.tokenizer.pre_tokenizer.pre_tokenize_str(normal):
            for piece in self.tokenizer.model.tokenize(part):
                begin, end = piece.offsets  # in bytes
                found += [part.encode()[begin:end].decode()] if piece.id == 1 else []
        return found

    def words(self, text: str) -> list[str]:
        """The words of a text."""
        parts = self.tokenizer.pre_tokenizer.pre_tokenize_str(self.normalise(text))
        return [part.strip() for part, _ in parts if part != " "]

    def decode(self, numbers: Sequence[int], names: Sequence[str] = ()) -> str:
        """The text of numbers; `names` are the unknown pieces of a source, see `named`."""
        if self.order is not None:
            return self.exact(numbers).strip()
        size = self.tokenizer.get_vocab_size()
        kept = [number for number in numbers if number > 3]  # pad, unk, sos, eos
        pieces = [names[one - size] if one >= size else str(self.tokenizer.id_to_token(one)) for one in kept]
        return " ".join("".join(pieces).split())

    def exact(self, numbers: Sequence[int]) -> str:
        """The text of another program's pieces, with the white space at its ends."""
        there = [self.order[number] for number in numbers if number > 3]
        return self.tokenizer.decode([number for number in there if number >= 0])
