"""ELMo: a forward and a backward language model over letters, whose layers are words in context.

A tagger uses it with `model.embedding.contextual: RUN`. Read next: ../../nn/embed/contextual.py;
../running_text/sentences.py, model.py, ready.py, predictor.py.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal

from weft.data.check import check
from weft.data.plain import no_words
from weft.data.report import Report
from weft.nn.heads.head import Loss
from weft.tasks.elmo.evaluation import collate
from weft.tasks.elmo.model import SIZES, Elmo, ElmoModel
from weft.tasks.elmo.ready import ElmoPipeline, ElmoTraining
from weft.tasks.running_text import sentences as text
from weft.tasks.running_text.data import ProseData
from weft.tasks.running_text.evaluation import ContextEvaluation
from weft.tasks.task import SPLITS, Progress, Split, Task
from weft.wording import plural


class ElmoTask(Task):
    """A model of words in context, from running text.

    Args:
        data: where text comes from; lines by themselves, in words.
        model: how large.
    """

    sections: ClassVar[Mapping[str, type]] = {"data": ProseData, "model": ElmoModel}
    evaluation: ClassVar = ContextEvaluation
    better: ClassVar[Mapping[str, Literal["higher", "lower"]]] = {
        "loss": "lower",
        "forward": "lower",
        "backward": "lower",
    }
    note: ClassVar[str] = (
        "forward and backward are perplexities per word with the full softmax, including the end (or the "
        "beginning) of each line; all unknown words are one word; loss is the mean of both in nats."
    )

    def __init__(self, *, data: ProseData, model: ElmoModel) -> None:
        self.data = data
        self.model_config = model

    def about(self) -> str:
        """The text."""
        return f"words in context, on {self.data.describe('train')}"

    def has(self, split: Split) -> bool:
        return self.data.has(split)

    def check_ready(self) -> None:
        """Check that the files exist and the settings fit."""
        text.check(self.data, words=True)
        for split in SPLITS:
            if self.data.has(split):
                self.data.open(split)

    def rehearse(self) -> Loss:
        """Two sentences of three words and one."""
        some = [["a", "b", "ab"], ["b"]]
        lexicon = text.learn(some, min_count=1)
        return self.model_config.build(lexicon.num_words, lexicon.num_letters).loss(collate(lexicon, some))

    def prepare(self, run: Path, progress: Progress) -> ElmoPipeline:
        """Learn words and letters, unless the run has them, and read the text."""
        progress("reading the text", 0, None)
        train, valid = text.of(self.data, "train"), text.of(self.data, "valid")
        parts: tuple[tuple[Split, list[list[str]]], ...] = (("train", train), ("valid", valid))
        for split, some in parts:
            if not some:
                raise no_words(self.data.describe(split))
        if not (run / SIZES).exists():
            Elmo(text.learn(train, min_count=self.data.vocabulary.min_count), self.model_config).save(run)
        lexicon = Elmo.load(run).lexicon
        words = f"{plural(sum(map(len, train)), 'word')} in {plural(len(train), 'line')}"
        progress(f"training text: {words}, {len(lexicon.words):,} different ones are predicted", 0, 0)
        return ElmoPipeline(self, lexicon, training=ElmoTraining(self.data, lexicon, train, valid))

    def open(self, run: Path) -> ElmoPipeline:
        """Read words and letters of the run."""
        return ElmoPipeline(self, Elmo.load(run).lexicon)

    @classmethod
    def check(cls, files: Sequence[Path]) -> Report:
        """Check plain text; see weft/data/check.py."""
        return check(*files, pairs=False)
