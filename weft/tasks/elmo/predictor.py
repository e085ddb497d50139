"""ELMo, trained: the vectors of a word in its sentence, and one word in two sentences.

`inspect_sentences` is what `weft inspect` shows, `export_contexts` what `weft export` writes, `evaluate` the
perplexities of the two language models, beside that of word frequencies.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from weft.errors import DataError
from weft.metrics.probabilities import Perplexity
from weft.metrics.scored import ComparedOutputs
from weft.nn.embed.contextual import BOUNDARY, BothWays, Sentences
from weft.nn.embed.words import Spelled
from weft.tasks import predictor
from weft.tasks.export import Graph, ModelExport, random_letters, random_sentences, some_of
from weft.tasks.inspection import Inspection, ShownVectors, around, choices_of, sentences
from weft.tasks.predictor import Answer, Json, Place, Raw, as_text
from weft.tasks.running_text.base import ContextEvaluation, Parts, ProseData, Side, words_of
from weft.tasks.running_text.base import sentences as split_sentences
from weft.tasks.vocabulary import LETTERS, Lexicon
from weft.text.loading import portable_cutter

END = "<end>"
WORDS = 200
"""Maximum number of words of a sentence whose vectors are an answer."""


class WordsInSentence(NamedTuple):
    """A sentence and its vectors."""

    words: list[str]
    layers: np.ndarray  # [L + 1, S, 2 H], the lowest layer first


class ContextQuery(NamedTuple):
    """A word in two sentences, or a sentence alone."""

    sentences: list[list[str]]  # their words
    word: str = ""  # as it was given; "" of a sentence alone
    at: Sequence[int] = ()  # its place in each sentence


@dataclass(eq=False)
class CosineAnswer(Answer):
    """A word in two sentences."""

    word: str
    cosines: list[float]  # [L + 1] of its two vectors in each layer, the lowest layer first

    def text(self) -> str:
        return "\t".join([self.word, *(f"{cosine:.4f}" for cosine in self.cosines)])

    def json(self) -> Json:
        return {"word": self.word, "cosines": list(self.cosines)}


@dataclass(eq=False)
class SentenceVectors(Answer):
    """A sentence and the vectors of its words in the top layer."""

    found: WordsInSentence

    def text(self) -> str:
        return json.dumps(self.json(), ensure_ascii=False)

    def json(self) -> Json:
        return {"words": list(self.found.words), "vectors": np.round(self.found.layers[-1], 5).tolist()}


class ContextComparer(predictor.Predictor[ContextQuery]):
    """Vectors in context.

    Args:
        model: trained, in evaluation mode.
        lexicon: its letters.
        data: how text is cut into words.

    Example:
        >>> from weft.nn.embed.contextual import BothWays
        >>> from weft.tasks.vocabulary import Lexicon
        >>> from weft.tasks.running_text.base import ProseData
        >>> lexicon = Lexicon(["the", "bank"], [2, 1], list("abehknt"), [], lowercase=True)
        >>> model = BothWays(lexicon.num_words, lexicon.num_letters, 5, num_layers=2).eval()
        >>> comparer = ContextComparer(model, lexicon, ProseData(train="text.txt", valid_share=0.1))
        >>> [round(cosine, 4) for cosine in comparer.compare("bank", "the bank", "the bank")]  # of each layer
        [1.0, 1.0, 1.0]
    """

    def __init__(self, model: BothWays, lexicon: Lexicon, data: ProseData) -> None:
        self.model, self.lexicon, self._data = model, lexicon, data

    def parse(self, raw: Raw, place: Place) -> ContextQuery:
        """WORD TAB SENTENCE TAB SENTENCE; or a sentence, whose vectors are the answer."""
        text = as_text(raw, place)
        cells = text.split("\t")
        if len(cells) == 3:
            return self._pair(cells[0], cells[1:], place)
        if len(cells) != 1:
            wanted = "expected a sentence, or 3 columns (word TAB sentence TAB sentence)"
            raise place.refuse(f"{wanted}, got {len(cells)} columns")
        words = self._words(text, place)
        if len(words) > WORDS:
            raise place.refuse(f"expected at most {WORDS} words, got {len(words)}")
        return ContextQuery([words])

    def answers(self, inputs: Sequence[ContextQuery]) -> Iterator[Answer]:
        return (self._answer(asked) for asked in inputs)

    def value(self, answer: Answer) -> Any:
        """The word and its cosines in each layer, as text; of a sentence, its words and their vectors."""
        return answer.text() if isinstance(answer, CosineAnswer) else answer.json()

    def compare(self, word: str, first: str, second: str) -> list[float]:
        """The cosines of a word's vectors in two sentences, the lowest layer first, where it is always 1.

        Raises:
            DataError: the word is missing in a sentence.
        """
        return self._cosines(self._pair(word, [first, second], Place("input")))

    def vectors(self, text: str) -> WordsInSentence:
        """The vectors of every word of a sentence.

        Raises:
            DataError: there is no word in it.
        """
        return self._read(self._words(text, Place("input")))

    def ahead(self, words: list[str]) -> Tensor:
        """The forward model's log-probabilities [S + 1, V] of each word of a sentence, and of its end."""
        spelled, mask = self.lexicon.spell([words])
        device = self.model.ends.device
        with torch.no_grad():
            logp: Tensor = self.model.head(self.model.ahead(spelled.to(device), mask.to(device)))[0]
        return logp.float().cpu()

    def word(self, number: int) -> str:
        """The name of a class of the softmax."""
        return {BOUNDARY: END, 1: "<unk>"}.get(number) or self.lexicon.words[number - 2]

    def _words(self, text: str, place: Place) -> list[str]:
        words = words_of(self._data, text)
        if not words:
            raise place.refuse("expected a sentence with words, got only white space")
        return words

    def _pair(self, word: str, texts: Sequence[str], place: Place) -> ContextQuery:
        spelt, found, at = words_of(self._data, word), [], []
        for text in texts:
            words = self._words(text, place)
            if len(spelt) != 1 or spelt[0] not in words:
                raise place.refuse(f"{word!r} is no word of {text!r}; give two sentences that contain it")
            found.append(words)
            at.append(words.index(spelt[0]))
        return ContextQuery(found, word, at)

    def _read(self, words: list[str]) -> WordsInSentence:
        spelled, mask = self.lexicon.spell([words])
        device = self.model.ends.device
        with torch.no_grad():
            layers = torch.cat(self.model(spelled.to(device), mask.to(device)))
        return WordsInSentence(words, layers.float().cpu().numpy())

    def _answer(self, asked: ContextQuery) -> Answer:
        if asked.at:
            return CosineAnswer(asked.word, self._cosines(asked))
        return SentenceVectors(self._read(asked.sentences[0]))

    def _cosines(self, asked: ContextQuery) -> list[float]:
        a, b = (self._read(words).layers[:, at] for words, at in zip(asked.sentences, asked.at, strict=True))
        length = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
        return [float(cosine) for cosine in (a * b).sum(1) / length]


FREQUENT = 5000
"""Words of the training text among which neighbours are searched."""


def inspect_sentences(comparer: ContextComparer, text: str, valid: Callable[[], Iterable[str]]) -> Inspection:
    """Sentences under ELMo, a line each: the vectors of each word without its sentence, and in it."""
    if text.count("\t") == 2:
        text = "\n".join(text.split("\t")[1:])
    lines = [line for line in text.splitlines() if line.strip()]
    found = [comparer.vectors(line) for line in lines]
    words = [word for one in found for word in one.words]
    first = found[0].words
    spelled, mask = comparer.lexicon.spell([first])
    logp = comparer.ahead(first)
    targets = [*spelled.words[0].tolist(), BOUNDARY]
    nats = -float(logp[torch.arange(len(targets)), targets].mean())
    return Inspection(
        text=text,
        answer=f"forward perplexity {math.exp(nats):.1f} per word, including the end",
        source=["<start>", *first, END],
        batch=Sentences(spelled, mask, len(first) + 1).to(comparer.model.ends.device),
        choices=choices_of(logp, targets, comparer.word, [*first, END]),
        chosen_what="each word of the sentence and its end, given those before it",
        vectors=ShownVectors(
            *_static(comparer, words),
            words,
            np.concatenate([one.layers[-1] for one in found]),
            around(sentences(valid), lambda line: _within(comparer, line)),
        ),
    )


def _within(comparer: ContextComparer, line: str) -> tuple[list[str], np.ndarray] | None:
    try:
        found = comparer.vectors(line)
    except DataError:
        return None
    return found.words, found.layers[-1]


def _static(comparer: ContextComparer, words: list[str]) -> tuple[list[str], np.ndarray, list[int]]:
    """Words, their vectors from letters alone [V, H], and the rows of the words of the text."""
    lexicon, model = comparer.lexicon, comparer.model
    order = np.argsort(-np.array(lexicon.counts), kind="stable")[:FREQUENT].tolist()
    names = list(dict.fromkeys([*words, *(lexicon.words[n] for n in order)]))
    table = []
    with torch.no_grad():
        for at in range(0, len(names), 500):
            spelled, _ = lexicon.spell([names[at : at + 500]])
            x = model.project(model.characters(spelled.letters.to(model.ends.device)))
            table.append(x[spelled.which[0].to(x.device)].float().cpu().numpy())
    place = {name: n for n, name in enumerate(names)}
    return names, np.concatenate(table), [place[word] for word in words]


class ContextLayers(nn.Module):
    """Letters, the word at each position and the mask to all layers."""

    def __init__(self, model: BothWays) -> None:
        super().__init__()
        self.model = model

    def forward(self, letters: Tensor, which: Tensor, mask: Tensor) -> Tensor:
        """[N, C], [B, S] int64 and [B, S] bool to [B, L + 1, S, 2 H]."""
        return torch.stack(self.model(Spelled(which, letters, which), mask), 1)


def export_contexts(comparer: ContextComparer, valid: Callable[[], Iterable[str]]) -> ModelExport:
    """ELMo as one graph: the letters of words to the layers of their vectors in context."""
    lexicon, how = comparer.lexicon, comparer._data.vocabulary
    settings: dict[str, Any] = {
        "kind": "contexts",
        "vocabulary": "tokenizer.json",
        "letters": lexicon.letters,
        "longest": LETTERS,
        "most": WORDS,
    }
    both = random_letters(lexicon.num_letters, 3, 7, 11), random_letters(lexicon.num_letters, 2, 10, 6)
    return ModelExport(
        [Graph("layers", ContextLayers(comparer.model), both, ["layers"])],
        settings,
        {"tokenizer.json": portable_cutter(how.kind, form=how.form, lowercase=how.lowercase)},
        lambda count: _examples(comparer, valid, count),
        program="contexts",
        distance=_distance,
        close=1e-3,
    )


def _examples(comparer: ContextComparer, valid: Callable[[], Iterable[str]], count: int) -> Sequence[str]:
    """Validation sentences, and a word of each in it and in itself alone; random words without the data."""
    data, known, count = comparer._data, comparer.lexicon.words, count // 2
    sentences = some_of(
        lambda: split_sentences(data, valid()).parts, count, lambda: random_sentences(known, count)
    )
    plain = [" ".join(words) for words in sentences]
    return [
        *plain,
        *(f"{words[-1]}\t{line}\t{words[-1]}" for words, line in zip(sentences, plain, strict=True)),
    ]


def _distance(ours: str, theirs: str) -> float:
    """Of vectors as a share of the largest number; of cosines the largest difference."""
    if ours.startswith("{"):
        a, b = (json.loads(text) for text in (ours, theirs))
        first, second = np.array(a["vectors"]), np.array(b["vectors"])
        same = a["words"] == b["words"]
        return float(np.abs(first - second).max() / np.abs(first).max()) if same else math.inf
    (word, *one), (other, *two) = (text.split("\t") for text in (ours, theirs))
    differences = np.abs(np.array(one, np.float64) - np.array(two, np.float64))
    return float(differences.max(initial=0)) if word == other else math.inf


ROWS = 32


def collate(lexicon: Lexicon, some: list[list[str]]) -> Sentences:
    """Sentences of words as a batch."""
    spelled, mask = lexicon.spell(some)
    return Sentences(spelled, mask, int(mask.sum()) + len(some))


def evaluate(
    model: BothWays, lexicon: Lexicon, text: Parts[str], *, title: str, length: int
) -> ContextEvaluation:
    """Both perplexities, beside that of word frequencies; the outputs are log-probabilities of the lines."""
    some = text.parts
    lowest = {"word frequencies": _unigram(lexicon, some)}
    about = f"words with line ends|softmax:full|classes:{lexicon.num_words}|lines of at most {length} words"
    counts, sources = np.array([len(words) + 1 for words in some]), [" ".join(words) for words in some]
    compared, sides, logp = [], [], []
    for side, rows in zip(("forward", "backward"), nats_by_word(model, lexicon, some), strict=True):
        sums, how = np.array([row.sum() for row in rows]), f"direction:{side}|{about}"
        compared.append(ComparedOutputs(sums, counts, sources, lowest, "nats", about=how))
        logp.append([-sum(line) for line in text.joined(rows)])
        read = [np.arange(len(row))[:: 1 if side == "forward" else -1] for row in rows]
        sides.append(Side(side, np.concatenate(read), np.concatenate(rows)))
    outputs = [f"{forward:.4f}\t{backward:.4f}" for forward, backward in zip(*logp, strict=True)]
    scores = [
        each.scored(Perplexity()).renamed(f"{side.name} perplexity")
        for each, side in zip(compared, sides, strict=True)
    ]
    return ContextEvaluation(title, outputs, scores, sides, "words read before it", compared=compared)


def nats_by_word(
    model: BothWays, lexicon: Lexicon, some: list[list[str]]
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Nats of each word and of the end of each sentence: forward, and backward."""
    order = sorted(range(len(some)), key=lambda n: len(some[n]))
    ahead: list[np.ndarray] = [np.zeros(0)] * len(some)
    back = list(ahead)
    for at in range(0, len(order), ROWS):
        numbers = order[at : at + ROWS]
        with torch.no_grad():
            found, mask = model.nats(collate(lexicon, [some[n] for n in numbers]).to(model.ends.device))
        rows, real = found.double().cpu().numpy(), mask.cpu().numpy()
        for row, number in enumerate(numbers):
            ahead[number] = rows[row][real[row]]
            back[number] = rows[len(numbers) + row][real[len(numbers) + row]]
    return ahead, back


def _unigram(lexicon: Lexicon, some: list[list[str]]) -> np.ndarray:
    """[N] nats by the word frequencies of the training text; the end of a line is as frequent as here."""
    total = sum(lexicon.counts) + 1
    counts = dict(zip(lexicon.words, lexicon.counts, strict=True))
    words = sum(map(len, some))
    ends = len(some) / (words + len(some))

    def nats_of(word: str) -> float:
        return -math.log((1 - ends) * counts.get(word, 1) / total)

    return np.array([sum(map(nats_of, sentence)) - math.log(ends) for sentence in some])
