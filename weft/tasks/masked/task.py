"""M7, a masked language model (BERT's first task): words said from both sides of them.

Read next: model.py, predictor.py.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from torch import nn

from weft.data.batching import Batches
from weft.data.check import check
from weft.data.lines import read_lines
from weft.data.plain import PlainText, no_words
from weft.data.report import Report
from weft.errors import CheckpointError, ConfigError, DataError, ShapeError, within
from weft.metrics.means import mean_of, ratio
from weft.metrics.scored import fingerprint
from weft.nn.embed.pieces import PiecesInContext
from weft.nn.heads.head import Loss
from weft.tasks.each import place
from weft.tasks.masked.model import Hidden, Masked, MaskedModel, hide, words_in_pieces
from weft.tasks.masked.predictor import MASK, Filler
from weft.tasks.ready import SPLITS, Contextual, Ready, Split
from weft.tasks.shared.context import text
from weft.tasks.shared.context.evaluation import ContextEvaluation, Side, perplexity
from weft.tasks.shared.running_text import ProseData
from weft.tasks.task import Progress
from weft.tasks.validation import Sample, Validation, samples_of
from weft.tasks.whole import Answer, Whole, unanswered
from weft.text.vocabulary import Vocabulary

VOCABULARY = "tokenizer.json"
ROWS = 32
SHARE = 0.15
"""Of the tokens, chosen where a model is scored."""


class MaskedTask(Whole):
    """Running text to a model that fills gaps.

    Args:
        data: where text comes from; lines by themselves, cut at `length` tokens.
        model: what reads them.
    """

    sections: ClassVar[Mapping[str, type]] = {"data": ProseData, "model": MaskedModel}
    evaluation: ClassVar = ContextEvaluation
    better: ClassVar[Mapping[str, Literal["higher", "lower"]]] = {"loss": "lower", "accuracy": "higher"}
    options: ClassVar[Mapping[str, Sequence[str]]] = {"predict": ("nbest", "scores")}
    note: ClassVar[str] = (
        "loss is nats and accuracy the share right of 15 % of the validation tokens, the same always; as "
        "in training 80 % of those are masked, 10 % replaced, 10 % left as they are."
    )

    def __init__(self, *, data: ProseData, model: MaskedModel) -> None:
        self.data = data
        self.parts = model
        self.vocabulary: Vocabulary
        self._seed = 1
        self._train: list[list[int]]
        self._valid: list[list[int]]

    def about(self) -> str:
        """The text."""
        return f"masked {self.data.vocabulary.kind} tokens of {self.data.describe('train')}"

    def has(self, split: Split) -> bool:
        """See Task.has."""
        return self.data.has(split)

    def check_ready(self) -> None:
        """See that the files are there and the settings fit."""
        text.check(self.data, words=False)
        with within("model"):
            self.rehearse()
        for split in SPLITS:
            if self.data.has(split):
                self.data.open(split)

    def rehearse(self) -> Loss:
        """Two lines of a vocabulary of 19."""
        return self.parts.build(19).loss(hide([[5, 6, 7], [8]], 19, share=0.5, seed=[1]))

    def prepare(self, run: Path, progress: Progress) -> Ready:
        """Learn the vocabulary unless the run has it; read the text."""
        if not (run / VOCABULARY).exists():
            progress("learning the vocabulary", 0, None)
            self.data.vocabulary.learn(self.data.open("train")).save(run / VOCABULARY)
        self.open(run)
        progress("reading the text", 0, None)
        self._train, self._valid = self._read(self.data.open("train")), self._read(self.data.open("valid"))
        progress(f"{sum(map(len, self._train)):,} tokens of {len(self.vocabulary):,} kinds", 0, 0)
        return self

    def open(self, run: Path) -> Ready:
        """Read the vocabulary of the run."""
        if not (run / VOCABULARY).exists():
            raise CheckpointError(
                f"{run / VOCABULARY}: is missing; this is no run directory, or training has not begun"
            )
        self.vocabulary = Vocabulary.load(run / VOCABULARY)
        return self

    def model(self) -> Masked:
        """A new model for this vocabulary."""
        return self.parts.build(len(self.vocabulary))

    def plan(self, seed: int) -> "Again":
        """Lines of like length; other tokens are hidden in every epoch."""
        self._seed = seed
        lengths = np.array([[len(line)] * 2 for line in self._train])
        most = self.data.rows * self.data.length
        return Again(Batches(lengths, max_tokens=most, max_rows=None, seed=seed), len(self._train))

    def collate(self, numbers: np.ndarray) -> Hidden:
        """Training lines by number; a number beyond their count is a line in a later epoch."""
        lines = [self._train[int(number) % len(self._train)] for number in numbers]
        seed = [self._seed, int(numbers[0])]
        return hide(lines, len(self.vocabulary), share=self.parts.share, seed=seed)

    def validate(self, model: nn.Module) -> Validation:
        """Nats and accuracy of what is hidden, and a few gaps."""
        assert isinstance(model, Masked)
        found = self._score(model, self._valid)
        filler = self.predictor(model)
        samples = []
        for line in (self._valid[number] for number in samples_of(len(self._valid))):
            middle = len(line) // 2
            before, after = self.vocabulary.decode(line[:middle]), self.vocabulary.decode(line[middle + 1 :])
            gap = f"{before} {MASK} {after}".strip()
            samples.append(Sample(gap, self.vocabulary.decode(line), filler.predict(gap)))
        return Validation({"loss": found.nats, "accuracy": found.right}, samples)

    def predictor(self, model: nn.Module) -> Filler:
        """The model at work: `predict("the [MASK] of a file")`, `fill(text, 5)`."""
        assert isinstance(model, Masked)
        return Filler(model, self.vocabulary)

    def answers(
        self, model: nn.Module, source: Path | BinaryIO, options: Mapping[str, Any]
    ) -> Iterator[Answer]:
        """Each line with its gaps filled; with --nbest N or --scores, the likeliest pieces of each gap."""
        filler, count = self.predictor(model), options.get("nbest", 1)
        if count < 1:
            raise ConfigError(f"--nbest: expected at least 1, got {count}")
        for number, line in enumerate(read_lines(source), 1):
            try:
                filled = filler.fill(line, count)
            except (DataError, ShapeError) as error:
                yield unanswered(place(source, number), error)
                continue
            if count == 1 and not options.get("scores"):
                yield Answer(filled.text)
                continue
            shown = [
                " ".join(f"{piece}:{prob:.4f}" if options.get("scores") else piece for piece, prob in gap)
                for gap in filled.gaps
            ]
            yield Answer("\t".join(shown))

    def evaluate(
        self,
        model: nn.Module,
        *,
        split: Split = "test",
        data: Path | None = None,
        options: Mapping[str, Any] = {},
    ) -> ContextEvaluation:
        """Perplexity and accuracy of 15 % of the tokens, beside the frequencies of this very text."""
        assert isinstance(model, Masked)
        lines = self._read(self.data.open(split) if data is None else PlainText(data))
        title = self.data.describe(split) if data is None else data.name
        found = self._score(model, lines)
        counts = Counter(token for line in lines for token in line)
        total = sum(counts.values())
        entropy = -sum(count / total * math.log(count / total) for count in counts.values())
        common = max(counts.values()) / total
        signature = (
            f"unit:{self.data.vocabulary.kind}|kinds:{len(self.vocabulary)}|chosen:{SHARE}|80/10/10|seed:1"
            f"|lines of at most {self.data.length}"
        )
        nats = ratio("perplexity of the chosen tokens", signature, higher_is_better=False, form="perplexity")
        accuracy = ratio("accuracy", signature, higher_is_better=True)
        outputs = [self.vocabulary.decode(line) for line in lines]
        lowest = {"token frequencies": perplexity(entropy)}, {"the most frequent token": common}
        sums, many, size = found.by_line(found.each), found.by_line(np.ones_like(found.each)), found.tokens
        hits, items = found.by_line(found.hit), fingerprint(outputs)
        scores = [
            mean_of(nats, sums, many, baselines=lowest[0], items=items, size=size),
            mean_of(accuracy, hits, many, baselines=lowest[1], items=items, size=size),
        ]
        sides = [Side("masked", found.near, found.each)]
        return ContextEvaluation(title, outputs, scores, sides, "tokens to the nearer end of the line")

    def contextual(self, model: nn.Module) -> Contextual:
        """See Task.contextual."""
        assert isinstance(model, Masked)
        embed, encoder = model.predictor.embed, model.predictor.encoder
        read = partial(words_in_pieces, self.vocabulary, length=self.data.length)
        return Contextual(read, PiecesInContext(embed, self.parts.size, encoder))

    @classmethod
    def check(cls, files: Sequence[Path]) -> Report:
        """Plain text: see weft/data/check.py."""
        return check(*files, pairs=False)

    def _read(self, source: PlainText) -> list[list[int]]:
        length = self.data.length
        rows = [row for row in self.vocabulary.encode_batch(list(source)) if row]
        if not rows:
            raise no_words(source.path)
        return [row[at : at + length] for row in rows for at in range(0, len(row), length)]

    def _score(self, model: Masked, lines: list[list[int]]) -> "Chosen":
        order = sorted(range(len(lines)), key=lambda n: len(lines[n]))
        device = next(model.parameters()).device
        parts: list[list[np.ndarray]] = [[] for _ in range(4)]
        for at in range(0, len(order), ROWS):
            numbers = order[at : at + ROWS]
            some = [lines[n] for n in numbers]
            batch = hide(some, len(self.vocabulary), share=SHARE, seed=[1, at]).to(device)
            with torch.no_grad():
                h, _ = model.predictor.features(batch.source, batch.source_mask)
                logp = model.predictor.head(h[batch.chosen])
            wanted = batch.target[batch.chosen]
            row, place = (where.cpu().numpy() for where in batch.chosen.nonzero(as_tuple=True))
            lengths = np.array([len(line) for line in some])[row]
            found = (
                -logp.gather(1, wanted[:, None])[:, 0].double().cpu().numpy(),
                (logp.argmax(1) == wanted).double().cpu().numpy(),
                np.array(numbers)[row],
                np.minimum(place - 1, lengths - place),
            )
            for part, one in zip(parts, found, strict=True):
                part.append(one)
        each, hit, line, near = (np.concatenate(part) for part in parts)
        return Chosen(each, hit, line, near, len(lines))


class Chosen(NamedTuple):
    """The chosen tokens, one after the other.

    Fields:
        each, hit: [N] nats, and 1.0 where the likeliest token is right.
        line, near: [N] in which line it stands, and how many tokens from its nearer end.
        lines: how many there are.
    """

    each: np.ndarray
    hit: np.ndarray
    line: np.ndarray
    near: np.ndarray
    lines: int

    @property
    def nats(self) -> float:
        """The mean."""
        return float(self.each.mean())

    @property
    def right(self) -> float:
        """The share."""
        return float(self.hit.mean())

    @property
    def tokens(self) -> int:
        """How many were chosen."""
        return len(self.each)

    def by_line(self, values: np.ndarray) -> np.ndarray:
        """[lines] the sum over the chosen tokens of each."""
        return np.bincount(self.line, values, self.lines)


class Again:
    """Batches whose numbers say in which epoch they are.

    Args:
        batches: of the lines.
        count: of the lines.
    """

    def __init__(self, batches: Batches, count: int) -> None:
        self.batches, self.count = batches, count

    def epoch(self, number: int) -> list[np.ndarray]:
        """Line + epoch x lines."""
        return [np.asarray(some) + number * self.count for some in self.batches.epoch(number)]
