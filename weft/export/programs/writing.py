"""Models that write text: translators, summarisers, language models."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from weft.export.programs.common import KINDS, Arrays, Graph, Vocabulary


class Writer:
    """Searches a sequence with the graph `step`."""

    def __init__(self, folder: Path, about: dict[str, Any]) -> None:
        self.about = about
        self.step = Graph(folder / "step.onnx")
        self.changing = [one["name"] for one in about["state"] if one["changes"]]
        self.fixed = [one["name"] for one in about["state"] if not one["changes"]]

    def advance(self, tokens: np.ndarray, state: Arrays, paths: list[list[int]]) -> Arrays:
        """The log-probabilities after one more token of each row, and the next state.

        Args:
            tokens: [N], the newest token of each row.
            state: before it.
            paths: the tokens that each row has written, the newest included.
        """
        return self.step({"token": tokens, **state})

    def beam(
        self,
        first: int,
        state: Arrays,
        width: int,
        limit: int,
        *,
        end: int,
        alpha: float = 1.0,
        normalisation: str = "length",
    ) -> tuple[list[int], float]:
        """Beam search as in Weft: see its search/beam.py for the three rules that end it.

        Args:
            first: the token fed first.
            state: of one row.
            width: of the beam; 1 is greedy.
            limit: most tokens, the end included.
            end: the token that ends a sequence.
            alpha: a score is the log-probability divided by the length to this power.
            normalisation: "length" or "gnmt".

        Returns:
            The best tokens without the end, and their score.
        """

        def norm(length: int) -> float:
            return float(length**alpha) if normalisation == "length" else float(((5 + length) / 6) ** alpha)

        sums, tokens = np.zeros(1), np.array([first], np.int64)
        paths: list[list[int]] = [[]]
        best: tuple[float, list[int]] = (-math.inf, [])
        finished = 0
        for time in range(1, limit + 1):
            out = self.advance(tokens, state, paths)
            logp = out["logp"].astype(np.float64)
            logp[:, self.about["banned"]] = -math.inf
            parents, chosen, values = likeliest(sums[:, None] + logp, 2 * width)
            for parent, token, value in zip(parents[:width], chosen, values, strict=False):
                if token == end and value > -math.inf:
                    finished += 1
                    if value / norm(time) > best[0]:
                        best = (value / norm(time), paths[parent])
            going = np.flatnonzero(chosen != end)[:width]
            sums, parents, chosen = values[going], parents[going], chosen[going]
            paths = [[*paths[parent], int(token)] for parent, token in zip(parents, chosen, strict=True)]
            bound, alive = sums[0] / norm(limit), sums[0] / norm(time)
            if bound <= best[0] or (finished >= width and alive <= best[0]):
                break
            tokens = chosen.astype(np.int64)
            rows = {name: out[f"{name}_out"][parents] for name in self.changing}
            rows |= {name: state[name][parents] for name in self.fixed}
            state = {**state, **rows}
        else:
            if not finished:
                best = (sums[0] / norm(limit), paths[0])
        return best[1], best[0]


def likeliest(values: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The row, column and value of the largest numbers of [N, V], largest first; the first of equal ones."""
    flat = values.ravel()
    count = min(count, len(flat))
    found = np.flatnonzero(flat >= np.partition(flat, -count)[-count])
    found = found[np.argsort(-flat[found], kind="stable")][:count]
    rows, columns = np.divmod(found, values.shape[1])
    return rows, columns, flat[found]


class Rewriter(Writer):
    """Text to text: a translator or a summariser."""

    def __init__(self, folder: Path, about: dict[str, Any]) -> None:
        super().__init__(folder, about)
        self.start = Graph(folder / "start.onnx")
        self.source, self.target = Vocabulary(folder / about["source"]), Vocabulary(folder / about["target"])

    def __call__(
        self, text: str, beam: int | None = None, target: str | None = None, source: str | None = None
    ) -> str:
        """The best text for a text; a model of many languages needs the target."""
        tokens = self.read(text, source, target)
        return self.target.decode(self.search(tokens, beam)[0]) if tokens else ""

    def read(self, text: str, language: str | None, target: str | None) -> list[int]:
        """The tokens of a source."""
        directions = self.about.get("directions")
        if directions is None:
            source = self.source.encode(text)[: self.about["cut"]]
        else:
            pairs = [pair for pair in directions if pair.split("-")[1] == target]
            pairs = [pair for pair in pairs if language in (None, pair.split("-")[0])]
            if not pairs:
                raise SystemExit(f"--target: expected a language of {', '.join(directions)}, got {target}")
            way = directions[pairs[0]]
            if not text.strip():
                return []
            source = [*way["first"], *self.source.encode(way["prompt"].replace("{text}", text))]
        most = self.about["max_source"]
        if most is not None and len(source) > most:
            raise ValueError(f"expected at most {most} tokens, got {len(source)}; shorten the text")
        return source

    def search(self, source: list[int], beam: int | None = None) -> tuple[list[int], float]:
        """The best token sequence for source tokens, and its score."""
        how = self.about["decoding"]
        width = beam or (how["beam"] if how["search"] == "beam" else 1)
        limit = math.ceil(how["max_ratio"] * len(source)) + how["max_extra"]
        if self.about["max_output"] is not None:
            limit = min(limit, self.about["max_output"] - len(source) * self.about["prompted"])
        if limit < 1:
            raise ValueError(f"{len(source)} tokens leave no positions to write at; shorten the text")
        row = np.array([source], np.int64)
        state = self.start({"source": row, "mask": np.ones(row.shape, bool)})
        alpha, kind = how["length_penalty"], how["normalisation"]
        end = self.about["eos"]
        return self.beam(self.about["sos"], state, width, limit, end=end, alpha=alpha, normalisation=kind)


class Continuer(Writer):
    """Continues a text: a language model."""

    def __init__(self, folder: Path, about: dict[str, Any]) -> None:
        super().__init__(folder, about)
        self.vocabulary = Vocabulary(folder / about["vocabulary"])
        self.given: list[int] = []
        self.past = 0

    def __call__(self, text: str, beam: int | None = None, seed: int | None = None) -> str:
        """The text with its continuation; `beam` and `seed` change the recipe's search."""
        how = self.about["decoding"]
        given = [
            token for line in text.split("\n") for token in (self.about["eos"], *self.vocabulary.encode(line))
        ]
        room = None if self.about["max_output"] is None else self.about["max_output"] - len(given) + 1
        limit = how["max_tokens"] if room is None else min(how["max_tokens"], room)
        if limit < 1:
            return text
        end = self.about["eos"] if how["max_lines"] == 1 else self.about["pad"]
        window, self.given = self.about["window"], given
        self.past = len(given) - 1 if window is None else min(len(given), window) - 1
        state = self.reread([given[len(given) - 1 - self.past : -1]])
        if beam or how["search"] != "sample":
            width = beam or (how["beam"] if how["search"] == "beam" else 1)
            alpha = how["length_penalty"]
            added = self.beam(given[-1], state, width, limit, end=end, alpha=alpha)[0]
        else:
            added = self.sample(given[-1], state, limit, end, how["seed"] if seed is None else seed)
        ends = [place for place, token in enumerate(added) if token == self.about["eos"]]
        added = added[: ends[how["max_lines"] - 1]] if len(ends) >= how["max_lines"] else added
        return text + self.added(text, given[1:], added)

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

    def sample(self, token: int, state: Arrays, limit: int, end: int, seed: int) -> list[int]:
        """Random tokens by the model's probabilities."""
        how, draw = self.about["decoding"], np.random.default_rng(seed)
        found: list[int] = []
        while len(found) < limit:
            out = self.advance(np.array([token], np.int64), state, [found])
            logits = out["logp"][0].astype(np.float64)
            logits[self.about["banned"]] = -math.inf
            token = int(draw.choice(len(logits), p=shaped(logits, how)))
            if token == end:
                break
            found.append(token)
            state = {**state, **{name: out[f"{name}_out"] for name in self.changing}}
        return found

    def added(self, text: str, given: list[int], added: list[int]) -> str:
        """The text that tokens append to a text."""
        known = [5 if token == self.about["unk"] else token for token in given]
        before = self.lines(known)
        new = self.lines([*known, *added]).removeprefix(before)
        if text[-1:].isspace():
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


def shaped(logits: np.ndarray, how: dict[str, Any]) -> np.ndarray:
    """Probabilities after temperature, top_k and top_p."""
    logits = logits / how["temperature"]
    if how["top_k"]:
        logits[np.argsort(-logits, kind="stable")[how["top_k"] :]] = -math.inf
    probs = np.exp(logits - logits.max())
    probs /= probs.sum()
    if how["top_p"] < 1:
        order = np.argsort(-probs, kind="stable")
        before = np.cumsum(probs[order]) - probs[order]
        probs[order[before >= how["top_p"]]] = 0.0
        probs /= probs.sum()
    return probs


KINDS |= {"rewrite": Rewriter, "continue": Continuer}
