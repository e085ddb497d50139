"""One model for many language pairs: a symbol or words name the target language.

An encoder-decoder reads the symbol before the source; a decoder alone (`encoder: null`) reads source or
prompt itself and continues it, as a language model does. It can also translate pairs that were not trained.
Read next: data.py, the data; predictor.py; ../seq2seq/base.py; ../translate/task.py, the same for one pair.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from weft.data.check import check_pairs
from weft.data.mixture import Mixture
from weft.data.parallel import complete
from weft.data.report import Report
from weft.data.store import JoinedStores, TokenStore, content_key
from weft.errors import ConfigError, DataError
from weft.metrics.bleu import Bleu, Chrf
from weft.metrics.scored import of_lines
from weft.models import Generator
from weft.search.offered import Decoding
from weft.tasks.abilities import PairDirection
from weft.tasks.evaluation import Sample, Validation, perplexity, samples_of
from weft.tasks.export import ModelExport, some_of
from weft.tasks.inspection import Inspection
from weft.tasks.multilingual.data import ManyData
from weft.tasks.multilingual.predictor import ManyEvaluation, MultilingualTranslator, together
from weft.tasks.predictor import Json, Predictor
from weft.tasks.seq2seq.base import Pairs, Seq2SeqPipeline, TextPairTask, read_pairs
from weft.tasks.seq2seq.documents import SentenceTranslator
from weft.tasks.seq2seq.encoding import AugmentedPairs, PairBatch, built, collate_pairs, encode_pairs
from weft.tasks.seq2seq.evaluation import BETTER, GivenScores, evaluate, loss_of_pairs, score_file, written
from weft.tasks.seq2seq.sections import (
    DecodingSettings,
    GenerationEvaluationSettings,
    PairModel,
    TranslationEvaluationSettings,
    TranslationSettings,
    data_in,
)
from weft.tasks.seq2seq.translator import Translator
from weft.tasks.task import (
    InspectionSettings,
    PredictExample,
    PredictionSettings,
    Progress,
    Scoring,
    Split,
    Training,
    named_rows,
)
from weft.text.loading import load_vocabulary
from weft.text.vocabulary import EOS, Vocabulary

REPEATED = 100
"""Copies of each prompt in the vocabulary's training text, so that it is split into few pieces."""


@dataclass(frozen=True, kw_only=True)
class DirectedSettings(TranslationSettings):
    """What the user asks of translations of many directions.

    Args:
        source, target: languages; without a target, each input names its direction.
    """

    source: str | None = None
    target: str | None = None


@dataclass(eq=False)
class ManyTraining(Training):
    """The training pairs."""

    data: ManyData
    vocabulary: Vocabulary
    stores: JoinedStores
    valid: Mapping[str, tuple[list[str], list[str]]]

    def __post_init__(self) -> None:
        data, words, tags = self.data, self.vocabulary, 1 if self.data.symbols else 0
        longest = data.max_length, data.max_length
        self._pairs = AugmentedPairs(data.vocabulary, data.augment, words, words, longest, tags=tags)

    def plan(self, seed: int) -> Mixture:
        return Mixture(
            self.stores.lengths,
            temperature=self.data.temperature,
            max_tokens=self.data.batch_tokens,
            max_rows=self.data.batch_rows or None,
            seed=seed,
        )

    def collate(self, numbers: np.ndarray) -> PairBatch:
        return self._pairs.collate([self.stores[number] for number in numbers.tolist()])

    def validate(self, model: Generator) -> Validation:
        """Mean loss and perplexity over the trained pairs, mean BLEU and chrF of greedy translations."""
        losses, compared, samples, notes = [], [], [], list[str]()
        many = MultilingualTranslator(model, self.data, self.vocabulary, Decoding(search="greedy"))
        for pair, (sources, references) in self.valid.items():
            rows = self.data.validate_rows or len(sources)
            sources, references = sources[:rows], references[:rows]
            translator = many.of(pair)
            targets = self.vocabulary.encode_batch(references)
            loss, left_out = loss_of_pairs(model, translator.source.encode_batch(sources), targets)
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


class ManyPipeline(Seq2SeqPipeline[Mapping[str, Pairs]]):
    """The vocabulary of a run."""

    task: "MultilingualTask"

    def __init__(self, task: "MultilingualTask", vocabulary: Vocabulary) -> None:
        super().__init__(task, vocabulary)
        self.source = vocabulary

    def model(self) -> Generator:
        size = len(self.source) + self.task.data.symbols
        return self.task.model_config.build(size, size, one_vocabulary=True)

    def rows(self) -> Mapping[str, Sequence[str]]:
        data = self.task.data
        asked = [f"<2{name}>" for name in data.targets] if data.symbols else []
        return named_rows(self.source, self.source, asked)

    def common(self) -> Mapping[str, object]:
        data = self.task.data
        asked = {"prompt": data.prompt, "languages": (data.targets, data.names)}
        return {**super().common(), **asked}

    def predictor(self, model: Generator, settings: PredictionSettings | None = None) -> Predictor[str]:
        """The trained model: `predict(text, "de")`, or `to("de")` for a translator of one direction."""
        asked = DirectedSettings.of(settings)
        many = self._many(model, asked)
        if asked.target is None:
            return many
        found = many.to(asked.target, asked.source)
        return SentenceTranslator(found, asked.source or "", asked.target) if asked.split_sentences else found

    def directions(self) -> Sequence[tuple[str, str]]:
        pairs = (*self.task.data.pairs, *self.task.data.zero_shot)
        return [(pair.split("-")[0], pair.split("-")[1]) for pair in pairs]

    def translator(self, model: Generator, decoding: Decoding, target: str = "") -> Translator:
        source = self._source_for(target)
        return MultilingualTranslator(model, self.task.data, self.source, decoding).to(target, source)

    def with_direction(self, text: str, target: str) -> str:
        source = self._source_for(target)
        return f"{source}-{target}: {text}" if source and text.strip() else text

    def without_direction(self, sample: str) -> str:
        return sample.partition(": ")[2]

    def _source_for(self, target: str) -> str | None:
        return next((source for source, to in self.directions() if to == target), None)

    def inspection(self, model: Generator, settings: InspectionSettings) -> Inspection:
        """A text may begin with its direction ("en-de: Click."); by default the first pair is used."""
        from weft.tasks.seq2seq.inspection import inspect_translation

        data = self.task.data
        text = settings.input()
        begin, colon, rest = text.partition(":")
        pair = data.pairs[0]
        if colon and begin.strip() in (*data.pairs, *data.zero_shot):
            pair, text = begin.strip(), rest.strip()
        if not text:
            raise DataError(f"the text after {pair}: is empty; give one sentence, in quotes")
        return inspect_translation(self._many(model, DecodingSettings()).of(pair), text, data.of(pair))

    def examples_of(self, split: Split, data: Path | None) -> Mapping[str, Pairs]:
        """The pairs of every direction, trained ones first."""
        if data is not None:
            raise ConfigError("--data: a model of many pairs is scored on its recipe's files; leave it out")
        own = self.task.data
        return {pair: read_pairs(own.of(pair).open(split)) for pair in (*own.pairs, *own.zero_shot)}

    def scores(self, model: Generator, examples: Mapping[str, Pairs], asked: Scoring) -> ManyEvaluation:
        how, own = asked.settings, self.task.data
        many = self._many(model, how)
        found = {
            pair: evaluate(
                many.of(pair), *pairs, title=own.of(pair).describe(asked.split), lowercase=how.lowercase
            )
            for pair, pairs in examples.items()
        }
        return together(found, own.zero_shot)

    def given_scores(
        self, model: Generator, examples: Mapping[str, Pairs], settings: GenerationEvaluationSettings
    ) -> GivenScores:
        """The scores of a file as `--output` writes it (pair TAB translation)."""
        labels: list[str] = []
        read: list[list[int]] = []
        kept: list[int] = []
        for pair, pairs in examples.items():
            kept += [len(read) + number for number in complete(*pairs)]
            read += self.task.data.asking(self.source, *pair.split("-")).encode_batch(pairs.sources)
            labels += [pair] * len(pairs.sources)
        return score_file(
            model,
            len(read),
            self.source.encode_batch,
            lambda numbers, rows: collate_pairs([read[n] for n in numbers], rows),
            settings,
            labels=labels,
            kept=kept,
        )

    def _many(self, model: Generator, settings: DecodingSettings) -> MultilingualTranslator:
        return MultilingualTranslator(model, self.task.data, self.source, **self.searching(settings))

    def model_export(self, model: Generator) -> ModelExport:
        """The program takes the target language as an option."""
        from weft.tasks.seq2seq.graphs import export_rewriter

        data, vocabulary = self.task.data, self.source
        directions: dict[str, Json] = {}
        for source, target in self.directions():
            asking = data.asking(vocabulary, source, target)
            directions[f"{source}-{target}"] = {"first": list(asking.first), "prompt": asking.prompt}
        form = export_rewriter(
            model,
            vocabulary,
            vocabulary,
            self.decoding,
            symbols=data.symbols,
            keeps="parts",
            more={"directions": directions},
        )
        source, target = self.directions()[0]
        options = {**form.options, "target": target, "source": source}
        return form._replace(examples=self._examples, options=options)

    def _examples(self, count: int) -> Sequence[str]:
        """Validation sources of the first direction, or single pieces where the data is missing."""

        def valid() -> Iterator[str]:
            rows = self.task.data.of(self.task.data.pairs[0]).open("valid")
            return (row.source for row in islice(rows, 10 * count) if row.source.strip())

        numbers = range(EOS + 1, EOS + 1 + count)
        return some_of(valid, count, lambda: [self.source.decode([number]) for number in numbers])


class MultilingualTask(TextPairTask):
    """Trains one translator on parallel text of several pairs."""

    sections: ClassVar = {"data": ManyData, "model": PairModel, "decoding": Decoding}
    evaluation: ClassVar = ManyEvaluation
    better: ClassVar = BETTER
    prediction_settings: ClassVar = DirectedSettings
    evaluation_settings: ClassVar = TranslationEvaluationSettings
    note: ClassVar[str] = (
        "BLEU and chrF are means over the trained pairs of sacrebleu's scores on detokenised greedy output."
    )

    data: ManyData
    model_config: PairModel

    def __init__(self, *, data: ManyData, model: PairModel, decoding: Decoding) -> None:
        if decoding.shortlist:
            raise ConfigError("decoding.shortlist: needs a model of one direction; leave it out")
        if decoding.terms == "annotate":
            raise ConfigError("decoding.terms: annotate needs a model of one direction; leave it out")
        super().__init__(data=data, model=model, decoding=decoding)

    def about(self) -> str:
        return f"{', '.join(self.data.pairs)}, on {self.data.corpus or self.data.train}"

    def predict_example(self, sources: Sequence[str]) -> PredictExample | None:
        pair, colon, line = (sources[len(sources) // 2] if sources else "").partition(": ")
        found = super().predict_example([line] if colon else [])
        source, target = (pair if colon else self.data.pairs[0]).split("-")
        return found and found._replace(words=("--source", source, "--target", target))

    def small_model(self) -> Generator:
        return self.model_config.build(19, 19, one_vocabulary=True)

    def small_batch(self) -> PairBatch:
        return collate_pairs([[17, 5, 6, 7], [18, 8]], [[9, 10], [11, 12, 13]])

    def corpora(self) -> Sequence[PairDirection]:
        every = (*self.data.pairs, *self.data.zero_shot)
        return [PairDirection(pair, self.data.of(pair), pair in self.data.pairs) for pair in every]

    def data_in(self, folder: Path, train: str, *, tested: bool) -> Mapping[str, Any]:
        return data_in(folder, train, tested=tested, inside="{pair}/")

    def learn(self, corpus: None, run: Path, progress: Progress) -> None:
        progress("learning the vocabulary", 0, None)
        self.data.vocabulary.learn(_text(self.data)).save(self.saved(run))

    def open(self, run: Path) -> ManyPipeline:
        return ManyPipeline(self, load_vocabulary(self.saved(run)))

    def training(self, corpus: None, pipeline: ManyPipeline, run: Path, progress: Progress) -> ManyTraining:
        data, vocabulary = self.data, pipeline.source
        text = self.saved(run).read_text("utf-8")
        stores = JoinedStores([_stored(data, pair, text, vocabulary, progress) for pair in data.pairs])
        valid = {pair: data.of(pair).complete("valid") for pair in data.pairs}
        return ManyTraining(data, vocabulary, stores, valid)

    @classmethod
    def check(cls, files: Sequence[Path]) -> Report:
        return check_pairs(*files)


def _text(data: ManyData) -> Iterator[str]:
    """Each language once, from the first pair that has it, and the words of the prompts."""
    seen: set[str] = set()
    for pair in data.pairs:
        source, target = pair.split("-")
        for _, *sides in data.of(pair).open("train"):
            for language, side in zip((source, target), sides, strict=True):
                if language not in seen:
                    yield side
        seen |= {source, target}
    if data.prompt is not None:
        for pair in (*data.pairs, *data.zero_shot):
            source, target = pair.split("-")
            names = {"source": data.name(source), "target": data.name(target)}
            for _ in range(REPEATED):
                yield data.prompt.replace("{text}", "").format(**names)


def _stored(data: ManyData, pair: str, text: str, vocabulary: Vocabulary, progress: Progress) -> TokenStore:
    """The token store of a pair, whose vocabulary is saved as this text; an existing one is opened."""
    train, asking = data.of(pair).open("train"), data.asking(vocabulary, *pair.split("-"))
    key = content_key(
        train.files,
        vocabularies=[text],
        max_length=data.max_length,
        languages=pair.split("-"),
        asking=[data.prompt, data.names, data.targets],
        **({"hold_out": data.hold_out} if data.hold_out else {}),
    )
    encode = partial(encode_pairs, asking, vocabulary)
    store = built(key, train, encode, data.max_length, progress, f" {pair}")
    progress(f"{pair}: {store.report['kept']:,} of {store.report['pairs']:,} training pairs kept", 0, 0)
    return store
