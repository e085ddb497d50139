"""Language models: predicts the next token of a text, and scores texts.

Read next: ../running_text/data.py, model.py, ready.py, scoring.py (contexts), evaluation.py, predictor.py.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import torch

from weft.data.plain import check
from weft.data.report import Report
from weft.errors import CheckpointError, ConfigError, within
from weft.nn.heads.head import Loss
from weft.nn.positions import most_positions
from weft.tasks.language.evaluation import ProseEvaluation
from weft.tasks.language.model import ProseModel, grows
from weft.tasks.language.ready import LanguagePipeline, LanguageTraining, as_read, read
from weft.tasks.language.stream import collate_lines, cut
from weft.tasks.language.writing import Writing
from weft.tasks.running_text.data import ProseData
from weft.tasks.task import SPLITS, Progress, Split, Task
from weft.text.loading import load_vocabulary
from weft.text.vocabulary import Vocabulary
from weft.wording import plural

VOCABULARY = "tokenizer.json"


class Language(Task):
    """Trains a language model on running text.

    Args:
        data: the text, and how it is cut.
        model: the decoder.
        decoding: how the trained model continues and scores texts.
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
    note: ClassVar[str] = "Loss (in nats) and perplexity are per token, with the end of each line."
    evaluation: ClassVar = ProseEvaluation
    better: ClassVar[Mapping[str, Literal["higher", "lower"]]] = {"loss": "lower", "perplexity": "lower"}

    def __init__(self, *, data: ProseData, model: ProseModel, decoding: Writing) -> None:
        self.data = data
        self.model_config = model
        self.decoding = decoding
        self.streams = data.batches == "stream"
        if decoding.cache and not self.streams:
            raise ConfigError(
                f"decoding.cache: needs data.batches: stream, where the text is read in order; got "
                f"{data.batches}; set cache: 0"
            )

    def about(self) -> str:
        """The text."""
        return f"{self.data.vocabulary.kind} tokens of {self.data.describe('train')}"

    def has(self, split: Split) -> bool:
        return self.data.has(split)

    def rehearse(self) -> Loss:
        """Two pieces, or lines, with a vocabulary of 19 tokens, or a few more than the cutoffs."""
        model = self.model_config.build(max(19, self.model_config.least))
        if self.streams:
            loss, state = model.carry_on(cut(np.arange(19), np.array([0, 5]), 4), None)
            more, _ = model.carry_on(cut(np.arange(19), np.array([4, 9]), 4, continues=True), state)
            return Loss(loss.total + more.total, loss.count + more.count)
        return model.loss(collate_lines([[5, 6, 7], [8]]))

    def check_ready(self) -> None:
        """Check that all files exist, and that the model and the batches fit together."""
        with within("model"):
            kind = self.data.vocabulary.kind
            if self.model_config.embedding.cutoffs and kind in ("bpe", "unigram"):
                raise ConfigError(
                    "embedding.cutoffs: expected tokens ordered by frequency, but those of "
                    f"data.vocabulary.kind: {kind} are not; leave cutoffs out"
                )
            model = self.model_config.build(max(5, self.model_config.least))
            with torch.no_grad():
                if self.streams and grows(model):
                    raise ConfigError(
                        "the state of this decoder contains all that it has read, so it cannot be carried "
                        "from batch to batch; set data.batches: windows (or lines)"
                    )
                if self.data.batches == "windows":
                    model.eval().loss(
                        cut(np.zeros(self.data.length + 1, int), np.zeros(1, int), self.data.length)
                    )
        for split in SPLITS:
            if self.data.has(split):
                self.data.open(split)

    def prepare(self, run: Path, progress: Progress) -> LanguagePipeline:
        """Learn the vocabulary unless the run has it, then read the text."""
        if not (run / VOCABULARY).exists():
            progress("learning the vocabulary", 0, None)
            self.data.vocabulary.learn(self.data.open("train")).save(run / VOCABULARY)
        vocabulary = _learnt(run)
        progress("reading the text", 0, None)
        train, valid = read(self.data, vocabulary, "train"), read(self.data, vocabulary, "valid")
        most = most_positions(self.model_config.build(max(5, self.model_config.least)).decoder)
        training = LanguageTraining(as_read(self.data, vocabulary), vocabulary, train, valid, most)
        left_out = f" ({training.left_out:,} left out, longer than the model's {most} positions)"
        progress(
            f"training text: {train.size:,} tokens of {len(vocabulary):,} kinds in "
            f"{plural(train.lines, 'line')}{left_out if training.left_out else ''}",
            0,
            0,
        )
        return LanguagePipeline(self, vocabulary, training)

    def open(self, run: Path) -> LanguagePipeline:
        """Read the vocabulary of the run."""
        return LanguagePipeline(self, _learnt(run))

    @classmethod
    def check(cls, files: Sequence[Path]) -> Report:
        """Check plain text; see weft/data/plain.py."""
        return check(files)


def _learnt(run: Path) -> Vocabulary:
    if not (run / VOCABULARY).exists():
        raise CheckpointError(
            f"{run / VOCABULARY}: is missing; this is not a run directory, or training has not started"
        )
    return load_vocabulary(run / VOCABULARY)
