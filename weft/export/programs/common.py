"""The beginning of every program: graphs, and text as numbers. Read next: searching.py."""

import json
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

Arrays = dict[str, np.ndarray]

KINDS: dict[str, Any] = {}
"""The class of each kind of model."""


class Graph:
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


class Vocabulary:
    """Text to numbers and back."""

    def __init__(self, path: Path) -> None:
        from tokenizers import Tokenizer

        content = json.loads(Path(path).read_text("utf-8"))
        about = content.pop("weft")
        self.form, self.lowercase = about["form"], about["lowercase"]
        self.order, self.framed = about.get("order"), about.get("framed", False)
        self.tokenizer = Tokenizer.from_str(json.dumps(content))
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        if self.order is not None:
            pairs = reversed(list(enumerate(self.order)))
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

    def decode(self, numbers: Sequence[int]) -> str:
        """The text of numbers."""
        numbers = [number for number in numbers if number > 3]  # pad, unk, sos, eos
        if self.order is not None:
            return self.tokenizer.decode([self.order[n] for n in numbers if self.order[n] >= 0]).strip()
        return " ".join("".join(str(self.tokenizer.id_to_token(number)) for number in numbers).split())
