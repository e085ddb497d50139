"""M11, captioning: what a picture shows becomes a sentence, each word looking back at the picture.

Read next: ../shared/pictures/data.py, ../shared/pictures/model.py, predictor.py, evaluation.py.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Literal

import numpy as np
import torch
from torch import nn

from weft.data.captions import read_captions
from weft.data.report import Report
from weft.errors import DataError, ShapeError, within
from weft.metrics.bleu_n import bleu_n
from weft.metrics.cider import cider_d
from weft.metrics.compared import Compared
from weft.models import Generator
from weft.nn.heads.head import Loss
from weft.nn.pictures.front import Front
from weft.tasks.caption.evaluation import CaptionEvaluation, coco, evaluate, exact
from weft.tasks.caption.predictor import Captioner, captioned
from weft.tasks.predictor import Place
from weft.tasks.ready import SPLITS, Ready, Split
from weft.tasks.shared.pictures.batch import Order, parts
from weft.tasks.shared.pictures.check import check_captions
from weft.tasks.shared.pictures.data import SIDE, CaptionData, Captions
from weft.tasks.shared.pictures.model import CaptionModel
from weft.tasks.shared.pictures.reading import pictures_in
from weft.tasks.shared.pictures.shape import read_shape, write_shape
from weft.tasks.shared.writing.batch import PairBatch
from weft.tasks.shared.writing.decoding import EVALUATED, PREDICTED, Decoding
from weft.tasks.shared.writing.members import Member, joined, pieces
from weft.tasks.shared.writing.scoring import GivenScores, score_file
from weft.tasks.shared.writing.translator import written
from weft.tasks.task import Progress
from weft.tasks.validation import Sample, Validation, mean_loss, samples_of
from weft.tasks.whole import Answer, Whole, unanswered
from weft.text.vocabulary import Vocabulary


class Caption(Whole):
    """Pictures to captions.

    Args:
        data: where pictures and captions come from.
        model: what reads and what writes.
        decoding: how captions are searched once the model is trained; validation is greedy.
    """

    sections: ClassVar[Mapping[str, type]] = {
        "data": CaptionData,
        "model": CaptionModel,
        "decoding": Decoding,
    }
    options: ClassVar[Mapping[str, Sequence[str]]] = {
        "predict": (*PREDICTED, "coco"),
        "evaluate": EVALUATED,
    }
    keeps: ClassVar[Sequence[str]] = ("tokenizer.json", "pictures.json")
    note: ClassVar[str] = (
        "Exact is the share of captions that are one of the references word by word; BLEU-4 and CIDEr-D are "
        "computed as COCO's evaluation does, on greedy output, words in small letters without signs."
    )
    evaluation: ClassVar = CaptionEvaluation
    better: ClassVar[Mapping[str, Literal["higher", "lower"]]] = {
        "loss": "lower",
        "exact": "higher",
        "bleu4": "higher",
        "cider": "higher",
    }

    def __init__(self, *, data: CaptionData, model: CaptionModel, decoding: Decoding) -> None:
        self.data = data
        self.parts = model
        self.decoding = decoding
        self.vocabulary: Vocabulary
        self.shape: tuple[int, ...]
        self._places: int
        self._train: Captions
        self._valid: Captions
        self._pairs: list[tuple[int, list[int]]]

    def about(self) -> str:
        """The pictures."""
        return f"captions of {self.data.describe('train')}"

    def has(self, split: Split) -> bool:
        return self.data.has(split)

    def check_ready(self) -> None:
        """See that the parts fit together, and that every picture that a caption names is there."""
        with within("model"):
            self.parts.build(self._likely(), 5)
        for split in SPLITS:
            if self.data.has(split):
                self.data.find(split)

    def rehearse(self) -> Loss:
        """Two pictures with captions of three words and one."""
        shape = self._likely()
        model = self.parts.build(shape, 11)
        assert isinstance(model.source_embed, Front)
        pixels = np.zeros((2, *shape), np.float32)
        return model.loss(captioned(pixels, [[5, 6, 7], [8]], model.source_embed.places))

    def prepare(self, run: Path, progress: Progress) -> Ready:
        """Read the pictures; learn the vocabulary unless the run has it."""
        progress("reading pictures", 0, None)
        self._train, self._valid = self.data.load("train"), self.data.load("valid")
        shape, other = self._train.pixels.shape[1:], self._valid.pixels.shape[1:]
        if shape != other:
            raise DataError(
                f"{self.data.describe('valid')}: expected pictures of {shape}, as in training, got {other}; "
                "rescale them all, for example with data.size: 32"
            )
        if not (run / "tokenizer.json").exists():
            write_shape(run, shape)
            texts = [caption for captions in self._train.captions for caption in captions]
            self.data.vocabulary.learn(texts).save(run / "tokenizer.json")
        self.open(run)
        whole = [
            (number, self.vocabulary.encode(caption))
            for number, captions in enumerate(self._train.captions)
            for caption in captions
        ]
        cut = sum(len(tokens) > self.data.max_length for _, tokens in whole)
        self._pairs = [(number, tokens[: self.data.max_length]) for number, tokens in whole]
        progress(
            f"training captions: {len(whole):,} of {len(self._train.names):,} pictures ({cut:,} cut at "
            f"{self.data.max_length} tokens), {len(self.vocabulary):,} tokens",
            0,
            0,
        )
        return self

    def open(self, run: Path) -> Ready:
        """Read the vocabulary and the shape of pictures."""
        self.vocabulary = Vocabulary.load(run / "tokenizer.json")
        self.shape, _ = read_shape(run)
        with torch.device("meta"):  # its weights are not looked at, and no random number is drawn
            self._places = self.parts.front(self.shape).places
        return self

    def model(self) -> Generator:
        """A new model."""
        return self.parts.build(self.shape, len(self.vocabulary))

    def writes(self) -> Vocabulary:
        return self.vocabulary

    def common(self) -> Mapping[str, Any]:
        return {"vocabulary": pieces(self.vocabulary), "shape of pictures": self.shape}

    def plan(self, seed: int) -> Order:
        """Batches of the training captions."""
        return Order(len(self._pairs), self.data.batch_rows, seed)

    def collate(self, numbers: np.ndarray) -> PairBatch:
        """Training captions by number, with their pictures."""
        chosen = [self._pairs[int(number)] for number in numbers]
        return self._batch(self._train.pixels[[number for number, _ in chosen]], [row for _, row in chosen])

    def validate(self, model: nn.Module) -> Validation:
        """Loss, and how good greedy captions are."""
        assert isinstance(model, Generator)
        texts, references = self._valid, self._valid.captions
        rows = [self.vocabulary.encode(captions[0]) for captions in references]
        every = parts(len(references), self.data.batch_rows)
        loss = mean_loss(model, (self._batch(texts.pixels[part], rows[part]) for part in every))
        outputs = [
            best[0].text for best in self._captioner(model, Decoding(search="greedy")).captions(texts.pixels)
        ]
        scores = {
            "loss": loss,
            "exact": exact(outputs, references).value,
            "bleu4": bleu_n(outputs, references)[3].value,
            "cider": cider_d(outputs, references).value,
        }
        shown = samples_of(len(outputs))
        samples = [Sample(texts.names[n], references[n][0], outputs[n]) for n in shown]
        return Validation(scores, samples, [Compared(outputs, references)])

    def predictor(self, model: nn.Module) -> Captioner:
        """The trained model at work: `predict(file or array)` answers with a caption."""
        assert isinstance(model, Generator)
        return self._captioner(model, self.decoding)

    def answers(
        self, model: nn.Module, source: Path | BinaryIO, options: Mapping[str, Any]
    ) -> Iterator[Answer]:
        """A caption for each picture: of a folder, of one file, or of files named a line each.

        A file of captions (.tsv, .jsonl, .json) has its pictures captioned anew. With the option `coco`
        the lines are together COCO's results.
        """
        assert isinstance(model, Generator)
        captioner = self._captioner(model, self.decoding.asked(options), options.get("ensemble", ()))
        ahead: Answer | None = None
        for path, number, where in self._asked(source):
            try:
                picture = captioner.read(path)
                found = next(captioner.captions(picture[None]))
                text = written(found, captioner.decoding.nbest, bool(options.get("scores")))
                answer = Answer(text, (picture, found[0]))
            except (DataError, ShapeError) as error:
                if path == source:
                    raise
                found, answer = [], unanswered("", DataError(where.why(error)), captioner.decoding.nbest)
            if not options.get("coco"):
                yield answer
                continue
            record = json.dumps(coco(number, found[0].text if found else ""), ensure_ascii=False)
            if ahead is not None:
                yield ahead._replace(text=ahead.text + ",")
            ahead = answer._replace(text=f"{'[' if ahead is None else ' '}{record}")
        if ahead is not None:
            yield ahead._replace(text=ahead.text + "]")

    def evaluate(
        self,
        model: nn.Module,
        *,
        split: Split = "test",
        data: Path | None = None,
        options: Mapping[str, Any] = {},
    ) -> CaptionEvaluation | GivenScores:
        """BLEU-1 to 4, ROUGE-L, CIDEr-D and exact captions; see Task.evaluate. `data` is a captions file.

        With the option `score`, a file, nothing is written: the log-probability of each of its lines.
        """
        assert isinstance(model, Generator)
        found = self.data.load(split) if data is None else self.data.read(self.data.at(data))
        if found.pixels.shape[1:] != self.shape:
            raise DataError(
                f"{data or split}: expected pictures of {self.shape}, as the model was trained on, "
                f"got {found.pixels.shape[1:]}; rescale them"
            )
        if "score" in options:
            return score_file(
                model,
                len(found.pixels),
                self.vocabulary.encode_batch,
                lambda numbers, rows: self._batch(found.pixels[numbers], rows),
                options,
            )
        train: list[list[str]] = []
        with suppress(DataError):
            train = (
                self.data.load("train").captions
                if self.data.generated
                else [one.captions for one in self.data.find("train")]
            )
        title = self.data.describe(split) if data is None else data.name
        captioner = self._captioner(model, self.decoding.asked(options), options.get("ensemble", ()))
        return evaluate(captioner, found, title=title, train=train)

    @classmethod
    def check(cls, files: Sequence[Path]) -> Report:
        """Captions and the pictures they name: see pictures/check.py."""
        return check_captions(files)

    def _captioner(self, model: Generator, decoding: Decoding, members: Sequence[Member] = ()) -> Captioner:
        bounded = replace(decoding, max_ratio=0.0, max_extra=self.data.max_length)
        size = None if self.data.generated else self.data.size
        others = [joined(member, self) for member in members]
        return Captioner(model, self.vocabulary, bounded, self.shape, size or self._square(), others=others)

    def _square(self) -> int | None:
        """Generated pictures are what the model knows: others are scaled to their size."""
        return self.shape[0] if self.data.generated else None

    def _asked(self, source: Path | BinaryIO) -> Iterator[tuple[Path, int | str, Place]]:
        """Each picture's file, its number or name, and its place."""
        if isinstance(source, Path) and source.suffix.lower() in (".tsv", ".jsonl", ".json"):
            images = None if self.data.images is None else self.data.folder / self.data.images
            for one in read_captions(source, images, language=self.data.language):
                yield one.path, one.number, Place(str(one.path))
        else:
            yield from ((path, path.stem, where) for path, where in pictures_in(source))

    def _batch(self, pixels: np.ndarray, rows: list[list[int]]) -> PairBatch:
        return captioned(pixels, rows, self._places)

    def _likely(self) -> tuple[int, ...]:
        """The shape of pictures before any is read."""
        side = self.data.size or SIDE
        return (side, side, 3)
