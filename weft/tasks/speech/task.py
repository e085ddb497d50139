"""M13, speech: a recording becomes the text that is said in it.

Read next: data.py, model.py, predictor.py; ../nn/encoders/pyramid.py.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Literal

import numpy as np
import torch
from torch import nn

from weft import jsonfile
from weft.data.audio import read_paths, read_wav
from weft.data.batching import Batches
from weft.data.report import Report
from weft.errors import DataError, ShapeError, within
from weft.metrics.cer import Cer
from weft.metrics.compared import of_lines
from weft.metrics.wer import Wer
from weft.models import Generator
from weft.nn.heads.head import Loss
from weft.tasks.each import place
from weft.tasks.ready import SPLITS, Ready, Split
from weft.tasks.shared.writing.decoding import EVALUATED, PREDICTED
from weft.tasks.shared.writing.members import Member, joined, pieces
from weft.tasks.shared.writing.scoring import GivenScores, score_file
from weft.tasks.shared.writing.translator import written
from weft.tasks.speech.batch import RecordingBatch, collate_recordings
from weft.tasks.speech.check import check_recordings
from weft.tasks.speech.data import Recording, SpeechData
from weft.tasks.speech.evaluation import SpeechEvaluation, evaluate, loss_of_recordings, spelled
from weft.tasks.speech.model import SpeechModel
from weft.tasks.speech.predictor import Listening, Transcriber
from weft.tasks.task import Progress
from weft.tasks.validation import Sample, Validation, samples_of
from weft.tasks.whole import Answer, Whole, unanswered
from weft.text.vocabulary import Vocabulary


class SavedSpeech(jsonfile.Form):
    """A speech.json."""

    answer: str


class Speech(Whole):
    """Recordings to a transcriber.

    Args:
        data: which recordings, which frames.
        model: which front end, encoder and decoder.
        decoding: how transcripts are searched once the model is trained; validation is greedy.
    """

    sections: ClassVar[Mapping[str, type]] = {"data": SpeechData, "model": SpeechModel, "decoding": Listening}
    evaluation: ClassVar = SpeechEvaluation
    better: ClassVar[Mapping[str, Literal["higher", "lower"]]] = {
        "loss": "lower",
        "wer": "lower",
        "cer": "lower",
    }
    options: ClassVar[Mapping[str, Sequence[str]]] = {
        "predict": PREDICTED,
        "evaluate": EVALUATED,
    }
    keeps: ClassVar[Sequence[str]] = ("tokenizer.json", "speech.json")
    note: ClassVar[str] = "WER and CER are percent of the references' words and characters, of greedy search."

    def __init__(self, *, data: SpeechData, model: SpeechModel, decoding: Listening) -> None:
        self.data = data
        self.parts = model
        self.decoding = decoding
        self.vocabulary: Vocabulary
        self.answer: str
        self._train: list[Recording]
        self._train_tokens: list[list[int]]
        self._valid: list[Recording]

    def about(self) -> str:
        """The list of recordings."""
        return f"speech to text, on {self.data.train}"

    def has(self, split: Split) -> bool:
        """See Task.has."""
        return self.data.has(split)

    def check_ready(self) -> None:
        """See that the lists are there, and that the parts of the model fit together."""
        with within("model"):
            self.parts.build(self.data.sound.bins, 7)
        for split in SPLITS:
            if self.data.has(split):
                self.data.path(split)

    def rehearse(self) -> Loss:
        """Two recordings of half a second under a vocabulary of 19 tokens."""
        frames = torch.randn(2, 50, self.data.sound.bins, generator=torch.Generator().manual_seed(1)).numpy()
        batch = collate_recordings([frames[0], frames[1, :31]], [[5, 6, 7], [8]])
        return self.parts.build(self.data.sound.bins, 19).loss(batch)

    def prepare(self, run: Path, progress: Progress) -> Ready:
        """Listen to everything once; the vocabulary and the most frequent answer are kept in the run."""
        every = list(self.data.recordings(self.data.path("train"), progress, self.data.speeds))
        self._train = [one for one in every if self.data.shorter(one)]
        self._valid = list(self.data.recordings(self.data.path("valid"), progress))
        for name, found in (("train", self._train), ("valid", self._valid)):
            if not found:
                raise DataError("expected recordings that can be used, got none", path=self.data.path(name))  # type: ignore[arg-type]
        texts = [one.text for one in self._train]
        if not (run / "speech.json").exists():
            self.data.vocabulary.learn(texts).save(run / "tokenizer.json")
            answer = Counter(texts).most_common(1)[0][0]
            jsonfile.save(run / "speech.json", {"answer": answer})
        self.open(run)
        self._train_tokens = self.vocabulary.encode_batch(texts)
        hours = sum(len(one.frames) for one in self._train) * self.data.sound.hop / 3600
        progress(
            f"training recordings: {len(self._train):,} of {len(every):,} kept, {hours:.2f} hours "
            f"({len(every) - len(self._train):,} longer than {self.data.max_seconds:g} s)",
            0,
            0,
        )
        return self

    def open(self, run: Path) -> Ready:
        """Read vocabulary and most frequent answer of the run."""
        self.answer = jsonfile.load(run / "speech.json", SavedSpeech, "train the run anew").answer
        self.vocabulary = Vocabulary.load(run / "tokenizer.json")
        return self

    def model(self) -> Generator:
        """A new model for this vocabulary."""
        return self.parts.build(self.data.sound.bins, len(self.vocabulary))

    def writes(self) -> Vocabulary:
        """See Task.writes."""
        return self.vocabulary

    def common(self) -> Mapping[str, Any]:
        """See Task.common."""
        return {"vocabulary": pieces(self.vocabulary), "sound": self.data.sound}

    def plan(self, seed: int) -> Batches:
        """Batches of recordings of like length."""
        frames = np.array([len(one.frames) for one in self._train])
        rows = self.data.batch_rows or None
        return Batches(
            np.stack([frames, frames], 1), max_tokens=self.data.batch_frames, max_rows=rows, seed=seed
        )

    def collate(self, numbers: np.ndarray) -> RecordingBatch:
        """Training recordings by number."""
        return collate_recordings(
            [self._train[n].frames for n in numbers], [self._train_tokens[n] for n in numbers]
        )

    def validate(self, model: nn.Module) -> Validation:
        """Loss over all validation recordings; error rates of greedy transcripts."""
        assert isinstance(model, Generator)
        targets = self.vocabulary.encode_batch([one.text for one in self._valid])
        loss = loss_of_recordings(model, [one.frames for one in self._valid], targets)
        chosen = self._valid[: self.data.validate_rows or None]
        transcriber = Transcriber(model, self.vocabulary, self.data.sound, Listening(search="greedy"))
        outputs = [found[0].text for found in transcriber.transcribe(one.frames for one in chosen)]
        references = [spelled(transcriber, one.text) for one in chosen]
        shown = samples_of(len(chosen))
        samples = [Sample(chosen[n].file.name, references[n], outputs[n]) for n in shown]
        found = Validation({"loss": loss}, samples, [of_lines(outputs, references)])
        return found.with_metrics([Wer(), Cer()])

    def predictor(
        self, model: nn.Module, decoding: Listening | None = None, members: Sequence[Member] = ()
    ) -> Transcriber:
        """The trained model at work: `predict("x.wav")` answers with text.

        Args:
            model: trained.
            decoding: how to search; the recipe's way by default.
            members: opened runs that join the model, as an ensemble.

        Raises:
            ConfigError: a member that reads or writes something else.
        """
        assert isinstance(model, Generator)
        others = [joined(member, self) for member in members]
        how = decoding or self.decoding
        return Transcriber(model, self.vocabulary, self.data.sound, how, others=others)

    def answers(
        self, model: nn.Module, source: Path | BinaryIO, options: Mapping[str, Any]
    ) -> Iterator[Answer]:
        """A transcript for a wav file, or for each line of a list of them."""
        decoding = self.decoding.asked(options)
        assert isinstance(decoding, Listening)
        transcriber = self.predictor(model, decoding, options.get("ensemble", ()))
        for number, path in read_paths(source):
            where = place(source, number)
            try:
                frames = self.data.sound.of(read_wav(path))
                found = next(transcriber.transcribe([frames]))
            except (DataError, ShapeError) as error:
                if path == source:
                    raise
                yield unanswered(where, error, decoding.nbest)
                continue
            yield Answer(written(found, decoding.nbest, bool(options.get("scores"))), (frames, found[0]))

    def evaluate(
        self,
        model: nn.Module,
        *,
        split: Split = "test",
        data: Path | None = None,
        options: Mapping[str, Any] = {},
    ) -> SpeechEvaluation | GivenScores:
        """Error rates on a split beside the most frequent answer; see Task.evaluate.

        With the option `score`, a file, nothing is searched: the log-probability of each of its lines.
        """
        path = data or self.data.path(split)
        recordings = list(self.data.recordings(path))
        if not recordings:
            raise DataError("expected lines FILE TAB TRANSCRIPT, got none", path=path)
        if "score" in options:
            assert isinstance(model, Generator)
            return score_file(
                model,
                len(recordings),
                self.vocabulary.encode_batch,
                lambda numbers, rows: collate_recordings([recordings[n].frames for n in numbers], rows),
                options,
            )
        decoding = self.decoding.asked(options)
        assert isinstance(decoding, Listening)
        transcriber = self.predictor(model, decoding, options.get("ensemble", ()))
        return evaluate(transcriber, recordings, title=f"{path.name}", answer=self.answer)

    @classmethod
    def check(cls, files: Sequence[Path]) -> Report:
        """Lists of recordings, and the recordings."""
        return check_recordings(files)
