"""Models that write a text: beam search, one step after the other. Read next: rewriting.py."""

import math
from pathlib import Path
from typing import Any

import numpy as np

from weft.export.programs.common import Arrays, OnnxGraph, VocabularyFile


class Writer:
    """Searches a sequence with the graph `step`."""

    def __init__(self, folder: Path, about: dict[str, Any]) -> None:
        self.about = about
        self.step = OnnxGraph(folder / "step.onnx")
        self.changing = [one["name"] for one in about["state"] if one["changes"]]
        self.fixed = [one["name"] for one in about["state"] if not one["changes"]]

    def advance(self, tokens: np.ndarray, state: Arrays, paths: list[list[int]]) -> Arrays:
        """The log-probabilities after one more token of each row, and the next state."""
        return self.step({"token": tokens, **state})

    def forbid(self, logp: np.ndarray, paths: list[list[int]], end: int) -> None:
        """Exclude, in log-probabilities [N, V], what may not follow paths of one length."""
        how = self.about["decoding"]
        short = len(paths[0]) < how.get("min_length", 0)
        logp[:, [*self.about["banned"], *([end] if short else [])]] = -math.inf
        size = how.get("no_repeat_ngram", 0)
        for row, path in enumerate(paths if size else []):
            logp[row, repeated(path, size)] = -math.inf

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
        coverage: float = 0.0,
        stop: str = "best",
    ) -> tuple[list[int], float]:
        """Beam search as in Weft: see its search/beam.py for the three rules that end it."""
        norm = norms(limit, alpha, normalisation)
        sums, tokens, seen = np.zeros(1), np.array([first], np.int64), np.zeros((1, 1), np.float32)
        paths: list[list[int]] = [[]]
        best: tuple[float, list[int]] = (-math.inf, [])
        ended = list[float]()  # their scores
        for time in range(1, limit + 1):
            out = self.advance(tokens, state, paths)
            logp = out["logp"].astype(np.float64)
            self.forbid(logp, paths, end)
            seen = seen + out["attention"] if coverage else seen
            extra = coverage * np.log(seen.clip(1e-6, 1), dtype=np.float64).sum(1) if coverage else 0 * sums
            parents, chosen, values = likeliest(sums[:, None] + logp, 2 * width)
            for parent, token, value in zip(parents[:width], chosen, values, strict=False):
                if token == end and value > -math.inf:
                    ended.append(value / norm[time] + extra[parent])
                    if ended[-1] > best[0]:
                        best = (ended[-1], paths[parent])
            going = np.flatnonzero(chosen != end)[:width]
            sums, parents, chosen = values[going], parents[going], chosen[going]
            paths = [[*paths[parent], int(token)] for parent, token in zip(parents, chosen, strict=True)]
            scores = sums / norm[time] + extra[parents]
            full = len(ended) >= width and stop != "never"
            if full and stop != "full":
                full = scores.max() <= (best[0] if stop == "best" else sorted(ended)[-width])
            if sums[0] / norm[limit] <= best[0] or full:
                break
            tokens, seen = chosen.astype(np.int64), seen[parents] if coverage else seen
            rows = {name: out[f"{name}_out"][parents] for name in self.changing}
            rows |= {name: state[name][parents] for name in self.fixed}
            state = {**state, **rows}
        else:
            if not ended:
                best = (float(scores.max()), paths[int(scores.argmax())])
        return best[1], best[0]

    def sample(self, token: int, state: Arrays, limit: int, end: int, seed: int) -> tuple[list[int], float]:
        """Random tokens by the model's probabilities, and their mean log-probability."""
        how, draw = self.about["decoding"], np.random.default_rng(seed)
        found: list[int] = []
        total, length = 0.0, 0
        while length < limit:
            out = self.advance(np.array([token], np.int64), state, [found])
            logp = out["logp"].astype(np.float64)
            allowed = logp.copy()
            self.forbid(allowed, [found], end)
            token = int(draw.choice(logp.shape[1], p=shaped(allowed[0], how)))
            total, length = total + logp[0, token], length + 1
            if token == end:
                break
            found.append(token)
            state = {**state, **{name: out[f"{name}_out"] for name in self.changing}}
        return found, total / length


class SourceWriter(Writer):
    """Reads a source with the graph `start`, and writes a text for it."""

    def __init__(self, folder: Path, about: dict[str, Any]) -> None:
        super().__init__(folder, about)
        self.start = OnnxGraph(folder / "start.onnx")
        self.target = VocabularyFile(folder / about["target"])

    def write(self, source: Arrays, length: int, beam: int | None = None) -> tuple[list[int], float]:
        """The best token sequence for a source, and its score."""
        how = self.about["decoding"]
        width = beam or (how["beam"] if how["search"] == "beam" else 1)
        limit = max(math.ceil(how["max_ratio"] * length) + how["max_extra"], how["min_length"] + 1)
        if self.about["max_output"] is not None:
            limit = min(limit, self.about["max_output"] - length * self.about["prompted"])
        if limit < 1:
            raise ValueError(f"{length} tokens leave no room for an answer; shorten the text")
        state, first, end = self.start(source), self.about["sos"], self.about["eos"]
        if how["search"] == "sample" and not beam:
            return self.sample(first, state, limit, end, how["seed"])
        names = {name: name for name in ("normalisation", "coverage", "stop")} | {"alpha": "length_penalty"}
        settings = {ours: how[name] for ours, name in names.items()}
        return self.beam(first, state, width, limit, end=end, **settings)


def repeated(path: list[int], size: int) -> list[int]:
    """The tokens that would complete an n-gram which a path has already."""
    last = path[len(path) - size + 1 :]
    return [path[at + size - 1] for at in range(len(path) - size + 1) if path[at : at + size - 1] == last]


def norms(limit: int, alpha: float, kind: str) -> np.ndarray:
    """[limit + 1] what a score of each length is divided by; `kind` is "length" or "gnmt"."""
    lengths = np.arange(limit + 1, dtype=np.float64)
    return (lengths if kind == "length" else (5 + lengths) / 6) ** alpha


def likeliest(values: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The row, column and value of the largest numbers of [N, V], largest first; the first of equal ones."""
    flat = values.ravel()
    count = min(count, len(flat))
    found = np.flatnonzero(flat >= np.partition(flat, -count)[-count])
    found = found[np.argsort(-flat[found], kind="stable")][:count]
    rows, columns = np.divmod(found, values.shape[1])
    return rows, columns, flat[found]


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
