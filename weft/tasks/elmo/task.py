"""ELMo: a forward and a backward language model over letters, whose layers are words in context.

A tagger uses it with `model.embedding.contextual: RUN`. Read next: ../../nn/embed/contextual.py;
../running_text/base.py, predictor.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, NamedTuple

import numpy as np

from weft.data.batching import Batches
from weft.data.plain import PlainText, no_words
from weft.metrics.metric import ItemKind
from weft.nn.embed.contextual import BothWays, Sentences
from weft.nn.heads.head import Loss
from weft.setting_types import Bounds, DropoutRate, Features, Section
from weft.tasks.elmo.predictor import (
    ContextComparer,
    collate,
    evaluate,
    export_contexts,
    inspect_sentences,
    nats_by_word,
)
from weft.tasks.evaluation import Sample, Validation, perplexity, samples_of
from weft.tasks.export import ModelExport
from weft.tasks.inspection import Inspection
from weft.tasks.running_text.base import (
    ContextEvaluation,
    ProseData,
    RunningTextPipeline,
    RunningTextTask,
    check_lines,
    learn_lexicon,
    line_batches,
    sentences_of,
)
from weft.tasks.running_text.base import sentences as split_sentences
from weft.tasks.task import (
    ContextSource,
    InspectionSettings,
    PredictExample,
    PredictionSettings,
    Progress,
    Scoring,
    Split,
    Training,
)
from weft.tasks.vocabulary import Lexicon
from weft.wording import plural

LEXICON = "tokenizer.elmo.json"


@dataclass(frozen=True, kw_only=True)
class ElmoModel(Section):
    """Two language models, forward and backward.

    Args:
        size: H, of every layer in each direction.
        num_layers: L.
        letter_size: features of a letter.
        spelled: number of filters over letters.
        residual: layers above the first add their input to their output.
        dropout: of the input of every layer and of the softmax.
    """

    size: Features = 256
    num_layers: Annotated[int, Bounds(ge=1, le=10_000)] = 2
    letter_size: Features = 16
    spelled: Features = 128
    residual: bool = True
    dropout: DropoutRate = 0.1

    def build(self, num_words: int, num_letters: int) -> BothWays:
        """A new model."""
        return BothWays(
            num_words,
            num_letters,
            self.size,
            num_layers=self.num_layers,
            letter_size=self.letter_size,
            spelled=self.spelled,
            residual=self.residual,
            dropout=self.dropout,
        )


class TextSentences(NamedTuple):
    """Sentences of words."""

    train: list[list[str]]
    valid: list[list[str]]


@dataclass(eq=False)
class ElmoTraining(Training):
    """The text of a training."""

    data: ProseData
    lexicon: Lexicon
    train: list[list[str]]
    valid: list[list[str]]

    def plan(self, seed: int) -> Batches:
        return line_batches(self.data, self.train, seed)

    def collate(self, numbers: np.ndarray) -> Sentences:
        return collate(self.lexicon, [self.train[int(number)] for number in numbers])

    def validate(self, model: BothWays) -> Validation:
        both = nats_by_word(model, self.lexicon, self.valid)
        ahead, back = (float(np.concatenate(words).mean()) for words in both)
        scores = {"loss": (ahead + back) / 2, "forward": perplexity(ahead), "backward": perplexity(back)}
        comparer, samples = ContextComparer(model, self.lexicon, self.data), []
        for words in (self.valid[number] for number in samples_of(len(self.valid))):
            best = [comparer.word(int(number)) for number in comparer.ahead(words).argmax(1)]
            samples.append(Sample(" ".join(words), "", " ".join(best)))
        return Validation(scores, samples)


@dataclass(eq=False)
class ElmoPipeline(RunningTextPipeline):
    """The words and letters of a run."""

    task: "ElmoTask"
    lexicon: Lexicon

    def model(self) -> BothWays:
        return self.task.model_config.build(self.lexicon.num_words, self.lexicon.num_letters)

    def rows(self) -> Mapping[str, Sequence[str]]:
        found = self.lexicon.rows("")
        words = next(iter(found.values()))
        return {**found, **dict.fromkeys(("head.weight", "head.bias"), words)}

    def predictor(self, model: BothWays, settings: PredictionSettings | None = None) -> ContextComparer:
        """The trained model: `vectors("a text")`, `compare("bank", "one sentence", "another")`."""
        return ContextComparer(model, self.lexicon, self.task.data)

    def scores(self, model: BothWays, text: PlainText, title: str, asked: Scoring) -> ContextEvaluation:
        source = self.task.data
        some = split_sentences(source, text)
        if not some.parts:
            raise no_words(title)
        return evaluate(model, self.lexicon, some, title=title, length=source.length)

    def contextual(self, model: BothWays) -> ContextSource:
        return ContextSource(lambda sentences: self.lexicon.spell(sentences)[0], model)

    def inspection(self, model: BothWays, settings: InspectionSettings) -> Inspection:
        return inspect_sentences(self.predictor(model), settings.input(), self.valid_texts)

    def model_export(self, model: BothWays) -> ModelExport:
        return export_contexts(self.predictor(model), self.valid_texts)


class ElmoTask(RunningTextTask[ElmoModel]):
    """A model of words in context, from lines of words."""

    sections: ClassVar = {"data": ProseData, "model": ElmoModel}
    evaluation: ClassVar = ContextEvaluation
    better: ClassVar = {"loss": "lower", "forward": "lower", "backward": "lower"}
    note: ClassVar[str] = (
        "forward and backward are perplexities per word with the full softmax, including the end (or the "
        "beginning) of each line; all unknown words are one word; loss is the mean of both in nats."
    )

    @property
    def validation_offers(self) -> tuple[ItemKind, ...]:
        return ()

    def about(self) -> str:
        return f"words in context, on {self.data.describe('train')}"

    def predict_example(self, sources: Sequence[str]) -> PredictExample | None:
        found = super().predict_example(sources)
        assert found is not None
        word = found.line.split()[-1]  # in its sentence and by itself
        return PredictExample("\t".join([word, found.line, word]))

    def check_ready(self) -> None:
        check_lines(self.data, words=True)
        super().check_ready()

    def small_model(self) -> BothWays:
        return self.model_config.build(4, 4)  # the words and letters of a, b and ab

    def rehearse(self) -> Loss:
        some = [["a", "b", "ab"], ["b"]]
        lexicon = learn_lexicon(some, min_count=1)
        return self.model_config.build(lexicon.num_words, lexicon.num_letters).loss(collate(lexicon, some))

    def read(self, progress: Progress) -> TextSentences:
        progress("reading the text", 0, None)
        found = TextSentences(sentences_of(self.data, "train"), sentences_of(self.data, "valid"))
        parts: tuple[tuple[Split, list[list[str]]], ...] = (("train", found.train), ("valid", found.valid))
        for split, some in parts:
            if not some:
                raise no_words(self.data.describe(split))
        return found

    def saved(self, run: Path) -> Path:
        return run / LEXICON

    def learn(self, corpus: TextSentences, run: Path, progress: Progress) -> None:
        learn_lexicon(corpus.train, min_count=self.data.vocabulary.min_count).save(run / LEXICON)

    def training(
        self, corpus: TextSentences, pipeline: ElmoPipeline, run: Path, progress: Progress
    ) -> ElmoTraining:
        words = f"{plural(sum(map(len, corpus.train)), 'word')} in {plural(len(corpus.train), 'line')}"
        predicted = f"{len(pipeline.lexicon.words):,} different ones are predicted"
        progress(f"training text: {words}, {predicted}", 0, 0)
        return ElmoTraining(self.data, pipeline.lexicon, *corpus)

    def open(self, run: Path) -> ElmoPipeline:
        return ElmoPipeline(self, Lexicon.load(run / LEXICON, "the task elmo"))
