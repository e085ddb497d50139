"""Models that continue a text: language models."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from weft.export.programs.common import KINDS, Arrays, VocabularyFile
from weft.export.programs.writers import Writer


class TextContinuer(Writer):
    """Continues a text: a language model."""

    def __init__(self, folder: Path, about: dict[str, Any]) -> None:
        super().__init__(folder, about)
        self.vocabulary = VocabularyFile(folder / about["vocabulary"])
        self.given: list[int] = []
        self.past = 0

    def __call__(self, text: str, beam: int | None = None, seed: int | None = None) -> str:
        """The text with its continuation; `beam` and `seed` change the recipe's search."""
        how = self.about["decoding"]
        given = self.row(text)
        limit = how["max_tokens"]
        if limit < 1:
            return text
        ends = self.about["ends"]  # end symbols after which writing stops
        end = self.about["eos"] if ends == 1 else self.about["pad"]
        window, self.given = self.about["window"], given
        self.past = len(given) - 1 if window is None else min(len(given), window) - 1
        state = self.reread([given[len(given) - 1 - self.past : -1]])
        if beam or how["search"] != "sample":
            width = beam or (how["beam"] if how["search"] == "beam" else 1)
            alpha = how["length_penalty"]
            added = self.beam(given[-1], state, width, limit, end=end, alpha=alpha)[0]
        else:
            added = self.sample(given[-1], state, limit, end, how["seed"] if seed is None else seed)[0]
        places = [place for place, token in enumerate(added) if token == self.about["eos"]]
        added = added[: places[ends - 1]] if len(places) >= ends else added
        return text + "\n".join(self.added(text, given, added).split("\n")[: how["max_lines"]])

    def row(self, text: str) -> list[int]:
        """What the model reads for a text: the whole text, or its lines, each after an end symbol."""
        opening, encode = self.vocabulary.opening, self.vocabulary.encode
        if opening is not None:
            return [*opening, *encode(text)] or [self.about["sos"]]
        return [token for line in text.split("\n") for token in (self.about["eos"], *encode(line))]

    def reread(self, rows: Sequence[Sequence[int]]) -> Arrays:
        """The state after tokens, from the beginning; rows have equal lengths."""
        state = {}
        for one in self.about["state"]:
            value = np.zeros(one["shape"]) if one["values"] is None else np.array(one["values"])
            value = value.reshape(one["shape"]).astype(one["type"])
            state[one["name"]] = np.repeat(value, len(rows), 0)
        for tokens in np.array(rows, np.int64).T:
            out = self.step({"token": tokens, **state})
            state |= {name: out[f"{name}_out"] for name in self.changing}
        return state

    def advance(self, tokens: np.ndarray, state: Arrays, paths: list[list[int]]) -> Arrays:
        """As in Writer; when the window is full, the older half is forgotten."""
        window = self.about["window"]
        if window is not None and self.past >= window:
            self.past = window // 2
            rows = [[*self.given, *path][:-1] for path in paths]
            state = self.reread([row[len(row) - self.past :] for row in rows])
        self.past += 1
        return super().advance(tokens, state, paths)

    def added(self, text: str, given: list[int], added: list[int]) -> str:
        """The text that tokens append to a text."""
        lines = self.vocabulary.opening is None
        decoded = self.lines if lines else self.vocabulary.exact
        known = [self.about["known"] if token == self.about["unk"] else token for token in given]
        before, whole = decoded(known), decoded([*known, *added])
        # Bytes that follow may change the last characters: they complete one, or make it invalid.
        pairs = enumerate(zip(whole, before, strict=False))
        same = next((place for place, (one, other) in pairs if one != other), min(len(whole), len(before)))
        new = whole[same:]
        if text[-1:].isspace() and lines:
            new = new.removeprefix(" ")
        for stop in self.about["decoding"]["stop"]:
            new = new.partition(stop)[0]
        return new

    def lines(self, tokens: list[int]) -> str:
        """The text of tokens, with a line end for each end symbol."""
        rows: list[list[int]] = [[]]
        for token in tokens:
            if token == self.about["eos"]:
                rows.append([])
            else:
                rows[-1].append(token)
        return "\n".join(self.vocabulary.decode(row) for row in rows)


KINDS |= {"continue": TextContinuer}
