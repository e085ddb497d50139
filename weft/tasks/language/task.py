"""M5, language models: what comes next in a text, and how likely the text is.

Read next: ../shared/running_text.py, model.py, scoring.py (contexts), evaluation.py, predictor.py.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from itertools import islice, tee
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Literal

import numpy as np
import torch
from torch import nn

from weft.data.lines import read_lines
from weft.data.plain import PlainText, check
from weft.data.report import Report
from weft.errors import CheckpointError, ConfigError, DataError, ShapeError, WeftError, within
from weft.models import Generator
from weft.nn.heads.head import Loss
from weft.tasks.each import place
from weft.tasks.language.batch import ProseBatch, collate_lines, cut
from weft.tasks.language.evaluation import ProseEvaluation, counted_for, evaluate, logp_of
from weft.tasks.language.mixture import ngram_logp, tuned
from weft.tasks.language.model import ProseModel, grows
from weft.tasks.language.predictor import Writer
from weft.tasks.language.scoring import token_logp
from weft.tasks.language.step import Mixed
from weft.tasks.language.stream import Pieces, Stream, Windows, encode, line_batches, lines_of, rarity
from weft.tasks.language.writing import Writing
from weft.tasks.ready import SPLITS, Ready, Split
from weft.tasks.shared.running_text import ProseData
from weft.tasks.task import Progress
from weft.tasks.validation import Sample, Validation, samples_of
from weft.tasks.whole import Answer, Whole, unanswered
from weft.text.vocabulary import Vocabulary

VALIDATION_ROWS = 8
VOCABULARY = "tokenizer.json"


class Language(Whole):
    """Running text to a language model.

    Args:
        data: where the text comes from, and how it is cut.
        model: which decoder.
        decoding: how texts are gone on with, and scored, once the model is trained.
    """

    sections: ClassVar[Mapping[str, type]] = {"data": ProseData, "model": ProseModel, "decoding": Writing}
    options: ClassVar[Mapping[str, Sequence[str]]] = {
        "predict": (
            "beam",
            "nbest",
            "scores",
            "sample",
            "temperature",
            "top_k",
            "top_p",
            "seed",
            "length_penalty",
            "plot",
        ),
        "evaluate": (),
    }
    note: ClassVar[str] = "Loss is in nats a token and perplexity a token's, the end of each line counted."
    linewise: ClassVar[bool] = True
    evaluation: ClassVar = ProseEvaluation
    better: ClassVar[Mapping[str, Literal["higher", "lower"]]] = {"loss": "lower", "perplexity": "lower"}

    def __init__(self, *, data: ProseData, model: ProseModel, decoding: Writing) -> None:
        self.data = data
        self.parts = model
        self.decoding = decoding
        self.streams = data.batches == "stream"
        self.vocabulary: Vocabulary
        self._train: Stream
        self._valid: Stream

    def about(self) -> str:
        """The text."""
        return f"{self.data.vocabulary.kind} tokens of {self.data.describe('train')}"

    def has(self, split: Split) -> bool:
        """See Task.has."""
        return self.data.has(split)

    def rehearse(self) -> Loss:
        """Two pieces, or lines, under a vocabulary of 19 tokens."""
        model = self.parts.build(19)
        if self.streams:
            loss, state = model.carry_on(cut(np.arange(19), np.array([0, 5]), 4), None)
            more, _ = model.carry_on(cut(np.arange(19), np.array([4, 9]), 4, continues=True), state)
            return Loss(loss.total + more.total, loss.count + more.count)
        return model.loss(collate_lines([[5, 6, 7], [8]]))

    def check_ready(self) -> None:
        """See that all files are there, and that the model and the batches fit together."""
        with within("model"):
            model = self.parts.build(5)
            with torch.no_grad():
                if self.streams and grows(model):
                    raise ConfigError(
                        "the state of this decoder holds all that it has read and cannot be carried from "
                        "batch to batch; set data.batches: windows (or lines)"
                    )
                if self.data.batches == "windows":
                    model.eval().loss(
                        cut(np.zeros(self.data.length + 1, int), np.zeros(1, int), self.data.length)
                    )
        for split in SPLITS:
            if self.data.has(split):
                self.data.open(split)

    def prepare(self, run: Path, progress: Progress) -> Ready:
        """Learn the vocabulary unless the run has it, then read the text."""
        if not (run / VOCABULARY).exists():
            progress("learning the vocabulary", 0, None)
            self.data.vocabulary.learn(self.data.open("train")).save(run / VOCABULARY)
        self.open(run)
        progress("reading the text", 0, None)
        self._train, self._valid = self.read("train"), self.read("valid")
        progress(
            f"training text: {self._train.size:,} tokens of {len(self.vocabulary):,} kinds in "
            f"{self._train.lines:,} lines",
            0,
            0,
        )
        return self

    def open(self, run: Path) -> Ready:
        """Read the vocabulary of the run."""
        if not (run / VOCABULARY).exists():
            raise CheckpointError(
                f"{run / VOCABULARY}: is missing; this is no run directory, or training has not begun"
            )
        self.vocabulary = Vocabulary.load(run / VOCABULARY)
        return self

    def read(self, split: Split) -> Stream:
        """The text of a split as tokens."""
        text = self.data.open(split)
        return encode(text, self.vocabulary, str(text.path))

    def model(self) -> Generator:
        """A new model for this vocabulary."""
        weights = rarity(self._train, len(self.vocabulary)) if hasattr(self, "_train") else None
        return self.parts.build(len(self.vocabulary), weights)

    def plan(self, seed: int) -> Any:
        """Pieces of the training text, one after the other; windows from anywhere; or lines."""
        rows, length = self.data.rows, self.data.length
        if self.data.batches == "stream":
            return Pieces(self._train.size, rows=rows, length=length)
        if self.data.batches == "windows":
            return Windows(self._train.size, rows=rows, length=length, seed=seed)
        self._lines = list(lines_of(self._train))
        return line_batches(self._train, rows=rows, length=length, seed=seed)

    def collate(self, numbers: np.ndarray) -> ProseBatch:
        """The pieces that begin at these places, or the lines of these numbers."""
        if self.data.batches == "lines":
            return collate_lines([self._lines[int(number)] for number in numbers])
        part = self._train.size // self.data.rows
        length = self.data.length
        if self.streams:
            length = min(length, part - int(numbers[0]))
        return cut(self._train.tokens, numbers, length, continues=self.streams and numbers[0] > 0)

    def validate(self, model: nn.Module) -> Validation:
        """Loss and perplexity of the validation text, a token, </s> counted."""
        assert isinstance(model, Generator)
        logp = token_logp(
            model, self._valid, self.data.batches, length=self.data.length, rows=VALIDATION_ROWS
        )
        loss = float(-logp.mean())
        return Validation({"loss": loss, "perplexity": math.exp(min(loss, 700.0))}, self._samples(model))

    def _samples(self, model: Generator) -> list[Sample]:
        """The first half of some lines of the validation text, gone on with greedily."""
        lines = [line.tolist() for line in islice(lines_of(self._valid), 200) if len(line) > 1]
        how = Writing(search="greedy", max_tokens=30)
        writer = Writer(model, self.vocabulary, how, batching=self.data.batches, length=self.data.length)
        shown = [lines[number] for number in samples_of(len(lines))]
        begun = [self.vocabulary.decode(line[: len(line) // 2]) for line in shown]
        whole = [self.vocabulary.decode(line) for line in shown]
        written = [found[0].text for found in writer.write(begun)]
        return [Sample(*three) for three in zip(begun, whole, written, strict=True)]

    def predictor(self, model: nn.Module, decoding: Writing | None = None) -> Writer:
        """The trained model at work: `predict(text)` goes on with it, `score(text)`, `next(text, k)`."""
        assert isinstance(model, Generator)
        decoding = decoding or self.decoding
        mixture, size = None, len(self.vocabulary)
        if decoding.mixture == "tuned":
            counted, valid = counted_for(self.data, decoding, self.read("train"), size), self.read("valid")
            weight = tuned(logp_of(model, valid, self.data, decoding), ngram_logp(counted, valid))
            mixture = Mixed(counted, weight)
        elif decoding.mixture:
            counted = counted_for(self.data, decoding, self.read("train"), size)
            mixture = Mixed(counted, float(decoding.mixture))
        data = self.data
        return Writer(
            model, self.vocabulary, decoding, batching=data.batches, length=data.length, mixed=mixture
        )

    def decoding_with(self, options: Mapping[str, Any]) -> Writing:
        """The recipe's way to write with what a user asks for.

        Raises:
            ConfigError: a setting that the search would not look at, or one out of its range.
        """
        settings = {field.name for field in fields(Writing)}
        given = {name: value for name, value in options.items() if name in settings}
        if options.get("sample"):
            given["search"] = "sample"
        elif "beam" in given:
            given["search"] = "greedy" if given["beam"] == 1 and given.get("nbest", 1) == 1 else "beam"
        search = given.get("search", self.decoding.search)
        unused = [name for name in ("temperature", "top_k", "top_p", "seed") if name in given]
        if search != "sample" and unused:
            raise ConfigError(
                f"{unused[0]}: is a setting of sampling, and {search} was asked for; add --sample"
            )
        if search != "beam" and "length_penalty" in given:
            raise ConfigError(f"length_penalty: is a setting of beam search, and {search} was asked for")
        return replace(self.decoding, **given)

    def answers(
        self, model: nn.Module, source: Path | BinaryIO, options: Mapping[str, Any]
    ) -> Iterator[Answer]:
        """Each line gone on with, or the n continuations, each on its own line.

        With --scores, the log-probability of what was written stands before it (that of the line itself,
        its end counted, where max_tokens=0 writes nothing).
        """
        writer = self.predictor(model, self.decoding_with(options))
        typed = not isinstance(source, Path) and source.isatty()
        lines, kept = tee(read_lines(source))
        attempts = writer.attempts(lines, **({"window": 1} if typed else {}))
        scores, count = bool(options.get("scores")), writer.decoding.nbest
        for number, (line, found) in enumerate(zip(kept, attempts, strict=True), 1):
            try:
                if isinstance(found, WeftError):
                    raise found
                if scores and not writer.decoding.max_tokens:
                    total = writer.score(line).total
                    found = [one._replace(logp=total) for one in found]
            except (DataError, ShapeError) as error:
                yield unanswered(place(source, number), error, count)
                continue
            shown = [f"{one.logp:.4f}\t{one.text}" if scores else one.text for one in found]
            yield Answer("\n".join([*shown, *[""] * (count - len(shown))]), found[0].text)

    def evaluate(
        self,
        model: nn.Module,
        *,
        split: Split = "test",
        data: Path | None = None,
        options: Mapping[str, Any] = {},
    ) -> ProseEvaluation:
        """Perplexity and its kin, beside an n-gram model of the training text; see Task.evaluate."""
        assert isinstance(model, Generator)
        text = self.data.open(split) if data is None else PlainText(data)
        train = None
        with suppress(DataError):
            train = self.read("train")
        return evaluate(
            model,
            encode(text, self.vocabulary, str(text.path)),
            title=self.data.describe(split) if data is None else str(data),
            data=self.data,
            decoding=self.decoding,
            size=len(self.vocabulary),
            train=train,
            valid=None if data is None and split == "valid" else lambda: self.read("valid"),
        )

    @classmethod
    def check(cls, files: Sequence[Path]) -> Report:
        """Plain text: see weft/data/plain.py."""
        return check(files)
