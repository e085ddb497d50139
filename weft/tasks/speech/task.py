"""Speech: transcribes recordings.

Read next: data.py, predictor.py; ../seq2seq/base.py; ../../nn/encoders/encoder.py.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np
import torch

from weft.data.audio import SOUNDS, SPOKEN, read_spoken
from weft.data.batching import Batches
from weft.data.listed import first_texts
from weft.errors import DataError
from weft.metrics.scored import of_lines
from weft.metrics.wer import Cer, Wer
from weft.models import Generator
from weft.nn.decoders.decoder import Decoder
from weft.nn.decoders.recurrent import RecurrentDecoder
from weft.nn.embed.audio import Frames
from weft.nn.embed.tokens import Tokens
from weft.nn.encoders.encoder import Encoder, Pyramid
from weft.nn.heads.categorical import Categorical
from weft.setting_types import DropoutRate, Features, Section, Share, Whole
from weft.store import jsonfile
from weft.tasks.evaluation import Sample, Validation, mean_loss, samples_of
from weft.tasks.export import ModelExport
from weft.tasks.inspection import Inspection
from weft.tasks.seq2seq.base import VOCABULARY, Seq2SeqPipeline, Seq2SeqTask
from weft.tasks.seq2seq.encoding import PairBatch
from weft.tasks.seq2seq.evaluation import GivenScores, score_file
from weft.tasks.seq2seq.inspection import plain_beam
from weft.tasks.seq2seq.sections import DecodingSettings, GenerationEvaluationSettings, GenerationSettings
from weft.tasks.speech.data import Recording, SpeechData, check_recordings, collate_recordings
from weft.tasks.speech.predictor import (
    SpeechDecoding,
    SpeechEvaluation,
    Transcriber,
    evaluate,
    export_transcriber,
    inspect_recording,
    spelled,
)
from weft.tasks.task import (
    InspectionSettings,
    PredictExample,
    PredictionSettings,
    Progress,
    Scoring,
    Split,
    Training,
)
from weft.text.loading import load_vocabulary
from weft.text.vocabulary import Vocabulary


@dataclass(frozen=True, kw_only=True)
class FrontSettings(Section):
    """How frames are mapped to vectors; see nn/embed/audio.py.

    Args:
        size: features of a frame's vector.
        masks: number of masked stretches of time, and of bands, per recording in training.
        longest, widest: maximum length of these stretches, in frames and in bands.
        dropout: share of features set to zero in training.
    """

    size: Features = 80
    masks: Whole = 1
    longest: Whole = 20
    widest: Whole = 8
    dropout: DropoutRate = 0.0


@dataclass(frozen=True, kw_only=True)
class SpeechModel(Section):
    """Listen, attend and spell, or any other encoder and decoder.

    Args:
        front: see FrontSettings.
        encoder: a part of nn/encoders; pyramid and strided shorten the sequence of frames.
        decoder: a part of nn/decoders.
        embedding: features of a character's vector.
        dropout: on the characters' vectors.
        smoothing: share of each target's probability spread over the vocabulary in training.
    """

    front: FrontSettings = field(default_factory=FrontSettings)
    encoder: Callable[..., Encoder] = Pyramid
    decoder: Callable[..., Decoder] = RecurrentDecoder
    embedding: Features = 64
    dropout: DropoutRate = 0.0
    smoothing: Share = 0.1

    def build(self, bins: int, num_tokens: int) -> Generator:
        """A new model for frames of `bins` bands and a vocabulary of `num_tokens` tokens."""
        front = self.front
        frames = Frames(
            bins,
            front.size,
            masks=front.masks,
            longest=front.longest,
            widest=front.widest,
            dropout=front.dropout,
        )
        encoder = self.encoder(front.size)
        embed = Tokens(num_tokens, self.embedding, dropout=self.dropout)
        decoder = self.decoder(self.embedding, encoder)
        head = Categorical(decoder.size, num_tokens, smoothing=self.smoothing)
        return Generator(embed, decoder, head, encoder=encoder, source_embed=frames)


KEPT = "speech.json"
ROWS = 32  # recordings per step while a loss is computed


class SavedSpeech(jsonfile.Schema):
    """A speech.json."""

    answer: str
    seconds: float | None = None  # of the longest training recording


class Recordings(NamedTuple):
    """Recordings to train on and to validate with."""

    train: list[Recording]
    valid: list[Recording]
    longer: int  # training recordings that are left out because of their length


@dataclass(eq=False)
class SpeechTraining(Training):
    """The training recordings."""

    data: SpeechData
    vocabulary: Vocabulary
    train: Sequence[Recording]
    valid: Sequence[Recording]

    def __post_init__(self) -> None:
        self._tokens = self.vocabulary.encode_batch([one.text for one in self.train])

    def plan(self, seed: int) -> Batches:
        frames = np.array([len(one.frames) for one in self.train])
        most, rows = self.data.batch_frames, self.data.batch_rows or None
        return Batches(np.stack([frames, frames], 1), max_tokens=most, max_rows=rows, seed=seed)

    def collate(self, numbers: np.ndarray) -> PairBatch:
        return collate_recordings([self.train[n].frames for n in numbers], [self._tokens[n] for n in numbers])

    def validate(self, model: Generator) -> Validation:
        targets = self.vocabulary.encode_batch([one.text for one in self.valid])
        order = sorted(range(len(targets)), key=lambda n: len(self.valid[n].frames))
        parts = (order[at : at + ROWS] for at in range(0, len(order), ROWS))
        loss = mean_loss(
            model,
            (
                collate_recordings([self.valid[n].frames for n in part], [targets[n] for n in part])
                for part in parts
            ),
        )
        chosen = self.valid[: self.data.validate_rows or None]
        transcriber = Transcriber(model, self.vocabulary, self.data.sound, SpeechDecoding(search="greedy"))
        outputs = [found[0].text for found in transcriber.transcribe(one.frames for one in chosen)]
        references = [spelled(transcriber, one.text) for one in chosen]
        shown = samples_of(len(chosen))
        samples = [Sample(chosen[n].file.name, references[n], outputs[n]) for n in shown]
        found = Validation({"loss": loss}, samples, [of_lines(outputs, references)])
        return found.with_metrics([Wer(), Cer()])


@dataclass(eq=False)
class SpeechPipeline(Seq2SeqPipeline[Sequence[Recording]]):
    """Vocabulary and most frequent answer of a run."""

    task: "SpeechTask"
    answer: str
    seconds: float | None = None  # of the longest training recording

    def model(self) -> Generator:
        return self.task.model_config.build(self.task.data.sound.bins, len(self.target))

    def common(self) -> Mapping[str, object]:
        return {**super().common(), "sound": self.task.data.sound}

    def predictor(self, model: Generator, settings: PredictionSettings | None = None) -> Transcriber:
        """The trained model; `predict("x.wav")` returns text."""
        how = self.searching(DecodingSettings.of(settings))
        longest = self.seconds or self.task.data.max_seconds
        return Transcriber(model, self.target, self.task.data.sound, longest=longest, **how)

    def examples_of(self, split: Split, data: Path | None) -> Sequence[Recording]:
        own = self.task.data
        recordings = list(own.recordings(own.listed(split) if data is None else read_spoken(data)))
        if not recordings:
            raise DataError("expected lines FILE TAB TRANSCRIPT, got none", path=data or own.find(split))
        return recordings

    def scores(self, model: Generator, examples: Sequence[Recording], asked: Scoring) -> SpeechEvaluation:
        transcriber = self.predictor(model, asked.settings)
        return evaluate(transcriber, examples, title=asked.title(self.task.data), answer=self.answer)

    def given_scores(
        self, model: Generator, examples: Sequence[Recording], settings: GenerationEvaluationSettings
    ) -> GivenScores:
        return score_file(
            model,
            len(examples),
            self.target.encode_batch,
            lambda numbers, rows: collate_recordings([examples[n].frames for n in numbers], rows),
            settings,
        )

    def inspection(self, model: Generator, settings: InspectionSettings) -> Inspection:
        """The text is the name of a recording; without one, a validation recording is used."""
        text = settings.text
        if text is None:
            path = next(self.task.data.listed("valid")).file
        elif not text.strip() or len(text) > 1000 or not Path(text).is_file():
            raise DataError(f"{text[:60]}: no such file; give a recording")
        else:
            path = Path(text)
        sound = self.task.data.sound
        transcriber = Transcriber(model, self.target, sound, plain_beam(self.decoding))
        return inspect_recording(transcriber, transcriber._read(path), path.name)

    def model_export(self, model: Generator) -> ModelExport:
        return export_transcriber(self.predictor(model), self.task.data)


class SpeechTask(Seq2SeqTask):
    """Trains a transcriber of recordings."""

    sections: ClassVar = {"data": SpeechData, "model": SpeechModel, "decoding": SpeechDecoding}
    evaluation: ClassVar = SpeechEvaluation
    better: ClassVar = {"loss": "lower", "wer": "lower", "cer": "lower"}
    prediction_settings: ClassVar = GenerationSettings
    evaluation_settings: ClassVar = GenerationEvaluationSettings
    keeps: ClassVar[Sequence[str]] = (VOCABULARY, KEPT)
    suffixes: ClassVar[Sequence[str]] = SOUNDS
    check = staticmethod(check_recordings)
    note: ClassVar[str] = (
        "WER and CER are percent of the references' words and characters, with greedy search."
    )

    data: SpeechData
    model_config: SpeechModel

    def about(self) -> str:
        return f"speech to text, on {self.data.train}"

    def predict_example(self, sources: Sequence[str]) -> PredictExample | None:
        return PredictExample("", [str(next(self.data.listed("valid")).file)])

    def small_model(self) -> Generator:
        return self.model_config.build(self.data.sound.bins, 19)

    def small_batch(self) -> PairBatch:
        frames = torch.randn(2, 50, self.data.sound.bins, generator=torch.Generator().manual_seed(1)).numpy()
        return collate_recordings([frames[0], frames[1, :31]], [[5, 6, 7], [8]])

    def read(self, progress: Progress) -> Recordings:
        data = self.data
        every = list(data.recordings(data.listed("train"), progress, data.speeds))
        train = [one for one in every if data.shorter(one)]
        valid = list(data.recordings(data.listed("valid"), progress))
        splits: list[Split] = ["train", "valid"]
        for name, found in zip(splits, (train, valid), strict=True):
            if not found:
                raise DataError("expected recordings that can be used, got none", path=data.find(name))
        return Recordings(train, valid, len(every) - len(train))

    def learn(self, corpus: Recordings, run: Path, progress: Progress) -> None:
        texts = [one.text for one in corpus.train]
        self.data.vocabulary.learn(texts).save(run / VOCABULARY)
        seconds = max(len(one.frames) for one in corpus.train) * self.data.sound.hop
        jsonfile.save(run / KEPT, {"answer": Counter(texts).most_common(1)[0][0], "seconds": seconds})

    def saved(self, run: Path) -> Path:
        return run / KEPT

    def open(self, run: Path) -> SpeechPipeline:
        saved = jsonfile.load(run / KEPT, SavedSpeech, "train the run again")
        return SpeechPipeline(self, load_vocabulary(run / VOCABULARY), saved.answer, saved.seconds)

    def training(
        self, corpus: Recordings, pipeline: SpeechPipeline, run: Path, progress: Progress
    ) -> SpeechTraining:
        data, train = self.data, corpus.train
        hours = sum(len(one.frames) for one in train) * data.sound.hop / 3600
        progress(
            f"training recordings: {len(train):,} of {len(train) + corpus.longer:,} kept, {hours:.2f} hours "
            f"({corpus.longer:,} longer than {data.max_seconds:g} s)",
            0,
            0,
        )
        return SpeechTraining(data, pipeline.target, train, corpus.valid)

    @classmethod
    def knows(cls, file: Path) -> bool:
        """A list whose first column names recordings."""
        return bool(first_texts(file, SPOKEN))
