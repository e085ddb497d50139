"""M7, ELMo: a forward and a backward language model over letters, whose layers are words in context.

A tagger takes it with `model.embedding.contextual: RUN`. Read next: ../nn/embed/contextual.py;
../shared/context/text.py, model.py, predictor.py.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Literal

import numpy as np
import torch
from torch import nn

from weft.data.batching import Batches
from weft.data.check import check
from weft.data.lines import read_lines
from weft.data.plain import PlainText, no_words
from weft.data.report import Report
from weft.errors import DataError, ShapeError
from weft.metrics.means import mean_of, ratio
from weft.metrics.scored import fingerprint
from weft.nn.embed.contextual import BothWays, Sentences
from weft.nn.heads.head import Loss
from weft.tasks.each import place
from weft.tasks.elmo.model import SIZES, Elmo, ElmoModel
from weft.tasks.elmo.predictor import Comparer
from weft.tasks.ready import SPLITS, Contextual, Ready, Split
from weft.tasks.shared.context import text
from weft.tasks.shared.context.evaluation import ContextEvaluation, Side, perplexity
from weft.tasks.shared.lexicon import Lexicon
from weft.tasks.shared.running_text import ProseData
from weft.tasks.task import Progress
from weft.tasks.validation import Sample, Validation, samples_of
from weft.tasks.whole import Answer, Whole, unanswered

ROWS = 32


class ElmoTask(Whole):
    """Running text to words in context.

    Args:
        data: where text comes from; lines by themselves, in words.
        model: how large.
    """

    sections: ClassVar[Mapping[str, type]] = {"data": ProseData, "model": ElmoModel}
    evaluation: ClassVar = ContextEvaluation
    better: ClassVar[Mapping[str, Literal["higher", "lower"]]] = {
        "loss": "lower",
        "forward": "lower",
        "backward": "lower",
    }
    note: ClassVar[str] = (
        "forward and backward are perplexities a word by the full softmax, the end (or the beginning) of "
        "each line counted and unknown words as one word; loss is the mean of both in nats."
    )

    def __init__(self, *, data: ProseData, model: ElmoModel) -> None:
        self.data = data
        self.parts = model
        self.lexicon: Lexicon
        self._train: list[list[str]]
        self._valid: list[list[str]]

    def about(self) -> str:
        """The text."""
        return f"words in context, on {self.data.describe('train')}"

    def has(self, split: Split) -> bool:
        """See Task.has."""
        return self.data.has(split)

    def check_ready(self) -> None:
        """See that the files are there and the settings fit."""
        text.check(self.data, words=True)
        for split in SPLITS:
            if self.data.has(split):
                self.data.open(split)

    def rehearse(self) -> Loss:
        """Two sentences of three words and one."""
        some = [["a", "b", "ab"], ["b"]]
        lexicon = text.learn(some, min_count=1)
        return self.parts.build(lexicon.num_words, lexicon.num_letters).loss(_batch(lexicon, some))

    def prepare(self, run: Path, progress: Progress) -> Ready:
        """Learn words and letters unless the run has them; read the text."""
        progress("reading the text", 0, None)
        self._train, self._valid = text.of(self.data, "train"), text.of(self.data, "valid")
        for split, some in (("train", self._train), ("valid", self._valid)):
            if not some:
                raise no_words(self.data.describe(split))  # type: ignore[arg-type]
        if not (run / SIZES).exists():
            lexicon = text.learn(self._train, min_count=self.data.vocabulary.min_count)
            Elmo(lexicon, self.parts).save(run)
        self.open(run)
        told = f"{sum(map(len, self._train)):,} words in {len(self._train):,} lines"
        progress(f"training text: {told}, {len(self.lexicon.words):,} different ones are predicted", 0, 0)
        return self

    def open(self, run: Path) -> Ready:
        """Read words and letters of the run."""
        self.lexicon = Elmo.load(run).lexicon
        return self

    def model(self) -> BothWays:
        """A new model."""
        return self.parts.build(self.lexicon.num_words, self.lexicon.num_letters)

    def plan(self, seed: int) -> Batches:
        """Lines of like length."""
        lengths = np.array([[len(words)] * 2 for words in self._train])
        return Batches(lengths, max_tokens=self.data.rows * self.data.length, max_rows=None, seed=seed)

    def collate(self, numbers: np.ndarray) -> Sentences:
        """Training lines by number."""
        return _batch(self.lexicon, [self._train[int(number)] for number in numbers])

    def validate(self, model: nn.Module) -> Validation:
        """Both perplexities on the validation text, and what the forward model expected word by word."""
        assert isinstance(model, BothWays)
        ahead, back, _ = _nats(model, self.lexicon, self._valid)
        scores = {"loss": (ahead + back) / 2, "forward": perplexity(ahead), "backward": perplexity(back)}
        comparer, samples = self.predictor(model), []
        for words in (self._valid[number] for number in samples_of(len(self._valid))):
            said = [comparer.word(int(number)) for number in comparer.ahead(words).argmax(1)]
            samples.append(Sample(" ".join(words), "", " ".join(said)))
        return Validation(scores, samples)

    def predictor(self, model: nn.Module) -> Comparer:
        """The vectors at work: `vectors("a text")`, `compare("bank", "one sentence", "another")`."""
        assert isinstance(model, BothWays)
        return Comparer(model, self.lexicon, self.data)

    def answers(
        self, model: nn.Module, source: Path | BinaryIO, options: Mapping[str, Any]
    ) -> Iterator[Answer]:
        """One word, two contexts: for word TAB sentence TAB sentence, the cosine of each layer."""
        comparer = self.predictor(model)
        for number, line in enumerate(read_lines(source), 1):
            try:
                yield Answer(comparer.predict(line))
            except (DataError, ShapeError) as error:
                yield unanswered(place(source, number), error)

    def evaluate(
        self,
        model: nn.Module,
        *,
        split: Split = "test",
        data: Path | None = None,
        options: Mapping[str, Any] = {},
    ) -> ContextEvaluation:
        """Both perplexities, beside that of word frequencies; see Task.evaluate."""
        assert isinstance(model, BothWays)
        lines = self.data.open(split) if data is None else PlainText(data)
        some = list(text.sentences(self.data, lines))
        title = self.data.describe(split) if data is None else data.name
        if not some:
            raise no_words(title)
        nats = _by_word(model, self.lexicon, some)
        lowest = {"word frequencies": perplexity(_unigram(self.lexicon, some))}
        signature = (
            f"unit:word with line ends|softmax:full|classes:{self.lexicon.num_words}"
            f"|lines of at most {self.data.length} words"
        )
        outputs = [" ".join(words) for words in some]
        counts = np.array([len(words) + 1 for words in some])
        scores, sides = [], []
        for side, rows in zip(("forward", "backward"), nats, strict=True):
            metric = ratio(f"{side} perplexity", signature, higher_is_better=False, form="perplexity")
            sums, size = np.array([row.sum() for row in rows]), int(counts.sum())
            items = fingerprint(outputs)
            scores.append(mean_of(metric, sums, counts, baselines=lowest, items=items, size=size))
            read = [np.arange(len(row))[:: 1 if side == "forward" else -1] for row in rows]
            sides.append(Side(side, np.concatenate(read), np.concatenate(rows)))
        return ContextEvaluation(title, outputs, scores, sides, "words read before it")

    def contextual(self, model: nn.Module) -> Contextual:
        """See Task.contextual."""
        assert isinstance(model, BothWays)
        return Contextual(lambda sentences: self.lexicon.spell(sentences)[0], model)

    @classmethod
    def check(cls, files: Sequence[Path]) -> Report:
        """Plain text: see weft/data/check.py."""
        return check(*files, pairs=False)


def _batch(lexicon: Lexicon, some: Sequence[Sequence[str]]) -> Sentences:
    spelled, mask = lexicon.spell(some)
    return Sentences(spelled, mask, int(mask.sum()) + len(some))


def _nats(model: BothWays, lexicon: Lexicon, some: list[list[str]]) -> tuple[float, float, int]:
    """Nats a word forward and backward, line ends counted, and how many."""
    order = sorted(some, key=len)
    device = model.ends.device
    totals, count = np.zeros(2), 0
    for at in range(0, len(order), ROWS):
        batch = _batch(lexicon, order[at : at + ROWS])
        with torch.no_grad():
            both = model.directions(batch.to(device))
        totals += [float(both.forward.total), float(both.backward.total)]
        count += batch.target_tokens
    return float(totals[0]) / count, float(totals[1]) / count, count


def _by_word(
    model: BothWays, lexicon: Lexicon, some: list[list[str]]
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Nats of each word of each sentence, its end counted: forward, and backward."""
    order = sorted(range(len(some)), key=lambda n: len(some[n]))
    ahead: list[np.ndarray] = [np.zeros(0)] * len(some)
    back = list(ahead)
    for at in range(0, len(order), ROWS):
        numbers = order[at : at + ROWS]
        with torch.no_grad():
            nats, mask = model.nats(_batch(lexicon, [some[n] for n in numbers]).to(model.ends.device))
        rows, real = nats.double().cpu().numpy(), mask.cpu().numpy()
        for row, number in enumerate(numbers):
            ahead[number] = rows[row][real[row]]
            back[number] = rows[len(numbers) + row][real[len(numbers) + row]]
    return ahead, back


def _unigram(lexicon: Lexicon, some: list[list[str]]) -> float:
    """Nats a word by the frequencies of the training text, an end a line counted as often as here."""
    total = sum(lexicon.counts) + 1
    counts = dict(zip(lexicon.words, lexicon.counts, strict=True))
    words = sum(map(len, some))
    ends = len(some) / (words + len(some))
    nats = -len(some) * math.log(ends)
    for sentence in some:
        for word in sentence:
            nats -= math.log((1 - ends) * counts.get(word, 1) / total)
    return nats / (words + len(some))
