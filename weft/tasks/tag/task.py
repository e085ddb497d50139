"""M9, tagging: each word of a sentence has a tag, such as its part of speech.

Read next: data.py, ../shared/lexicon.py, model.py, predictor.py, evaluation.py.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Literal

import numpy as np
import torch
from torch import nn

from weft.data.batching import Batches
from weft.data.conllu import Sentence, read_sentences
from weft.data.report import Report
from weft.data.vectors import read_vectors
from weft.errors import CheckpointError, ConfigError, DataError, WeftError, within
from weft.models import Predictor
from weft.nn.embed.contextual import InContext
from weft.nn.embed.words import Words
from weft.nn.heads.head import Loss
from weft.tasks.each import each, place
from weft.tasks.shared.context.standing import Standing
from weft.tasks.shared.labels.batch import LabelBatch
from weft.tasks.shared.lexicon import Lexicon
from weft.tasks.tag.check import check_tags
from weft.tasks.tag.data import TagData
from weft.tasks.tag.evaluation import TagEvaluation, evaluate
from weft.tasks.tag.model import TagModel
from weft.tasks.tag.predictor import Tagger
from weft.tasks.task import SPLITS, Answer, Progress, Split, Task
from weft.tasks.validation import Sample, Validation, samples_of


class Tag(Task):
    """Tagged sentences to a tagger.

    Args:
        data: where sentences come from.
        model: what reads them.
    """

    sections: ClassVar[Mapping[str, type]] = {"data": TagData, "model": TagModel}
    options: ClassVar[Mapping[str, Sequence[str]]] = {"predict": ("scores",)}
    note: ClassVar[str] = (
        "accuracy is the share of words with the right tag, unknown that among "
        "words which training never saw, loss is nats a word."
    )
    evaluation: ClassVar = TagEvaluation
    better: ClassVar[Mapping[str, Literal["higher", "lower"]]] = {
        "loss": "lower",
        "accuracy": "higher",
        "unknown": "higher",
    }
    suffixes: ClassVar[Sequence[str]] = (".conllu",)

    def __init__(self, *, data: TagData, model: TagModel) -> None:
        self.data = data
        self.parts = model
        self.lexicon: Lexicon
        self._train: list[Sentence]
        self._valid: list[Sentence]
        self._vectors: dict[str, np.ndarray] = {}
        contextual = model.embedding.contextual
        self._standing = None if contextual is None else Standing(contextual)

    def about(self) -> str:
        """The column and the file."""
        return f"{self.data.column} tags, on {Path(self.data.train).name}"

    def has(self, split: Split) -> bool:
        """See Task.has."""
        return self.data.has(split)

    def look(self) -> None:
        """See that the parts fit together and the files are there."""
        with within("model"):
            self.parts.build(5, 5, 3)
        for split in SPLITS:
            if self.data.has(split):
                next(read_sentences(self.data.file(split), column=self.data.column), None)
        if self._standing is not None:
            self._standing.look(self)
        vectors = self.parts.embedding.vectors
        if vectors is not None:
            _, size = read_vectors(vectors, ())
            if size != self.parts.embedding.size:
                raise ConfigError(
                    f"model: embedding.size is {self.parts.embedding.size}, and the vectors of {vectors} "
                    f"have {size} numbers; set embedding.size: {size}"
                )

    def rehearse(self) -> Loss:
        """Two sentences of three words and one."""
        lexicon = Lexicon(["a", "b"], [3, 1], ["a", "b"], ["X", "Y", "Z"], lowercase=True)
        model = self.parts.build(lexicon.num_words, lexicon.num_letters, 3)
        return model.loss(_batch(lexicon, [["a", "b", "ab"], ["b"]], [["X", "Y", "Z"], ["Y"]]))

    def prepare(self, run: Path, progress: Progress) -> None:
        """Learn the lexicon unless the run has it; read the sentences."""
        train = list(self.data.sentences("train"))
        if not train:
            raise DataError("expected sentences to train on, got none", path=self.data.file("train"))
        given = self.parts.embedding.vectors
        if given is not None:
            progress("reading word vectors", 0, None)
            self._vectors, _ = read_vectors(given)
        if self._standing is not None:
            self._standing.prepare(self, run)
        if not _saved(run).exists():
            learnt = Lexicon.learn(
                train, lowercase=self.data.lowercase, min_count=self.data.min_count, more=self._vectors
            )
            learnt.save(_saved(run))
        self.open(run)
        kept = [sentence for sentence in train if len(sentence.forms) <= self.data.max_length]
        progress(
            f"training sentences: {len(kept):,} of {len(train):,} kept "
            f"({len(train) - len(kept):,} longer than {self.data.max_length} words), "
            f"{len(self.lexicon.tags)} tags, {len(self.lexicon.words):,} words",
            0,
            0,
        )
        if not kept:
            raise ConfigError(f"data.max_length: {self.data.max_length} leaves no sentence; raise it")
        unknown = {tag for one in kept for tag in one.tags or ()} - set(self.lexicon.tags)
        if unknown:
            raise CheckpointError(
                f"{_saved(run)}: expected every tag of {self.data.file('train')}, {min(unknown)!r} is "
                "missing; the file or the data was changed: restore it, or train with another --run"
            )
        self._train, self._valid = kept, list(self.data.sentences("valid"))

    def open(self, run: Path) -> None:
        """Read the lexicon of the run."""
        self.lexicon = Lexicon.load(_saved(run))
        if self._standing is not None:
            self._standing.open(self, run)
            self.lexicon.context = self._standing.read

    def model(self) -> Predictor:
        """A new model for this lexicon; its table begins with given vectors, what is in context is copied."""
        lexicon = self.lexicon
        context = self._standing.model() if self._standing else None
        model = self.parts.build(lexicon.num_words, lexicon.num_letters, len(lexicon.tags), context)
        embed = model.embed.words if isinstance(model.embed, InContext) else model.embed
        assert isinstance(embed, Words)
        embed.learn_from(lexicon.word_counts())
        if self._vectors and embed.table is not None:
            with torch.no_grad():
                for number, word in enumerate(lexicon.words, 2):
                    if word in self._vectors:
                        embed.table.weight[number] = torch.from_numpy(self._vectors[word])
        return model

    def plan(self, seed: int) -> Batches:
        """Batches of the training sentences."""
        lengths = np.array([[len(sentence.forms)] * 2 for sentence in self._train])
        rows = self.data.batch_rows or None
        return Batches(lengths, max_tokens=self.data.batch_tokens, max_rows=rows, seed=seed)

    def collate(self, numbers: np.ndarray) -> LabelBatch:
        """Training sentences by number."""
        chosen = [self._train[int(number)] for number in numbers]
        return _batch(self.lexicon, [one.forms for one in chosen], [one.tags or [] for one in chosen])

    def validate(self, model: nn.Module) -> Validation:
        """Loss, accuracy on all and on unknown words."""
        assert isinstance(model, Predictor)
        valid, tagger = self._valid, Tagger(model, self.lexicon)
        answers = [found.tags for found in tagger.tag(one.forms for one in valid)]
        right = total = new_right = new_total = 0
        for sentence, tags in zip(valid, answers, strict=True):
            for form, ours, theirs in zip(sentence.forms, tags, sentence.tags or [], strict=True):
                right, total = right + (ours == theirs), total + 1
                if not self.lexicon.knows(form):
                    new_right, new_total = new_right + (ours == theirs), new_total + 1
        scores = {
            "loss": self._mean_loss(model, valid),
            "accuracy": right / max(1, total),
            "unknown": new_right / max(1, new_total),
        }
        samples = [
            Sample(" ".join(valid[n].forms), " ".join(valid[n].tags or []), " ".join(answers[n]))
            for n in samples_of(len(valid))
        ]
        return Validation(scores, samples)

    def predictor(self, model: nn.Module) -> Tagger:
        """The trained model at work: `predict("a b c")` gives words with tags."""
        assert isinstance(model, Predictor)
        return Tagger(model, self.lexicon)

    def answers(
        self, model: nn.Module, source: Path | BinaryIO, options: Mapping[str, Any]
    ) -> Iterator[Answer]:
        """Each sentence with its tags, in the form it came in.

        CoNLL-U comes out as it was but for the column that is predicted (and, with scores, Prob= in MISC);
        a word on each line, or a sentence on each line, as word TAB tag.
        """
        tagger, scores = self.predictor(model), bool(options.get("scores"))
        window: list[Sentence] = []
        # A pipe is answered sentence by sentence, a file in windows of sentences of like length.
        most = 512 if isinstance(source, Path) else 1
        for sentence in read_sentences(source, column=self.data.column):
            window.append(sentence)
            if len(window) >= most:
                yield from self._answered(tagger, window, scores, source)
                window = []
        yield from self._answered(tagger, window, scores, source)

    def _answered(
        self, tagger: Tagger, window: list[Sentence], scores: bool, source: Path | BinaryIO
    ) -> Iterator[Answer]:
        found = each([one.forms for one in window], lambda part: tagger.tag(part, probs=scores))
        for sentence, tagged in zip(window, found, strict=True):
            if isinstance(tagged, WeftError):  # its words keep their lines
                untagged = sentence.tagged(["_"] * len(sentence.forms), self.data.column)
                wrong = f"{place(source, sentence.first)}: {tagged}"
                yield Answer("\n".join(untagged) + "\n", wrong=wrong)
                continue
            lines = sentence.tagged(tagged.tags, self.data.column)
            for row, prob in zip(sentence.rows, tagged.probs, strict=False):
                lines[row] = _with_prob(lines[row], prob)
            yield Answer("\n".join(lines) + "\n")

    def evaluate(
        self,
        model: nn.Module,
        *,
        split: Split = "test",
        data: Path | None = None,
        options: Mapping[str, Any] = {},
    ) -> TagEvaluation:
        """Accuracy on a split or another file, with the baseline where the training data is still there."""
        sentences = list(self.data.sentences(split) if data is None else self.data.at(data))
        train = None
        with suppress(DataError):
            train = list(self.data.sentences("train"))
        title = self.data.describe(split) if data is None else f"{data.name} {self.data.column}"
        column = self.data.column
        return evaluate(self.predictor(model), sentences, title=title, column=column, train=train)

    @classmethod
    def check(cls, files: Sequence[Path]) -> Report:
        """Tagged text: see tags/check.py."""
        return check_tags(files)

    def _mean_loss(self, model: Predictor, sentences: Sequence[Sentence]) -> float:
        """Nats a word, over the words whose tag is known."""
        device = next(model.parameters()).device
        known = [one for one in sentences if -1 not in self.lexicon.encode(one.tags or [])]
        known.sort(key=lambda one: len(one.forms))
        total = count = 0.0
        for at in range(0, len(known), 64):
            part = known[at : at + 64]
            batch = _batch(self.lexicon, [one.forms for one in part], [one.tags or [] for one in part])
            with torch.no_grad():
                loss = model.loss(batch.to(device))
            total, count = total + float(loss.total), count + float(loss.count)
        return total / max(1.0, count)


def _batch(lexicon: Lexicon, sentences: Sequence[Sequence[str]], tags: Sequence[Sequence[str]]) -> LabelBatch:
    spelled, mask = lexicon.read(sentences)
    target = np.zeros(mask.shape, dtype=np.int64)
    for row, own in enumerate(tags):
        target[row, : len(own)] = lexicon.encode(own)
    return LabelBatch(spelled, mask, torch.from_numpy(target), sum(map(len, sentences)))


def _with_prob(line: str, prob: float) -> str:
    cells = line.split("\t")
    if len(cells) <= 2:
        return f"{line}\t{prob:.4f}"
    cells[-1] = f"Prob={prob:.4f}" if cells[-1] == "_" else f"{cells[-1]}|Prob={prob:.4f}"
    return "\t".join(cells)


def _saved(run: Path) -> Path:
    return run / "tokenizer.tags.json"
