"""A trained captioner: writes captions of pictures, and shows where it attended for each word.

`evaluate` gives exact matches, BLEU-1 to 4, ROUGE-L and CIDEr-D, next to the most frequent caption.

Read next: ../seq2seq/batch_search.py; ../../figures/sheets.py, which draws the attention over the picture.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice, repeat
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from weft.data.held import STREAM, name_of
from weft.data.images import CAPTIONED, folders
from weft.errors import DataError
from weft.figures.records import Figure
from weft.metrics.captions import bleu_n, cider_d, words_of
from weft.metrics.forms import ScoresInForm, form_name, in_form, not_in_form
from weft.metrics.rouge_n import rouge_l
from weft.metrics.scored import ComparedOutputs, ScoreWithBaselines, fingerprint, mean_of, ratio
from weft.models import Generator
from weft.nn.pictures.front import Front
from weft.search.offered import Decoding
from weft.search.trace import Trace
from weft.tasks import predictor
from weft.tasks.answer_list import AnswerList
from weft.tasks.evaluation import speed, unanswered
from weft.tasks.export import SCORED, ModelExport, Score
from weft.tasks.inspection import Inspection, asked, pictured, places
from weft.tasks.pictures.data import CaptionData, Captions, read
from weft.tasks.pictures.pictures import (
    check_shape,
    content,
    encoded,
    noise,
    one_picture,
    picture_of,
    pictures_in,
    readable,
    source,
)
from weft.tasks.predictor import Answer, Failure, NoAnswer, ParsedInput, Place, Raw, Reads, predicted
from weft.tasks.seq2seq.batch_search import BatchSearch
from weft.tasks.seq2seq.encoding import PairBatch, collate_pairs
from weft.tasks.seq2seq.evaluation import WrittenEvaluation
from weft.tasks.seq2seq.graphs import export_generator
from weft.tasks.seq2seq.inspection import decoded, plain_beam
from weft.tasks.seq2seq.translator import BestTexts, SearchResult, attention, results, texts_of
from weft.text.vocabulary import PAD, SOS, UNK, Vocabulary
from weft.wording import plural


class Picture(NamedTuple):
    """A picture to caption."""

    pixels: np.ndarray  # [height, width, 3] uint8, or features
    number: int | str = ""  # COCO's image_id, or the file name


class UnreadablePicture(DataError):
    """A picture that cannot be read, with its number."""

    def __init__(self, error: DataError, number: int | str) -> None:
        super().__init__(error.why, path=error.path, line=error.line)
        self.number = number


class CaptionAnswer(BestTexts):
    """The captions of a picture."""

    def __init__(self, captioner: "Captioner", picture: Picture, found: Sequence[SearchResult]) -> None:
        super().__init__(found, captioner.decoding.nbest, scores=captioner._scores)
        self._captioner = captioner
        self._picture = picture
        self.record = coco(picture.number, found[0].text)

    def figure(self) -> "Figure":
        from weft.figures.sheets import attended_picture  # imports matplotlib

        captioner, best = self._captioner, self.found[0]
        weights = captioner.look(self._picture.pixels, best.tokens) if best.tokens else np.zeros((0, 1, 1))
        words = captioner.vocabulary.pieces(best.tokens)
        return attended_picture(self._picture.pixels, words, weights, best.text)


class MissingCaption(NoAnswer):
    """The empty answer to a picture that cannot be captioned."""

    def __init__(self, wrong: str, lines: int, number: int | str) -> None:
        super().__init__(wrong, lines)
        self.record = coco(number, "")


class Captioner(predictor.Predictor[Picture]):
    """Captions pictures with a model and its vocabulary.

    Args:
        model: in evaluation mode, on its device.
        vocabulary: of the captions.
        decoding: search settings; only data.max_length limits the length of captions.
        shape: of a picture.
        data: the recipe's section `data`, which reads files.
        others: further members of an ensemble.
        scores: whether `weft predict` writes the score of each caption.
        coco: whether `weft predict` writes COCO's results.

    Example:
        >>> from weft.tasks.pictures.data import CaptionData
        >>> from weft.tasks.pictures.data import CaptionModel
        >>> from weft.search.offered import Decoding
        >>> from weft.text.vocabulary import Vocabulary
        >>> words = Vocabulary.train(["a cat sat"], kind="word", size=None)
        >>> model = CaptionModel().build((8, 12, 3), len(words)).eval()
        >>> model.head.bias.data[words.encode("a cat")[-1]] = 99.0  # an untrained model that writes "cat"
        >>> data = CaptionData(generated="shapes", max_length=2)
        >>> captioner = Captioner(model, words, Decoding(search="greedy"), (8, 12, 3), data)
        >>> captioner.predict(np.zeros((8, 12, 3), np.uint8))  # [height, width, channels]
        'cat cat'
    """

    draws = True
    reads: ClassVar[Reads] = "picture"
    file_columns: ClassVar = CAPTIONED[:2]
    linewise = False
    window = 64

    def __init__(
        self,
        model: Generator,
        vocabulary: Vocabulary,
        decoding: Decoding,
        shape: tuple[int, ...],
        data: CaptionData,
        *,
        others: Sequence[Generator] = (),
        scores: bool = False,
        coco: bool = False,
    ) -> None:
        self.model, self.vocabulary, self._shape, self._data = model, vocabulary, shape, data
        self.decoding = replace(decoding, max_ratio=0.0, max_extra=data.max_length)
        self.lines = decoding.nbest
        self.window = decoding.batch_rows
        self._scores = scores
        self._coco = coco
        assert isinstance(model.source_embed, Front)
        self._front = model.source_embed
        self._search = BatchSearch([model, *others], vocabulary, self.decoding, (PAD, UNK, SOS))
        self._random: torch.Generator = self._search.seeded()  # shared by all answers

    def parse(self, raw: Raw, place: Place) -> Picture:
        """The pixels or features of a file or its bytes, or an array as in training."""
        return Picture(picture_of(raw, place, self._read, self._shape))

    def is_one(self, raw: Raw) -> bool:
        return one_picture(raw, self._shape)

    def inputs(self, source: Path | BinaryIO) -> Iterator[ParsedInput[Picture]]:
        """A picture, a folder or .zip of them, or a list with the name of one per line.

        Of a file of captions (a table, .jsonl, .json) only the pictures are read.
        """
        for path, number, place in self._files(source):
            try:
                yield ParsedInput(place, Picture(self._read(path), number))
            except DataError as error:
                if path == source:
                    raise
                yield ParsedInput(place, UnreadablePicture(error, number))

    def is_header(self, cells: Sequence[str]) -> bool:
        return CAPTIONED.names(cells)

    def answers(self, inputs: Sequence[Picture]) -> Iterator[CaptionAnswer]:
        for at in range(0, len(inputs), self.decoding.batch_rows):
            part = inputs[at : at + self.decoding.batch_rows]
            read = source(np.stack([one.pixels for one in part]), self._front.places)
            found = self._search(*read, chance=self._random)
            for one, texts in zip(part, results(found, repeat(self.vocabulary), self.decoding), strict=False):
                yield CaptionAnswer(self, one, texts)

    def unanswered(self, given: ParsedInput[Picture], why: Failure) -> Answer:
        number = given.value.number if isinstance(given.value, Picture | UnreadablePicture) else ""
        return MissingCaption(given.place.why(why), self.lines, number)

    def formatted(self, answers: Iterable[Answer]) -> Iterator[tuple[Answer, str | None]]:
        """The captions; or COCO's results, a list of records with one on each line."""
        if not self._coco:
            yield from super().formatted(answers)
            return
        before: Answer | None = None
        line = ""
        for answer in answers:
            if before is not None:
                yield before, line + ","
            assert isinstance(answer, CaptionAnswer | MissingCaption)
            line = ("[" if before is None else " ") + json.dumps(answer.record, ensure_ascii=False)
            before = answer
        if before is not None:
            yield before, line + "]"

    def check_figures(self, *, alignments: bool) -> None:
        if alignments:
            super().check_figures(alignments=True)
        self.look(np.zeros(self._shape, np.float32), [1])

    def value(self, answer: CaptionAnswer) -> str:
        return str(answer.found[0].text)

    def _read(self, path: Path) -> np.ndarray:
        found = read(path, self._data.side)
        check_shape(found.shape, self._shape, path)
        return found

    def captions(
        self, pictures: np.ndarray | Iterable[np.ndarray | str | Path]
    ) -> AnswerList[list[SearchResult]]:
        """Like `predict` of many pictures, with the n best captions of each and their scores."""
        return self.listed(pictures, lambda one: one.found, texts_of)

    def look(self, picture: np.ndarray, tokens: list[int]) -> np.ndarray:
        """The decoder's attention for each token of a caption, [T, *grid].

        Raises:
            ConfigError: the model has no attention.
        """
        places = self._front.places
        weights, _ = attention(self.model, captioned(picture[None], [tokens], places), places)
        return weights[: len(tokens)].reshape(len(tokens), *self._front.grid)

    def _files(self, source: Path | BinaryIO) -> Iterator[tuple[Path, int | str, Place]]:
        where: list[Path] = []
        if isinstance(source, Path):
            images = Path() if name_of(source) == STREAM else None  # None is the folder of the list
            images = images if self._data.images is None else self._data.folder / self._data.images
            where = folders(source, images)
        return pictures_in(source, CAPTIONED, where)


def coco(number: int | str, caption: str) -> dict[str, Any]:
    """A record of COCO's results."""
    return {"image_id": number, "caption": caption}


def captioned(pixels: np.ndarray, tokens: list[list[int]], places: int) -> PairBatch:
    """A batch of pictures and the tokens of their captions."""
    x, mask = source(pixels, places)
    return collate_pairs([[1]] * len(tokens), tokens)._replace(source=x, source_mask=mask, fixed=True)


def inspect_caption(plain: Captioner, text: str | None) -> Inspection:
    """What `weft inspect` shows of a picture."""
    how = plain_beam(plain.decoding)
    captioner = Captioner(plain.model, plain.vocabulary, how, plain._shape, plain._data)
    picture, name = asked(plain._data, captioner._read, text)
    front, trace = captioner._front, Trace()
    found = captioner._search(*source(picture[None], front.places), trace)
    shown = decoded(
        captioner.model,
        captioner.vocabulary,
        found,
        trace,
        lambda tokens: captioned(picture[None], [tokens], front.places),
        text=name,
        width=front.places,
    )
    best = shown.hypotheses[0]
    return replace(
        shown,
        source=places(front.grid),
        chosen_what="each word of the best caption, given those before it",
        picture=pictured(picture, best.pieces, best.looks, front.grid, "where each word looked"),
    )


def export_captioner(captioner: Captioner) -> ModelExport:
    """What `weft export` writes for a captioner."""
    data, shape = captioner._data, captioner._shape
    places = captioner._front.places

    def read(picture: Tensor) -> tuple[Tensor, Tensor]:
        return picture, torch.ones(picture.shape[0], places, dtype=torch.bool, device=picture.device)

    two, three = ({"picture": noise(shape, rows).float() / 127.5 - 1} for rows in (2, 3))
    form = export_generator(
        captioner.model,
        (two, three),
        captioner.vocabulary,
        captioner.decoding,
        program="captions",
        more={
            "kind": "captions",
            "shape": list(shape),
            "size": data.side,
        },
        read=read,
    )

    def examples(count: int) -> Sequence[bytes]:
        return readable(captioner, shape, (one for one, _ in _pairs(data)), count)

    def scored() -> tuple[Sequence[bytes], Score | None]:
        pairs = list(islice(_pairs(data), SCORED))
        if not pairs:
            return examples(SCORED), None
        references = [captions for _, captions in pairs]
        return [one for one, _ in pairs], lambda answers: ("CIDEr-D", cider_d(answers, references).value)

    return form._replace(examples=examples, scored=scored)


def _pairs(data: CaptionData) -> Iterator[tuple[bytes, list[str]]]:
    """The files of the validation pictures and their captions; nothing where the data is missing."""
    with suppress(DataError, OSError):
        if data.generated is not None:
            found = data.load("valid")
            yield from zip(map(encoded, found.pixels), found.captions, strict=True)
        yield from ((content(one.path), one.captions) for one in data.find("valid"))


@dataclass(frozen=True, kw_only=True)
class CaptionEvaluation(WrittenEvaluation):
    """Captions of a set of pictures, and their scores."""

    results: list[dict[str, Any]]  # COCO's format: image_id and caption

    def details(self) -> list[str]:
        return [speed(len(self.outputs), "pictures", self.seconds)]

    def facts(self) -> dict[str, Any]:
        return {"results": self.results, **super().facts()}


def exact(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> ScoreWithBaselines:
    """Share of captions that match one of the references word for word."""
    words = words_of(hypotheses, references)
    right = [
        words.cut(hypothesis) in [words.cut(answer) for answer in answers]
        for hypothesis, answers in zip(hypotheses, references, strict=True)
    ]
    return mean_of(ratio("exact", words.signature, higher_is_better=True), np.array(right), baselines={})


def scored(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> list[ScoreWithBaselines]:
    """Every score of a set of captions."""
    items = fingerprint(answer for answers in references for answer in answers)
    found = [
        exact(hypotheses, references),
        *bleu_n(hypotheses, references),
        rouge_l(hypotheses, references),
        cider_d(hypotheses, references),
    ]
    return [one._replace(items=items) for one in found]


def evaluate(
    captioner: Captioner, found: Captions, *, title: str, train: Sequence[Sequence[str]]
) -> CaptionEvaluation:
    """Caption and score."""
    given = (
        ParsedInput(Place(name), Picture(pixels, number))
        for name, pixels, number in zip(found.names, found.pixels, found.numbers, strict=True)
    )
    written, wrong, seconds = predicted(captioner, given, CaptionAnswer).checked()
    outputs = ["" if one is None else one.found[0].text for one in written]
    often = Counter(caption for captions in train or found.captions for caption in captions)
    usual = often.most_common(1)[0][0]
    name, answers = f"most frequent caption ({usual!r})", [usual] * len(outputs)
    lowest = scored(answers, found.captions)
    return CaptionEvaluation(
        title=f"{title}, {plural(len(outputs), 'picture')}, {captioner.decoding.describe()}"
        f"{unanswered(wrong, 'scored as empty')}",
        outputs=outputs,
        wrong=wrong,
        scores=[
            ours._replace(baselines={name: theirs.value})
            for ours, theirs in zip(scored(outputs, found.captions), lowest, strict=True)
        ],
        results=[coco(number, text) for number, text in zip(found.numbers, outputs, strict=True)],
        seconds=seconds,
        compared=[ComparedOutputs(outputs, found.captions, baselines={name: answers})],
        forms=_in_form(outputs, found.captions, captioner.vocabulary.form),
    )


def _in_form(outputs: Sequence[str], references: Sequence[Sequence[str]], form: str) -> ScoresInForm | None:
    """The scores in the form of the outputs; None if the references are in it already."""
    texts = [text for answers in references for text in answers]
    lines = not_in_form(texts, form)
    if not lines:
        return None
    found = scored(in_form(outputs, form), [in_form(answers, form) for answers in references])
    scores = {one.score.name: one.value for one in found}
    return ScoresInForm(form_name(form), lines, len(texts), scores)
