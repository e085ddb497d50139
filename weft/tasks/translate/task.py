"""M1-M3, translation: a sequence of one language becomes one of another.

Vocabularies are learnt here, on the training side alone, when training begins; tokens are kept in a
memory-mapped store. Read next: ../shared/writing/data.py, ../shared/writing/model.py,
../shared/writing/translator.py, ../shared/writing/evaluation.py.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Literal

import numpy as np
from torch import nn

from weft.data.batching import Batches
from weft.data.check import check
from weft.data.joined import Joined
from weft.data.mixture import Mixture
from weft.data.parallel import complete
from weft.data.report import Report
from weft.data.store import EncodedPairs
from weft.errors import CheckpointError, DataError, within
from weft.metrics.bleu import Bleu
from weft.metrics.chrf import Chrf
from weft.metrics.compared import of_lines
from weft.models import Generator
from weft.nn.heads.head import Loss
from weft.tasks.ready import SPLITS, Ready, Split
from weft.tasks.shared.writing.batch import PairBatch, collate_pairs
from weft.tasks.shared.writing.data import PairData
from weft.tasks.shared.writing.decoding import EVALUATED, PREDICTED, Decoding
from weft.tasks.shared.writing.evaluation import PairEvaluation, evaluate, loss_of_pairs
from weft.tasks.shared.writing.members import Member, joined, pieces
from weft.tasks.shared.writing.model import PairModel
from weft.tasks.shared.writing.prepared import learn, stored, vocabulary_paths
from weft.tasks.shared.writing.reading import SourceReader, encode_pairs
from weft.tasks.shared.writing.scoring import GivenScores, perplexity, score_file
from weft.tasks.shared.writing.translator import Translator, answers
from weft.tasks.task import Progress
from weft.tasks.validation import Sample, Validation, samples_of
from weft.tasks.whole import Answer, Whole
from weft.text.vocabulary import Vocabulary


class Translate(Whole):
    """Parallel text to a translator.

    Args:
        data: where the pairs come from.
        model: which encoder and decoder.
        decoding: how translations are searched once the model is trained; validation is greedy.
    """

    sections: ClassVar[Mapping[str, type]] = {"data": PairData, "model": PairModel, "decoding": Decoding}
    options: ClassVar[Mapping[str, Sequence[str]]] = {
        "predict": (*PREDICTED, "alignments"),
        "evaluate": (*EVALUATED, "lowercase"),
    }
    note: ClassVar[str] = (
        "BLEU and chrF are sacrebleu's on detokenised greedy output, perplexity is a token of the vocabulary."
    )
    linewise: ClassVar[bool] = True
    evaluation: ClassVar = PairEvaluation
    suffixes: ClassVar[Sequence[str]] = ("*",)
    better: ClassVar[Mapping[str, Literal["higher", "lower"]]] = {
        "loss": "lower",
        "perplexity": "lower",
        "bleu": "higher",
        "chrf": "higher",
    }

    def __init__(self, *, data: PairData, model: PairModel, decoding: Decoding) -> None:
        self.data = data
        self.parts = model
        self.decoding = decoding
        self.source: Vocabulary
        self.target: Vocabulary
        self.reading: SourceReader
        self._store: Joined
        self._valid: tuple[list[str], list[str]]
        self._valid_tokens: EncodedPairs

    def about(self) -> str:
        """The languages and the corpus."""
        return f"{self.data.source} to {self.data.target}, on {self.data.corpus or self.data.train}"

    def has(self, split: Split) -> bool:
        """See Task.has."""
        return self.data.has(split)

    def rehearse(self) -> Loss:
        """Two pairs under a vocabulary of 19 tokens."""
        model = self.parts.build(19, 19, one_vocabulary=self.data.vocabulary.shared)
        return model.loss(collate_pairs([[5, 6, 7], [8]], [[9, 10], [11, 12, 13]]))

    def check_ready(self) -> None:
        """See that all files are there, and that the parts of the model fit together."""
        with within("model"):
            self.parts.build(5, 5, one_vocabulary=self.data.vocabulary.shared)
        for split in SPLITS:
            if self.data.has(split):
                self.data.open(split)
        self.data.texts()

    def prepare(self, run: Path, progress: Progress) -> Ready:
        """Learn the vocabularies unless the run has them, then open or build the token store."""
        if not vocabulary_paths(run, self.data)[0].exists():
            learn(self.data, run, progress)
        self.open(run)
        texts = self.data.texts()
        self._store = Joined(
            [stored(text, self.data, self.reading, self.target, run, progress) for text in texts]
        )
        plan = self.plan(0)
        if isinstance(plan, Mixture):
            progress(plan.summary([text.name for text in texts]), 0, 0)
        self._valid = self.data.complete("valid")
        self._valid_tokens = encode_pairs(self.reading, self.target, *self._valid)
        return self

    def open(self, run: Path) -> Ready:
        """Read the vocabularies of the run."""
        source, target = vocabulary_paths(run, self.data)
        if not source.exists():
            raise CheckpointError(
                f"{source}: is missing; this is no run directory, or training has not begun"
            )
        self.source = Vocabulary.load(source)
        self.target = self.source if source == target else Vocabulary.load(target)
        self.reading = SourceReader(self.source, cut=self.data.cut_source, copies=self.parts.copies)
        return self

    def model(self) -> Generator:
        """A new model for these vocabularies."""
        return self.parts.build(len(self.source), len(self.target), one_vocabulary=self.source is self.target)

    def writes(self) -> Vocabulary:
        """See Task.writes."""
        return self.target

    def common(self) -> Mapping[str, Any]:
        """See Task.common."""
        known = {"source vocabulary": pieces(self.source), "target vocabulary": pieces(self.target)}
        return {**known, "reading": str(self.reading)}

    def plan(self, seed: int) -> Batches | Mixture:
        """Batches of the training pairs; of several texts, mixed by weight and temperature."""
        tokens, rows = self.data.batch_tokens, self.data.batch_rows or None
        if not self.data.mixed:
            return Batches(self._store.lengths[0], max_tokens=tokens, max_rows=rows, seed=seed)
        return Mixture(
            self._store.lengths,
            temperature=self.data.temperature,
            weights=[1.0, *self.data.mixed.values()],
            max_tokens=tokens,
            max_rows=rows,
            seed=seed,
        )

    def collate(self, numbers: np.ndarray) -> PairBatch:
        """Training pairs by number."""
        pairs = [self._store[int(number)] for number in numbers]
        return collate_pairs([source for source, _ in pairs], [target for _, target in pairs])

    def validate(self, model: nn.Module) -> Validation:
        """Loss and perplexity over all validation pairs; BLEU and chrF of greedy translations."""
        return self.tried(model).with_metrics([Bleu(), Chrf()])

    def tried(self, model: nn.Module) -> Validation:
        """Loss and perplexity on the validation pairs, and greedy outputs beside their references."""
        assert isinstance(model, Generator)
        loss = loss_of_pairs(model, self._valid_tokens.source, self._valid_tokens.target)
        rows = self.data.validate_rows or len(self._valid[0])
        sources, references = self._valid[0][:rows], self._valid[1][:rows]
        translator = Translator(model, self.reading, self.target, Decoding(search="greedy"))
        outputs = [found[0].text for found in translator.translate(sources)]
        said = [n for n, source in enumerate(sources) if source.strip()]
        shown = [said[number] for number in samples_of(len(said))]
        samples = [Sample(sources[n], references[n], outputs[n]) for n in shown]
        scores = {"loss": loss, "perplexity": perplexity(loss)}
        return Validation(scores, samples, [of_lines(outputs, references, sources)])

    def predictor(
        self, model: nn.Module, decoding: Decoding | None = None, members: Sequence[Member] = ()
    ) -> Translator:
        """The trained model at work: `predict(text)` answers with text.

        Args:
            model: trained.
            decoding: how to search; the recipe's way by default.
            members: opened runs that join the model, as an ensemble.

        Raises:
            ConfigError: a member with other vocabularies.
        """
        assert isinstance(model, Generator)
        others = [joined(member, self) for member in members]
        return Translator(model, self.reading, self.target, decoding or self.decoding, others=others)

    def answers(
        self, model: nn.Module, source: Path | BinaryIO, options: Mapping[str, Any]
    ) -> Iterator[Answer]:
        """A translation a line, or the n best ones, each on its own line."""
        translator = self.predictor(model, self.decoding.asked(options), options.get("ensemble", ()))
        return answers(translator, source, options)

    def evaluate(
        self,
        model: nn.Module,
        *,
        split: Split = "test",
        data: Path | None = None,
        options: Mapping[str, Any] = {},
    ) -> PairEvaluation | GivenScores:
        """BLEU, chrF, METEOR and perplexity; see Task.evaluate.

        With the option `score`, a file, nothing is translated: the log-probability of each of its lines.

        `data` is a prefix of files, or a .tsv. The baseline "nearest training sentence" is left out where the
        training data is no longer there.
        """
        pairs = list(self.data.open(split) if data is None else self.data.at(data))
        sources, references = [pair.source for pair in pairs], [pair.target for pair in pairs]
        if "score" in options:
            assert isinstance(model, Generator)
            read = self.reading.encode_batch(sources)
            return score_file(
                model,
                len(pairs),
                lambda texts: encode_pairs(self.reading, self.target, sources, texts).target,
                lambda numbers, rows: collate_pairs([read[n] for n in numbers], rows),
                options,
                kept=complete(sources, references),
            )
        train = None
        with suppress(DataError):
            train = self.data.complete("train")
        return evaluate(
            self.predictor(model, self.decoding.asked(options), options.get("ensemble", ())),
            sources,
            references,
            title=self.title(split, data, sources, references),
            train=train,
            lowercase=options.get("lowercase", False),
        )

    def title(
        self, split: Split, data: Path | None, sources: Sequence[str], references: Sequence[str]
    ) -> str:
        """What is scored, and how many of its sources are cut."""
        named = self.data.describe(split, data)
        number = self.reading.num_cut([sources[n] for n in complete(sources, references)])
        return f"{named}, {number:,} cut after {self.reading.cut} tokens" if number else named

    @classmethod
    def check(cls, files: Sequence[Path]) -> Report:
        """Parallel text: see weft/data/check.py."""
        return check(*files)
