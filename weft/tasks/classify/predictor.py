"""A trained classifier at work: texts in, a class and its probability out, in order; and where it looked.

Read next: ../../tasks/classify/answer_figure.py, which draws where it looked.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
import torch

from weft.errors import ConfigError
from weft.models import Predictor
from weft.probe import probe
from weft.tasks.classify.items import Items
from weft.tasks.classify.reader import Reader
from weft.tasks.shared.like_length import groups
from weft.text.vocabulary import EOS, SOS, Word

WINDOW = 2048  # texts that are sorted by length together
TOKENS = 8192  # of a batch, padding counted


class Decided(NamedTuple):
    """What a text is."""

    label: str
    probs: np.ndarray  # [C] in the order of the classes

    @property
    def prob(self) -> float:
        """Of the label."""
        return float(self.probs.max())


class Looked(NamedTuple):
    """How much each word of a text weighed."""

    words: list[str]
    weights: np.ndarray  # [words] of the sum 1
    decided: Decided
    shown: str  # which weights these are


def order(classes: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """Where each class that is wanted stands among others.

    Raises:
        ConfigError: these are not the same classes.
    """
    if sorted(classes) != sorted(wanted):
        raise ConfigError(
            f"its classes are {', '.join(sorted(classes)[:8])}, here they are "
            f"{', '.join(sorted(wanted)[:8])}; an ensemble needs the same"
        )
    return [list(classes).index(name) for name in wanted]


class Classifier:
    """Classifies texts with a model and its reader.

    Args:
        model: in evaluation mode, on its device.
        reader: the model's.
        others: classifiers that decide along, by the mean of all probabilities; each reads texts its own
            way, the classes are the same (in any order).

    Raises:
        ConfigError: other classes.
    """

    def __init__(self, model: Predictor, reader: Reader, *, others: Sequence["Classifier"] = ()) -> None:
        self.model = model
        self.reader = reader
        self._others = [(other, order(other.reader.classes, reader.classes)) for other in others]

    def predict(self, text: str) -> str:
        """The class of one text."""
        if not isinstance(text, str):
            raise TypeError(f"expected one text, got {type(text).__name__}; for many use classify(texts)")
        return next(self.classify([text])).label

    def classify(self, texts: Iterable[str], *, window: int = WINDOW) -> Iterator[Decided]:
        """Each text's class, in order.

        Args:
            texts: read `window` at a time.
            window: 1 answers each at once.
        """
        texts = iter(texts)
        while read := list(islice(texts, window)):
            own = self._window(read)
            if not self._others:
                yield from own
                continue
            probs = np.stack([one.probs for one in own])
            for other, places in self._others:
                probs = probs + np.stack([one.probs[places] for one in other.classify(read, window=window)])
            yield from map(self._decided, probs / (1 + len(self._others)))

    def _window(self, read: Sequence[str]) -> list[Decided]:
        rows = self.reader.encode(read)
        results: dict[int, Decided] = {}
        for group in groups([len(row) for row in rows], TOKENS):
            decided = self._batch([rows[n] for n in group], [read[n] for n in group])
            results.update(zip(group, decided, strict=True))
        return [results[number] for number in range(len(read))]

    def look(self, text: str) -> Looked:
        """How much each word weighed in the decision.

        Of a pool with learned queries, their attention (the mean of the queries); of any other model the
        share |dL/dx_j . x_j| of each position j, L being the log-probability of the class, x its embedding.
        """
        rows = self.reader.encode([text])
        device = next(self.model.parameters()).device
        source, mask = self.reader.source(rows, [text])
        with torch.enable_grad(), probe() as seen:
            x = self.model.embed(source.to(device)).detach().requires_grad_()
            memory = self.model.encoder(x, mask.to(device))
            assert self.model.pool is not None
            logp = self.model.head(self.model.pool(memory)[:, None])[0, 0]
            (slope,) = torch.autograd.grad(logp.max(), x)
        probs = logp.detach().exp().float().cpu().numpy()
        decided = self._decided(probs)
        looked = [each for each in seen["attention"] if each.shape[2] == mask.shape[1]]
        if looked:
            weights, shown = looked[-1][0].mean(0), f"attention, mean of {looked[-1].shape[1]} queries"
        else:
            weights, shown = (slope * x)[0].sum(-1).abs(), "gradient times embedding"
        positions = weights.detach().float().cpu().numpy().astype(np.float64)
        found = self.reader.vocabulary.words(rows[0], text)
        if self.reader.items is not None:
            positions = _of_tokens(
                self.reader.items, self.reader.counted(rows[0], text), rows[0], found, positions
            )
        words = [word.text for word in found]
        sums = np.array([positions[word.positions].sum() for word in found])
        return Looked(words, sums / max(float(sums.sum()), 1e-12), decided, shown)

    def _batch(self, rows: list[list[int]], texts: list[str]) -> list[Decided]:
        device = next(self.model.parameters()).device
        source, mask = self.reader.source(rows, texts)
        with torch.inference_mode():
            probs = self.model(source.to(device), mask.to(device))[:, 0].exp().float().cpu().numpy()
        return [self._decided(row) for row in probs]

    def _decided(self, probs: np.ndarray) -> Decided:
        return Decided(self.reader.classes[int(probs.argmax())], probs)


def _of_tokens(
    items: Items,
    counted: Mapping[int, int],
    tokens: Sequence[int],
    words: Sequence[Word],
    weights: np.ndarray,
) -> np.ndarray:
    """The weight of each item of a bag given to the tokens it is made of, in equal parts.

    A run of letters gives its weight to the tokens of the words that hold it.
    """
    share = np.zeros(max(1, len(tokens)))
    weight = {number: each / counted[number] for number, each in zip(counted, weights, strict=False)}
    padded = [SOS, *tokens, EOS] if items.bag.edges else list(tokens)
    first = int(items.bag.edges)  # place of the first token
    for size in range(1, items.bag.ngrams + 1):
        for at in range(len(padded) - size + 1):
            number = items.number(tuple(padded[at : at + size]))
            begin, end = max(0, at - first), min(len(tokens), at + size - first)
            share[begin:end] += weight.get(number, 0.0) / max(1, end - begin)
    for word in words:
        whole = sum(weight.get(number, 0.0) for number in items.of_word(word.text))
        share[word.positions] += whole / len(word.positions)
    return share
