"""Speech, made ready: vocabulary and most frequent answer of a run, and the recordings while it is trained.

Read next: predictor.py; evaluation.py.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import nn

from weft.data.batching import Batches
from weft.errors import DataError
from weft.metrics.cer import Cer
from weft.metrics.compared import of_lines
from weft.metrics.wer import Wer
from weft.models import Generator
from weft.tasks.exported import ModelExport
from weft.tasks.inspection import Examples, Inspection
from weft.tasks.seq2seq.pairs import joined, pieces
from weft.tasks.seq2seq.scoring import GivenScores, score_file
from weft.tasks.speech.batch import RecordingBatch, collate_recordings
from weft.tasks.speech.data import Recording, SpeechData
from weft.tasks.speech.evaluation import SpeechEvaluation, evaluate, loss_of_recordings, spelled
from weft.tasks.speech.predictor import Listening, Transcriber
from weft.tasks.task import Pipeline, Split, Training, named_rows
from weft.tasks.validation import Sample, Validation, samples_of
from weft.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from weft.tasks.speech.task import Speech


class SpeechTraining(Training):
    """The training recordings.

    Args:
        data: the recipe's section `data`.
        vocabulary: of the transcripts.
        train, valid: recordings with their transcripts.
    """

    def __init__(
        self,
        data: SpeechData,
        vocabulary: Vocabulary,
        train: Sequence[Recording],
        valid: Sequence[Recording],
    ) -> None:
        self._data = data
        self._vocabulary = vocabulary
        self._train = train
        self._valid = valid
        self._tokens = vocabulary.encode_batch([one.text for one in train])

    def plan(self, seed: int) -> Batches:
        """Batches of recordings of similar length."""
        frames = np.array([len(one.frames) for one in self._train])
        most, rows = self._data.batch_frames, self._data.batch_rows or None
        return Batches(np.stack([frames, frames], 1), max_tokens=most, max_rows=rows, seed=seed)

    def collate(self, numbers: np.ndarray) -> RecordingBatch:
        return collate_recordings(
            [self._train[n].frames for n in numbers], [self._tokens[n] for n in numbers]
        )

    def validate(self, model: nn.Module) -> Validation:
        """Loss on all validation recordings; error rates of greedy transcripts."""
        assert isinstance(model, Generator)
        targets = self._vocabulary.encode_batch([one.text for one in self._valid])
        loss = loss_of_recordings(model, [one.frames for one in self._valid], targets)
        chosen = self._valid[: self._data.validate_rows or None]
        transcriber = Transcriber(model, self._vocabulary, self._data.sound, Listening(search="greedy"))
        outputs = [found[0].text for found in transcriber.transcribe(one.frames for one in chosen)]
        references = [spelled(transcriber, one.text) for one in chosen]
        shown = samples_of(len(chosen))
        samples = [Sample(chosen[n].file.name, references[n], outputs[n]) for n in shown]
        found = Validation({"loss": loss}, samples, [of_lines(outputs, references)])
        return found.with_metrics([Wer(), Cer()])


class SpeechPipeline(Pipeline):
    """Vocabulary and most frequent answer of a run.

    Args:
        task: the recipe.
        vocabulary: of the transcripts.
        answer: the most frequent transcript of the training list, for the baseline.
        training: the recordings; None unless prepared for training.
    """

    task: "Speech"

    def __init__(
        self,
        task: "Speech",
        vocabulary: Vocabulary,
        answer: str,
        training: SpeechTraining | None = None,
    ) -> None:
        self.task = task
        self.vocabulary = vocabulary
        self.answer = answer
        self.training = training

    def model(self) -> Generator:
        return self.task.model_config.build(self.task.data.sound.bins, len(self.vocabulary))

    def rows(self) -> Mapping[str, Sequence[str]]:
        return named_rows(self.vocabulary)

    def writes(self) -> Vocabulary:
        return self.vocabulary

    def common(self) -> Mapping[str, Any]:
        return {"vocabulary": pieces(self.vocabulary), "sound": self.task.data.sound}

    def predictor(self, model: nn.Module, options: Mapping[str, Any] = {}) -> Transcriber:
        """The trained model; `predict("x.wav")` returns text.

        Raises:
            ConfigError: a member of the ensemble reads or writes something else.
        """
        assert isinstance(model, Generator)
        decoding = self.task.decoding.with_options(options)
        assert isinstance(decoding, Listening)
        others = [joined(member, self) for member in options.get("ensemble", ())]
        sound, scores = self.task.data.sound, bool(options.get("scores"))
        return Transcriber(model, self.vocabulary, sound, decoding, others=others, scores=scores)

    def evaluate(
        self,
        model: nn.Module,
        *,
        split: Split = "test",
        data: Path | None = None,
        options: Mapping[str, Any] = {},
    ) -> SpeechEvaluation | GivenScores:
        """Error rates on a split, next to the most frequent answer; see Pipeline.evaluate.

        With the option `score`, a file, the result is the log-probability of each of its lines instead.
        """
        path = data or self.task.data.path(split)
        recordings = list(self.task.data.recordings(path))
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
        return evaluate(self.predictor(model, options), recordings, title=path.name, answer=self.answer)

    def inspected(
        self, model: nn.Module, text: str | None, examples: Examples, options: Mapping[str, Any] = {}
    ) -> Inspection:
        from weft.tasks.speech.inspected import inspected

        return inspected(self, model, text, examples, options)

    def exported(self, model: nn.Module) -> ModelExport:
        from weft.tasks.speech.exported import exported

        return exported(self, model)
