"""Many language pairs, made ready: one vocabulary, and the pairs while a model is trained on them.

Read next: predictor.py; evaluation.py.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import nn

from weft.data.joined import JoinedStores
from weft.data.mixture import Mixture
from weft.data.parallel import complete
from weft.errors import ConfigError, DataError
from weft.metrics.bleu import Bleu
from weft.metrics.chrf import Chrf
from weft.metrics.compared import of_lines
from weft.models import Generator
from weft.tasks.exported import ModelExport
from weft.tasks.inspection import Examples, Inspection, checked
from weft.tasks.multilingual.data import ManyData
from weft.tasks.multilingual.evaluation import ManyEvaluation, together
from weft.tasks.multilingual.predictor import ManyTranslator
from weft.tasks.predictor import Predictor
from weft.tasks.seq2seq.batch import AugmentedPairs, PairBatch, collate_pairs
from weft.tasks.seq2seq.decoding import Decoding
from weft.tasks.seq2seq.documents import Splitting
from weft.tasks.seq2seq.evaluation import evaluate, loss_of_fitting, written
from weft.tasks.seq2seq.pairs import joined, pieces
from weft.tasks.seq2seq.scoring import GivenScores, perplexity, score_file
from weft.tasks.seq2seq.translator import Translator
from weft.tasks.task import Pipeline, Split, Training, named_rows
from weft.tasks.validation import Sample, Validation, samples_of
from weft.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from weft.tasks.multilingual.task import Multilingual


class ManyTraining(Training):
    """The training pairs.

    Args:
        data: the recipe's section.
        vocabulary: of all languages.
        stores: the tokens of each pair.
        valid: the validation sources and references of each pair.
    """

    def __init__(
        self,
        data: ManyData,
        vocabulary: Vocabulary,
        stores: JoinedStores,
        valid: Mapping[str, tuple[list[str], list[str]]],
    ) -> None:
        self._data = data
        self._vocabulary = vocabulary
        self._stores = stores
        self._valid = valid
        longest = data.max_length, data.max_length
        tags = 1 if data.symbols else 0
        self._pairs = AugmentedPairs(
            data.vocabulary, data.augment, vocabulary, vocabulary, longest, tags=tags
        )

    def plan(self, seed: int) -> Mixture:
        """Batches of all pairs, mixed by temperature."""
        return Mixture(
            self._stores.lengths,
            temperature=self._data.temperature,
            max_tokens=self._data.batch_tokens,
            max_rows=self._data.batch_rows or None,
            seed=seed,
        )

    def collate(self, numbers: np.ndarray) -> PairBatch:
        """Training pairs by number over all stores."""
        return self._pairs.collate([self._stores[number] for number in numbers.tolist()])

    def validate(self, model: nn.Module) -> Validation:
        """Mean loss and perplexity over the trained pairs, mean BLEU and chrF of greedy translations."""
        assert isinstance(model, Generator)
        losses, compared, samples, notes = [], [], [], list[str]()
        many = ManyTranslator(model, self._data, self._vocabulary, Decoding(search="greedy"))
        for pair, (sources, references) in self._valid.items():
            rows = self._data.validate_rows or len(sources)
            sources, references = sources[:rows], references[:rows]
            translator = many.of(pair)
            targets = self._vocabulary.encode_batch(references)
            loss, left_out = loss_of_fitting(model, translator.source.encode_batch(sources), targets)
            losses.append(loss)
            notes += [f"{pair}: {note}" for note in left_out]
            outputs = written(translator, sources, range(len(sources)), pair).texts
            compared.append(of_lines(outputs, references, sources))
            full = [n for n, source in enumerate(sources) if source.strip()] or [0]
            shown = full[samples_of(len(full), 1)[0]]
            samples.append(Sample(f"{pair}: {sources[shown]}", references[shown], outputs[shown]))
        loss = float(np.mean(losses))
        scores = {"loss": loss, "perplexity": perplexity(loss)}
        chosen = [samples[n] for n in samples_of(len(samples), 4)]
        return Validation(scores, chosen, compared, notes).with_metrics([Bleu(), Chrf()])


class ManyPipeline(Pipeline):
    """The vocabulary of a run.

    Args:
        task: the recipe.
        vocabulary: of all languages.
        training: the pairs; None unless prepared for training.
    """

    task: "Multilingual"

    def __init__(
        self, task: "Multilingual", vocabulary: Vocabulary, training: ManyTraining | None = None
    ) -> None:
        self.task = task
        self.decoding = task.decoding
        self.source = vocabulary
        self.training = training

    def model(self) -> Generator:
        """A new model for this vocabulary and its symbols of languages."""
        size = len(self.source) + self.task.data.symbols
        return self.task.model_config.build(size, size, one_vocabulary=True)

    def rows(self) -> Mapping[str, Sequence[str]]:
        data = self.task.data
        asked = [f"<2{name}>" for name in data.targets] if data.symbols else []
        return named_rows(self.source, self.source, asked)

    def writes(self) -> Vocabulary:
        return self.source

    def common(self) -> Mapping[str, Any]:
        data = self.task.data
        asked = {"prompt": data.prompt, "languages": (data.targets, data.names)}
        return {"vocabulary": pieces(self.source), **asked}

    def predictor(self, model: nn.Module, options: Mapping[str, Any] = {}) -> Predictor[str]:
        """The trained model: `predict(text, "de")`, or `to("de")` for a translator of one direction."""
        many = self._many(model, options)
        if "target" not in options:
            return many
        found = many.to(options["target"], options.get("source"))
        if not options.get("split_sentences"):
            return found
        return Splitting(found, options.get("source") or "", options["target"])

    def directions(self) -> Sequence[tuple[str, str]]:
        pairs = (*self.task.data.pairs, *self.task.data.zero_shot)
        return [(pair.split("-")[0], pair.split("-")[1]) for pair in pairs]

    def translator(self, model: Generator, decoding: Decoding, target: str = "") -> Translator:
        source = self._source_for(target)
        return ManyTranslator(model, self.task.data, self.source, decoding).to(target, source)

    def directed(self, text: str, target: str) -> str:
        source = self._source_for(target)
        return f"{source}-{target}: {text}" if source and text.strip() else text

    def typed(self, sample: str) -> str:
        return sample.partition(": ")[2]

    def _source_for(self, target: str) -> str | None:
        """A source language for this target language, or None."""
        return next((source for source, to in self.directions() if to == target), None)

    def inspected(
        self, model: nn.Module, text: str | None, examples: Examples, options: Mapping[str, Any] = {}
    ) -> Inspection:
        """A text may begin with its direction ("en-de: Click."); by default the first pair is used."""
        from weft.tasks.seq2seq.inspection import of

        data = self.task.data
        text = checked(examples.middle() if text is None else text)
        begin, colon, rest = text.partition(":")
        pair = data.pairs[0]
        if colon and begin.strip() in (*data.pairs, *data.zero_shot):
            pair, text = begin.strip(), rest.strip()
        if not text:
            raise DataError(f"the text after {pair}: is empty; give one sentence, in quotes")
        return of(self._many(model, {}).of(pair), text, data.of(pair))

    def evaluate(
        self,
        model: nn.Module,
        *,
        split: Split = "test",
        data: Path | None = None,
        options: Mapping[str, Any] = {},
    ) -> ManyEvaluation | GivenScores:
        """Every trained pair and every unseen one with its scores and baselines.

        With the option `score`, a file as `--output` writes it (pair TAB translation), the result is
        the log-probability of each of its lines.

        Raises:
            ConfigError: other data was given.
            DataError: a line of the file does not name its pair.
        """
        assert isinstance(model, Generator)
        if data is not None:
            raise ConfigError("--data: a model of many pairs is scored on its recipe's files; leave it out")
        if "score" in options:
            return self._given_scores(model, split, options)
        source, found = self.task.data, {}
        many = self._many(model, options)
        for pair in (*source.pairs, *source.zero_shot):
            rows = list(source.of(pair).open(split))
            found[pair] = evaluate(
                many.of(pair),
                [row.source for row in rows],
                [row.target for row in rows],
                title=source.of(pair).describe(split),
                lowercase=options.get("lowercase", False),
            )
        return together(found, source.zero_shot)

    def _many(self, model: nn.Module, options: Mapping[str, Any]) -> ManyTranslator:
        assert isinstance(model, Generator)
        others = [joined(member, self) for member in options.get("ensemble", ())]
        decoding, scores = self.decoding.with_options(options), bool(options.get("scores"))
        return ManyTranslator(model, self.task.data, self.source, decoding, others=others, scores=scores)

    def _given_scores(self, model: Generator, split: Split, options: Mapping[str, Any]) -> GivenScores:
        labels: list[str] = []
        read: list[list[int]] = []
        kept: list[int] = []
        data = self.task.data
        for pair in (*data.pairs, *data.zero_shot):
            rows = list(data.of(pair).open(split))
            sources = [row.source for row in rows]
            kept += [len(read) + number for number in complete(sources, [row.target for row in rows])]
            read += data.asking(self.source, *pair.split("-")).encode_batch(sources)
            labels += [pair] * len(sources)
        return score_file(
            model,
            len(read),
            self.source.encode_batch,
            lambda numbers, rows: collate_pairs([read[n] for n in numbers], rows),
            options,
            labels=labels,
            kept=kept,
        )

    def exported(self, model: nn.Module) -> ModelExport:
        from weft.tasks.multilingual.exported import exported

        return exported(self, model)
