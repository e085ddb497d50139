"""Models that give vectors to the words of a sentence."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from weft.export.programs.common import KINDS, OnnxGraph, VocabularyFile, spelled


class InSentence(NamedTuple):
    """The words of a sentence and their vectors."""

    words: list[str]
    layers: np.ndarray  # [L + 1, S, D], the lowest layer first


class Comparer:
    """The vectors of a sentence, or of one word in two sentences."""

    def __init__(self, folder: Path, about: dict[str, Any]) -> None:
        self.graph = OnnxGraph(folder / "layers.onnx")
        self.vocabulary = VocabularyFile(folder / about["vocabulary"])
        self.letter = {letter: number for number, letter in enumerate(about["letters"], 2)}
        self.about = about

    def __call__(self, text: str) -> str:
        """WORD TAB SENTENCE TAB SENTENCE: the word and the cosine of its two vectors in each layer.

        A sentence alone: its words and their vectors in the top layer, as JSON.
        """
        cells = text.split("\t")
        if len(cells) == 3:
            cosines = self.compare(cells[0], cells[1], cells[2])
            return "\t".join([cells[0], *(f"{cosine:.4f}" for cosine in cosines)])
        words, layers = self.vectors(text)
        if len(words) > self.about["most"]:
            raise ValueError(f"expected at most {self.about['most']} words, got {len(words)}")
        return json.dumps({"words": words, "vectors": layers[-1].round(5).tolist()}, ensure_ascii=False)

    def vectors(self, text: str) -> InSentence:
        """The vectors of every word of a sentence."""
        words = self.vocabulary.words(text)
        if not words:
            raise ValueError("expected a sentence with words, got only white space")
        given = {
            "letters": spelled(words, self.letter, self.about["longest"]),
            "which": np.arange(len(words))[None],
            "mask": np.ones((1, len(words)), bool),
        }
        return InSentence(words, self.graph(given)["layers"][0])

    def compare(self, word: str, first: str, second: str) -> list[float]:
        """The cosines of a word's vectors in two sentences, the lowest layer first."""
        spelt, found = self.vocabulary.words(word), []
        for text in (first, second):
            words, layers = self.vectors(text)
            if len(spelt) != 1 or spelt[0] not in words:
                raise ValueError(f"{word!r} is no word of {text!r}; give two sentences that contain it")
            found.append(layers[:, words.index(spelt[0])])
        length = np.linalg.norm(found[0], axis=1) * np.linalg.norm(found[1], axis=1)
        return [float(cosine) for cosine in (found[0] * found[1]).sum(1) / length]


KINDS |= {"contexts": Comparer}
