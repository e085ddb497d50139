"""Speech: transcribes recordings.

Read next: data.py, model.py, predictor.py; ../nn/encoders/pyramid.py.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal

import torch

from weft.data.report import Report
from weft.errors import DataError, within
from weft.nn.heads.head import Loss
from weft.store import jsonfile
from weft.tasks.seq2seq.decoding import EVALUATED, PREDICTED
from weft.tasks.speech.batch import collate_recordings
from weft.tasks.speech.check import check_recordings
from weft.tasks.speech.data import SpeechData
from weft.tasks.speech.evaluation import SpeechEvaluation
from weft.tasks.speech.model import SpeechModel
from weft.tasks.speech.predictor import Listening
from weft.tasks.speech.ready import SpeechPipeline, SpeechTraining
from weft.tasks.task import SPLITS, Progress, Split, Task
from weft.text.loading import load_vocabulary
from weft.text.vocabulary import Vocabulary

VOCABULARY, KEPT = "tokenizer.json", "speech.json"


class SavedSpeech(jsonfile.Form):
    """A speech.json."""

    answer: str


class Speech(Task):
    """Trains a transcriber of recordings.

    Args:
        data: recordings and frames.
        model: front end, encoder and decoder.
        decoding: search settings for the trained model; validation is greedy.
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
    keeps: ClassVar[Sequence[str]] = (VOCABULARY, KEPT)
    note: ClassVar[str] = (
        "WER and CER are percent of the references' words and characters, with greedy search."
    )

    def __init__(self, *, data: SpeechData, model: SpeechModel, decoding: Listening) -> None:
        self.data = data
        self.model_config = model
        self.decoding = decoding

    def about(self) -> str:
        """The list of recordings."""
        return f"speech to text, on {self.data.train}"

    def has(self, split: Split) -> bool:
        return self.data.has(split)

    def check_ready(self) -> None:
        """Check that the lists exist, and that the parts of the model fit together."""
        with within("model"):
            self.model_config.build(self.data.sound.bins, 7)
        for split in SPLITS:
            if self.data.has(split):
                self.data.path(split)

    def rehearse(self) -> Loss:
        """Two recordings of half a second, with a vocabulary of 19 tokens."""
        frames = torch.randn(2, 50, self.data.sound.bins, generator=torch.Generator().manual_seed(1)).numpy()
        batch = collate_recordings([frames[0], frames[1, :31]], [[5, 6, 7], [8]])
        return self.model_config.build(self.data.sound.bins, 19).loss(batch)

    def prepare(self, run: Path, progress: Progress) -> SpeechPipeline:
        """Read every recording; save the vocabulary and the most frequent answer in the run."""
        data = self.data
        every = list(data.recordings(data.path("train"), progress, data.speeds))
        train = [one for one in every if data.shorter(one)]
        valid = list(data.recordings(data.path("valid"), progress))
        splits: list[Split] = ["train", "valid"]
        for name, found in zip(splits, (train, valid), strict=True):
            if not found:
                raise DataError("expected recordings that can be used, got none", path=data.path(name))
        if not (run / KEPT).exists():
            texts = [one.text for one in train]
            data.vocabulary.learn(texts).save(run / VOCABULARY)
            jsonfile.save(run / KEPT, {"answer": Counter(texts).most_common(1)[0][0]})
        vocabulary, answer = _kept(run)
        hours = sum(len(one.frames) for one in train) * data.sound.hop / 3600
        progress(
            f"training recordings: {len(train):,} of {len(every):,} kept, {hours:.2f} hours "
            f"({len(every) - len(train):,} longer than {data.max_seconds:g} s)",
            0,
            0,
        )
        return SpeechPipeline(self, vocabulary, answer, SpeechTraining(data, vocabulary, train, valid))

    def open(self, run: Path) -> SpeechPipeline:
        """Read the run's vocabulary and most frequent answer."""
        return SpeechPipeline(self, *_kept(run))

    @classmethod
    def check(cls, files: Sequence[Path]) -> Report:
        """Check lists of recordings, and the recordings."""
        return check_recordings(files)


def _kept(run: Path) -> tuple[Vocabulary, str]:
    """Vocabulary and most frequent answer of a run."""
    answer = jsonfile.load(run / KEPT, SavedSpeech, "train the run again").answer
    return load_vocabulary(run / VOCABULARY), answer
