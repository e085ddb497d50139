"""Models that label words or texts: taggers and classifiers."""

import json
import math
from collections import Counter
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from weft.export.programs.common import KINDS, OnnxGraph, VocabularyFile, spelled


class Tagger:
    """A tag for each word of a sentence."""

    def __init__(self, folder: Path, about: dict[str, Any]) -> None:
        self.graph = OnnxGraph(folder / "scores.onnx")
        lexicon = json.loads((folder / about["lexicon"]).read_text("utf-8"))
        self.tags, self.lowercase = lexicon["tags"], lexicon["lowercase"]
        self.word = {word: number for number, word in enumerate(lexicon["words"], 2)}
        self.letter = {letter: number for number, letter in enumerate(lexicon["letters"], 2)}
        self.longest = about["letters"]
        self.crf = {name: np.array(value, np.float32) for name, value in (about["crf"] or {}).items()}

    def __call__(self, text: str) -> str:
        """Each word of a text with its tag, on a line of its own, and an empty line."""
        words = text.split()
        return "\n".join(f"{word}\t{tag}" for word, tag in zip(words, self.tag(words), strict=True)) + "\n"

    def tag(self, words: Sequence[str]) -> list[str]:
        """The tags of the words of one sentence."""
        if not words:
            return []
        known = [self.word.get(word.lower() if self.lowercase else word, 1) for word in words]
        scores = self.graph(
            {
                "words": np.array([known], np.int64),
                "letters": spelled(words, self.letter, self.longest),
                "which": np.arange(len(words))[None],
                "mask": np.ones((1, len(words)), bool),
            }
        )["scores"][0]
        best = self._viterbi(scores) if self.crf else scores.argmax(-1).tolist()
        return [self.tags[number] for number in best]

    def _viterbi(self, scores: np.ndarray) -> list[int]:
        """The best sequence of tags for scores [T, C]."""
        value, origins = self.crf["begin"] + scores[0], []
        for row in scores[1:]:
            ahead = value[:, None] + self.crf["transitions"]
            origins.append(ahead.argmax(0))
            value = ahead.max(0) + row
        path = [int((value + self.crf["end"]).argmax())]
        for origin in reversed(origins):
            path.append(int(origin[path[-1]]))
        return path[::-1]


class Classifier:
    """The class of a text, or its labels."""

    def __init__(self, folder: Path, about: dict[str, Any]) -> None:
        self.graph = OnnxGraph(folder / "scores.onnx")
        self.vocabulary = VocabularyFile(folder / about["vocabulary"])
        self.classes, self.longest, self.bag = about["classes"], about["max_length"], about["bag"]
        self.separator, self.thresholds = about["separator"], np.array(about["thresholds"])
        self.frame = about["frame"]
        if self.bag is not None:
            items = json.loads((folder / self.bag["items"]).read_text("utf-8"))
            self.item = {tuple(item): number for number, item in enumerate(items["items"], 1)}
            self.first_letters = next(
                (n for item, n in self.item.items() if isinstance(item[0], str)), math.inf
            )
            counts = np.array([0, *items["documents"]], np.float64)
            self.rarity = np.log((1 + (items["texts"] or 0)) / (1 + counts)).astype(np.float32) + np.float32(
                1
            )

    def __call__(self, text: str, scores: bool = False) -> str:
        """The class or the labels; with scores also the probability of each, the likeliest first."""
        if not text.strip():
            raise ValueError("the text is empty; write one")
        probs = self.probabilities(text)
        chosen = [probs.argmax()] if self.separator is None else np.flatnonzero(probs >= self.thresholds)
        label = (self.separator or "").join(self.classes[int(number)] for number in chosen)
        if not scores:
            return label
        best = np.argsort(-probs, kind="stable").tolist()
        return "\t".join([label, *(f"{self.classes[n]}={probs[n]:.4f}" for n in best)])

    def probabilities(self, text: str) -> np.ndarray:
        """[C] the probability of each class."""
        before, after = self.frame
        tokens = [*before, *self.vocabulary.encode(text)[: self.longest], *after]
        given: dict[str, np.ndarray] = {}
        if self.bag is not None:
            counts = self.counted(tokens, text)
            given["weights"] = np.array([self.weighed(counts) if counts else [0.0]], np.float32)
            tokens = list(counts)
        given["tokens"] = np.array([tokens or [0]], np.int64)
        given["mask"] = np.ones(given["tokens"].shape, bool)
        return np.exp(self.graph(given)["logp"][0])

    def counted(self, tokens: Sequence[int], text: str) -> Counter[int]:
        """The count of each known item of a text."""
        row = [2, *tokens, 3] if self.bag["edges"] else list(tokens)
        sizes = range(1, self.bag["ngrams"] + 1)
        found: list[tuple[Hashable, ...]] = [
            tuple(row[at : at + size]) for size in sizes for at in range(len(row) - size + 1)
        ]
        if self.bag["edges"]:
            found = [item for item in found if item not in ((2,), (3,))]
        if self.bag["letters"] is not None:
            least, most = self.bag["letters"]
            for word in self.vocabulary.normalise(text).split()[: self.longest]:
                marked = f"<{word}>"
                found += [
                    (marked[begin:end],)
                    for begin in range(len(marked))
                    for end in range(begin + least, min(begin + most, len(marked)) + 1)
                ]
        return Counter(self.item[item] for item in found if item in self.item)

    def weighed(self, counts: Counter[int]) -> np.ndarray:
        """The weight of each item of a text."""
        values = np.array(list(counts.values()), np.float64)
        if self.bag["weight"] == "presence":
            return np.ones_like(values)
        if self.bag["weight"] == "frequency":
            return values / max(1.0, values.sum())
        if self.bag["weight"] == "tfidf":
            numbers = np.array(list(counts))
            values = (1 + np.log(values)) * self.rarity[numbers]
            for part in (numbers < self.first_letters, numbers >= self.first_letters):
                values[part] /= max(1e-12, math.sqrt((values[part] ** 2).sum()))
        return values


KINDS |= {"tagger": Tagger, "classifier": Classifier}
