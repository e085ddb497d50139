"""Four small tasks of real kinds for recurrences.py: language, translation, tagging, forecasting.

A task draws batches, builds a model of a cell, scores it on its validation part, and has a baseline: the same score
by counts, or by the last value. Read next: recurrences.py, which trains; problems.py, the texts.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import texts
import torch
from equal import HEADS, block
from text_data import Running, counted, paired
from torch import Tensor, nn

from problems import Labels, Pairs, english_letters, padded, sentences
from weft.models import Generator, Labeller
from weft.ngram.kneser_ney import kneser_ney
from weft.nn.decoders.transformer import TransformerDecoder
from weft.nn.embed.tokens import Tokens
from weft.nn.encoders.encoder import Encoder, Memory
from weft.nn.encoders.recurrent import RecurrentEncoder
from weft.nn.encoders.transformer import TransformerEncoder
from weft.nn.heads.categorical import Categorical
from weft.nn.heads.head import Point
from weft.text.vocabulary import EOS, SOS

EMBEDDING = 32
ROWS, PIECE = 16, 64
"""A batch of language: texts, and the letters of each."""
SHORT, PIECES = 40, 500
"""Translation: the most letters of a source, and the size of the common vocabulary."""
LETTERS, STEPS = 40, 64
"""The most letters of a line to tag, and the values of a series."""


class Task(Protocol):
    """What recurrences.py trains on."""

    def model(self, name: str, width: int, inner: int) -> Any: ...
    def sized(self, model: Any) -> nn.Module:
        """The part whose parameters are equal."""

    def draw(self, chance: np.random.Generator) -> Any: ...
    def score(self, model: Any) -> float: ...
    def baseline(self) -> float: ...


class Causal(Encoder):
    """A Transformer whose positions look back only, as the encoder of a forecaster."""

    def __init__(self, decoder: TransformerDecoder) -> None:
        super().__init__()
        self.decoder = decoder
        self.in_size, self.size = decoder.in_size, decoder.size

    def forward(self, x: Tensor, mask: Tensor) -> Memory:
        states, _ = self.decoder(x, self.decoder.start(None, len(x)), mask)
        return Memory(states, mask, states[:, -1])


def encoder(name: str, width: int, inner: int, *, both: bool) -> Encoder:
    """One block around a cell, or two Transformer layers; `both` reads also from right to left."""
    if name != "transformer":
        cell = block(name, width, inner)
        return RecurrentEncoder(EMBEDDING, sizes=(width,), cell=cell, last_norm="rms", bidirectional=both)
    settings: dict[str, Any] = {
        "size": width,
        "num_layers": 2,
        "num_heads": HEADS,
        "inner": inner,
        "dropout": 0.0,
    }
    settings |= {"positions": "rotary", "norm_kind": "rms", "activation": "geglu"}
    if both:
        return TransformerEncoder(EMBEDDING, **settings)
    return Causal(TransformerDecoder(EMBEDDING, **settings))


class _Writing:
    """What language and translation share: a decoder with tied embeddings, whose parameters are counted."""

    symbols: int

    def model(self, name: str, width: int, inner: int) -> Generator:
        """A language model or a translator; every translator has the same encoder, a Transformer of one layer."""
        embed, reader = Tokens(self.symbols, EMBEDDING), self.reader()
        layers = 2 if name == "transformer" else 1
        made = texts.decoder(name, reader, width, inner=inner, embedding=EMBEDDING, layers=layers)
        head = Categorical(made.size, self.symbols, tied=embed.table)
        return Generator(embed, made, head, encoder=reader)

    def reader(self) -> Encoder | None:
        """None: a language model."""

    @staticmethod
    def sized(model: Generator) -> nn.Module:
        return model.decoder


class Language(_Writing):
    """English help texts, letter by letter."""

    def __init__(self) -> None:
        text = english_letters()
        self.text = Running(text, PIECE, ROWS, counted(text.valid, PIECE), "bits")
        self.symbols = text.letters

    def draw(self, chance: np.random.Generator) -> Pairs:
        return self.text.draw(chance)

    def score(self, model: Generator) -> float:
        """Bits per letter of the validation part."""
        return self.text.scores(model)["bits"]

    def baseline(self, order: int = 2) -> float:
        """The same by counts of pairs of letters, smoothed as Kneser and Ney."""
        return self.text.grams(order)["bits"]

    def stronger(self) -> float:
        """By counts of five letters, of the whole training part."""
        return self.baseline(5)


NOUNS = (
    ("house", "houses", "casa", "casas", 1), ("table", "tables", "mesa", "mesas", 1), ("cow", "cows", "vaca", "vacas", 1),
    ("letter", "letters", "carta", "cartas", 1), ("moon", "moons", "luna", "lunas", 1), ("queen", "queens", "reina", "reinas", 1),
    ("dog", "dogs", "perro", "perros", 0), ("book", "books", "libro", "libros", 0), ("boat", "boats", "barco", "barcos", 0),
    ("king", "kings", "rey", "reyes", 0), ("tree", "trees", "árbol", "árboles", 0), ("train", "trains", "tren", "trenes", 0),
)  # fmt: skip
ADJECTIVES = (("red", "roj"), ("white", "blanc"), ("black", "negr"), ("small", "pequeñ"), ("new", "nuev"), ("old", "viej"), ("slow", "lent"), ("tall", "alt"))  # fmt: skip
VERBS = (("sees", "see", "ve", "ven"), ("seeks", "seek", "busca", "buscan"), ("wants", "want", "quiere", "quieren"), ("leaves", "leave", "deja", "dejan"), ("hides", "hide", "esconde", "esconden"), ("follows", "follow", "sigue", "siguen"))  # fmt: skip
ARTICLES = {"the": (("el", "los"), ("la", "las")), "this": (("este", "estos"), ("esta", "estas"))}


def phrase(chance: np.random.Generator) -> tuple[list[str], list[str], bool]:
    """An article, up to two adjectives and a noun in English and Spanish, and whether it is of several.

    In Spanish the adjectives follow the noun in the opposite order; they and the article agree with its gender and number.
    """
    noun, many = NOUNS[chance.integers(len(NOUNS))], bool(chance.integers(2))
    article = list(ARTICLES)[chance.integers(len(ARTICLES))]
    some = [ADJECTIVES[one] for one in chance.choice(len(ADJECTIVES), chance.integers(3), replace=False)]
    ending = ("a" if noun[4] else "o") + "s" * many
    english = [article if article == "the" or not many else "these", *(one for one, _ in some), noun[many]]
    spanish = [
        ARTICLES[article][noun[4]][many],
        noun[2 + many],
        *(stem + ending for _, stem in reversed(some)),
    ]
    return english, spanish, many


def sentence(chance: np.random.Generator) -> tuple[list[str], list[str]]:
    """Who does what to whom, in English and in Spanish."""
    (who, quién, many), (whom, aquién, _) = phrase(chance), phrase(chance)
    verb = VERBS[chance.integers(len(VERBS))]
    return [*who, verb[many], *whom], [*quién, verb[2 + many], *aquién]


class Translation(_Writing):
    """Drawn sentences from English to Spanish, word by word: order, and agreement in gender and number."""

    def __init__(self) -> None:
        chance = np.random.default_rng(0)
        drawn = [sentence(chance) for _ in range(12_000)]
        words = sorted({word for pair in drawn for side in pair for word in side})
        known = {word: number for number, word in enumerate(words, max(SOS, EOS) + 1)}
        self.symbols = max(known.values()) + 1
        coded = [tuple([known[word] for word in side] for side in pair) for pair in drawn]
        self.train, self.valid = coded[:-500], coded[-500:]

    def reader(self) -> Encoder | None:
        return TransformerEncoder(
            EMBEDDING, size=EMBEDDING, num_layers=1, num_heads=HEADS, inner=2 * EMBEDDING, dropout=0.0
        )

    def draw(self, chance: np.random.Generator) -> Pairs:
        """32 sentences."""
        return paired([self.train[one] for one in chance.integers(len(self.train), size=32)])

    @torch.no_grad()
    def score(self, model: Generator) -> float:
        """Nats per word of 500 other translations, each word given those before it."""
        found = model.loss(paired(self.valid))
        return float(found.total) / float(found.count)

    def baseline(self, order: int = 3) -> float:
        """The same by counts of three Spanish words, without the source."""
        start = self.symbols
        train, valid = (
            np.array([word for _, target in pairs for word in (start, *target, EOS)])
            for pairs in (self.train, self.valid)
        )
        logp = kneser_ney(train, size=start + 1, order=order, start=start, never=(0, SOS)).score(valid)
        return -float(logp[valid != start].mean())


class _Labelling:
    """What tagging and forecasting share: all parameters count."""

    @staticmethod
    def sized(model: Labeller) -> nn.Module:
        return model


class WordEnds(_Labelling):
    """Tagging: a text without spaces, letter by letter; a tag says whether a word ends here."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}
        self.train, self.valid = (self._read(split) for split in ("train", "valid"))

    def _read(self, split: str) -> list[tuple[list[int], list[int]]]:
        rows = []
        for text in sentences("en", split):
            words = text.split()
            letters = "".join(words)[:LETTERS]
            ends = np.cumsum([len(word) for word in words]) - 1
            if split == "train":
                for letter in letters:
                    self.known.setdefault(letter, len(self.known) + 1)
            tags = np.isin(range(len(letters)), ends).astype(int).tolist()
            rows.append(([self.known.get(one, 0) for one in letters], tags))
        return [row for row in rows if row[0]]

    def model(self, name: str, width: int, inner: int) -> Labeller:
        """A tagger that reads in both directions."""
        made = encoder(name, width, inner, both=True)
        return Labeller(Tokens(len(self.known) + 1, EMBEDDING), made, Categorical(made.size, 2))

    def draw(self, chance: np.random.Generator) -> Labels:
        """16 lines."""
        return self._batch([self.train[one] for one in chance.integers(0, len(self.train), 16)])

    @torch.no_grad()
    def score(self, model: Labeller) -> float:
        """F1 of the ends of words over the validation part."""
        model.eval()
        batch = self._batch(self.valid)
        said = model.best(batch.source, batch.source_mask) == 1
        return f1(said[batch.source_mask].numpy(), batch.target[batch.source_mask].numpy() == 1)

    def baseline(self) -> float:
        """The same by the more frequent tag of the letter between its neighbours."""
        seen: Counter[tuple[int, ...]] = Counter()
        for letters, ends in self.train:
            for around, end in zip(_around(letters), ends, strict=True):
                seen[around] += 2 * end - 1
        found = [
            (seen[around] > 0, end == 1)
            for letters, ends in self.valid
            for around, end in zip(_around(letters), ends, strict=True)
        ]
        said, real = map(np.array, zip(*found, strict=True))
        return f1(said, real)

    @staticmethod
    def _batch(rows: Sequence[tuple[list[int], list[int]]]) -> Labels:
        source, mask = padded([letters for letters, _ in rows])
        return Labels(source, mask, padded([ends for _, ends in rows])[0])


def _around(letters: list[int]) -> list[tuple[int, int, int]]:
    """Each letter between its neighbours; -1 stands before the first and after the last."""
    return list(zip([-1, *letters], letters, [*letters[1:], -1], strict=False))


def f1(said: np.ndarray, real: np.ndarray) -> float:
    """The harmonic mean of precision and recall."""
    return 2 * float((said & real).sum()) / max(1, int(said.sum() + real.sum()))


class Waves(_Labelling):
    """Forecasting: three waves of random period and phase in noise; the next value at each position."""

    def model(self, name: str, width: int, inner: int) -> Labeller:
        """A forecaster of one step."""
        made = encoder(name, width, inner, both=False)
        return Labeller(nn.Linear(1, EMBEDDING), made, Point(made.size))

    def draw(self, chance: np.random.Generator, rows: int = 32) -> Labels:
        """Series of 64 values, and the value after each."""
        period = chance.uniform(4, 32, (rows, 3, 1))
        at = np.arange(STEPS + 1)[None, None] / period + chance.uniform(0, 1, (rows, 3, 1))
        values = np.sin(2 * np.pi * at).sum(1) + 0.3 * chance.normal(size=(rows, STEPS + 1))
        series = torch.from_numpy(values.astype(np.float32))
        return Labels(series[:, :-1, None], torch.ones(rows, STEPS, dtype=torch.bool), series[:, 1:])

    def held_out(self) -> Labels:
        """500 series."""
        return self.draw(np.random.default_rng(0), 500)

    @torch.no_grad()
    def score(self, model: Labeller) -> float:
        """Mean squared error over the second half of 500 series."""
        model.eval()
        batch = self.held_out()
        return self._error(model.best(batch.source, batch.source_mask), batch)

    def baseline(self) -> float:
        """The same for the last value."""
        batch = self.held_out()
        return self._error(batch.source[..., 0], batch)

    def stronger(self, lags: int = 24) -> float:
        """The same for the best linear function of the last values, fitted to 2,000 other series."""
        train = self.draw(np.random.default_rng(1), 2000)
        batch = self.held_out()
        weights = torch.linalg.lstsq(
            _lagged(train, lags).flatten(0, 1), train.target[:, lags - 1 :].flatten()[:, None]
        ).solution
        said = (_lagged(batch, lags) @ weights)[..., 0]
        return float((said - batch.target[:, lags - 1 :]).square()[:, STEPS // 2 - lags + 1 :].mean())

    @staticmethod
    def _error(said: Tensor, batch: Labels) -> float:
        return float((said - batch.target).square()[:, STEPS // 2 :].mean())


def _lagged(batch: Labels, lags: int) -> Tensor:
    """[B, T - lags + 1, lags + 1] the last values before each target, and 1."""
    lagged = batch.source[..., 0].unfold(1, lags, 1)
    return torch.cat([lagged, torch.ones_like(lagged[..., :1])], -1)
