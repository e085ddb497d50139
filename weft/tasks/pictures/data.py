"""A recipe's sections `data` and `model` for pictures, from files or generated; and the checks of pictures.

Read next: ../../data/images.py, which reads them; ../../data/shapes.py, which makes them.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
import torch

from weft.data.images import (
    CAPTIONED,
    LABELLED,
    ImageCaptions,
    LabelledImage,
    folders,
    is_clip,
    labelled_images,
    parts_in,
    read_array,
    read_captions,
    read_clip,
    read_picture,
    stack,
)
from weft.data.listed import ListedText, columns_note, list_of, listed_pictures
from weft.data.report import COMMON, Finding, Report, SeenContent, other_form, placed
from weft.data.several import check_hold_out, is_held_out
from weft.data.shapes import shapes
from weft.errors import ConfigError, DataError, MissingSplitError
from weft.models import Generator, Labeller
from weft.nn.decoders.decoder import Decoder
from weft.nn.decoders.recurrent import RecurrentDecoder
from weft.nn.decoders.transformer import TransformerDecoder
from weft.nn.embed.tokens import Tokens
from weft.nn.encoders.encoder import BagEncoder, Encoder
from weft.nn.encoders.recurrent import RecurrentEncoder
from weft.nn.heads.categorical import Categorical
from weft.nn.pictures.convolution import ConvolutionFront
from weft.nn.pictures.front import Front
from weft.nn.pools import Mean, Pool
from weft.setting_types import AtLeastOne, Bounds, DropoutRate, Features, Section, Share, Whole, check_fields
from weft.tasks.init import VALID_NAMES
from weft.tasks.labels.splits import can_hold_out, few, thinly_held_out, thinly_scored
from weft.tasks.pictures.pictures import check_shape
from weft.tasks.task import SPLITS, Progress, Split
from weft.tasks.vocabulary import WordSettings
from weft.wording import plural

SIDE = 24
"""Default side of a generated picture in pixels."""

LEAST = 12
"""Smallest side of a generated picture."""


class Captions(NamedTuple):
    """Pictures of one shape with their captions."""

    pixels: np.ndarray  # [N, height, width, 3] uint8, or features [N, ..] float32
    captions: list[list[str]]
    names: list[str]
    numbers: list[int | str]  # COCO's image_id


@dataclass(frozen=True, kw_only=True)
class CaptionData:
    """Pictures with captions. All pictures of a split are held in memory.

    Args:
        generated: "shapes" generates pictures instead of reading files: "a red circle at the top left".
        train, valid, test: a table with columns image and caption (.csv, .tsv, .xlsx), .jsonl (records
            with image and captions) or a .json of COCO, Karpathy or BLIP; one with a column split may serve
            as all three. A picture may also be a .npy of features, of regions [S, F] or a grid [H, W, F].
        hold_out: without `valid`, 20 holds out one training picture of every 20 to choose the checkpoint.
        folder: folder of these files; by default the current one.
        images: folder or .zip of the pictures, within `folder`; by default the folder of the captions, or
            images.zip there.
        size: side in pixels that pictures are scaled to; null if all have the same size.
        language: language of the captions, if records have several.
        examples, valid_examples, test_examples: number of generated examples.
        vocabulary: of the captions.
        max_length: maximum tokens of a caption; training cuts longer ones.
        batch_rows: captions per batch.
        seed: of the generated data.
    """

    generated: Literal["shapes"] | None = None
    train: str | None = None
    valid: str | None = None
    test: str | None = None
    hold_out: int = 0
    folder: Path = Path()
    images: str | None = None
    size: Features | None = None
    language: str = "en"
    examples: AtLeastOne = 4000
    valid_examples: AtLeastOne = 300
    test_examples: AtLeastOne = 1000
    vocabulary: WordSettings = field(default_factory=WordSettings)
    max_length: AtLeastOne = 40
    batch_rows: AtLeastOne = 64
    seed: Whole = 1

    def __post_init__(self) -> None:
        check_fields(self)
        if self.generated and self.size is not None and self.size < LEAST:
            raise ConfigError(f"size: expected at least {LEAST} pixels, got {self.size}")
        if (self.generated is None) == (self.train is None):
            raise ConfigError("set exactly one of generated: shapes and train (your files)")
        own = "generated pictures" if self.generated else ""
        check_hold_out(self.hold_out, valid=self.valid, own=own)

    def has(self, split: Split) -> bool:
        """Whether the recipe has the split."""
        held_out = split == "valid" and self.hold_out > 0
        return held_out or self.generated is not None or getattr(self, split) is not None

    def find(self, split: Split) -> list[ImageCaptions]:
        """The content of a split's file, after checking that every picture exists; empty if generated."""
        if self.generated is not None:
            return []
        if self.hold_out and split != "test":
            found = self.at(self.folder / str(self.train), "train")
            held = split == "valid"
            return [one for n, one in enumerate(found) if is_held_out(n, self.hold_out) is held]
        path = getattr(self, split)
        if path is None:
            raise MissingSplitError.of(split, "pictures", "FILE")
        return self.at(self.folder / path, split)

    def at(self, path: Path, split: Split | None = None) -> list[ImageCaptions]:
        """The captions of another file; its pictures are in the recipe's folder or next to the file."""
        images = None if self.images is None else self.folder / self.images
        return read_captions(path, images, split=split, language=self.language)

    def load(self, split: Split) -> Captions:
        """All pictures of a split."""
        if self.generated is None:
            return self.read(self.find(split))
        count = {"train": self.examples, "valid": self.valid_examples, "test": self.test_examples}[split]
        pixels, seen = shapes([self.seed, SPLITS.index(split)], range(count), self.size or SIDE)
        names = [f"{split}-{number}" for number in range(count)]
        return Captions(pixels, [[one.caption] for one in seen], names, list(range(count)))

    def read(self, found: Sequence[ImageCaptions]) -> Captions:
        """The pictures of a file's captions."""
        paths = [one.path for one in found]
        return Captions(
            self.pictures(paths),
            [one.captions for one in found],
            [one.path.name for one in found],
            [one.number for one in found],
        )

    @property
    def side(self) -> int | None:
        """To which pictures are scaled, in pixels; a model of generated ones accepts one size."""
        return self.size or (SIDE if self.generated else None)

    def pictures(self, paths: Sequence[Path]) -> np.ndarray:
        """The pictures [N, ..] in these files."""
        return stack(
            paths, [read(path, self.side) for path in paths], "scale them, for example with data.size: 32"
        )

    def pictures_of(self, split: Split, file: Path | None, shape: tuple[int, ...]) -> Captions:
        """The pictures of a split, or those of the user's captions file."""
        found = self.load(split) if file is None else self.read(self.at(file))
        check_shape(found.pixels.shape[1:], shape, file or split)
        return found

    def describe(self, split: Split) -> str:
        """The data of a split, for a title."""
        if self.generated is not None:
            return f"generated {self.generated}, {split}, {self.size or SIDE} pixels, seed {self.seed}"
        held_out = self.hold_out and split == "valid"
        return f"{Path(str(self.train if held_out else getattr(self, split))).name} {split}"


def read(path: Path, size: int | None) -> np.ndarray:
    """A picture as uint8, or the features of a .npy as float32."""
    if path.suffix.lower() != ".npy":
        return read_picture(path, size)
    found = read_array(path)
    if found.ndim not in (1, 2, 3):
        raise DataError(
            f"expected [features], [regions, features] or a grid of them, got {found.ndim} axes", path=path
        )
    return found.astype(np.float32)


@dataclass(frozen=True, kw_only=True)
class DrawData(CaptionData):
    """Captions with pictures to draw: as in CaptionData, and the tiles of pictures.

    Args:
        tile: side of a tile in pixels; 1 draws pixel by pixel.
        tiles: maximum size of the palette, learnt from the training pictures.
    """

    tile: AtLeastOne = 3
    tiles: Annotated[int, Bounds(ge=2)] = 512

    def __post_init__(self) -> None:
        super().__post_init__()
        side = self.side or 0
        if side % self.tile:
            raise ConfigError(
                f"tile: expected a divisor of {side}, the side of the pictures, got {self.tile}"
            )


class Pictures(NamedTuple):
    """Pictures of one shape with their captions, to train on and to validate with."""

    train: Captions
    valid: Captions


def read_pictures(data: CaptionData, progress: Progress) -> Pictures:
    """The training and validation pictures."""
    progress("reading pictures", 0, None)
    found = Pictures(data.load("train"), data.load("valid"))
    shape, other = (one.pixels.shape[1:] for one in found)
    check_shape(other, shape, data.describe("valid"))
    return found


HOLD_OUT = 10
"""`weft init` holds so many of the pictures out, the tenth part."""

MORE = "add pictures, or a validation part"
"""What to do about a class of which few pictures are held out."""

SIZES = "pictures of other sizes"
AGAIN = {
    "duplicate": "duplicate pictures",
    "overlap": "pictures that are also in an earlier folder or list",
}
CAPTIONS = COMMON | {
    "file": "pictures or files that cannot be read",
    "unlabelled": "pictures without a caption",
    **AGAIN,
    "ratio": SIZES,
}
CLASSES = COMMON | {
    "file": "pictures, clips or folders that cannot be read",
    "single": "folders without two classes",
    "thin": "folders or lists with few pictures of a class to score",
    "unlabelled": "classes without pictures, or pictures without a class",
    "nothing": "files that are not pictures",
    "unseen": "classes that the training pictures lack",
    **AGAIN,
    "ratio": SIZES,
}


CHECK_OPTIONS = ("images",)
"""The options of `check_captions`, by their names on the command line."""


def check_captions(files: Sequence[Path], images: str | None = None) -> Report:
    """Check every row of lists of captions, and every picture they name."""
    findings: list[Finding] = []
    lines = {}
    notes: list[str] = []
    seen = SeenContent()
    for path in files:
        where = folders(path, None if images is None else Path(images))
        try:
            rows = list(listed_pictures(path, CAPTIONED, where))
            notes += columns_note(path, CAPTIONED)
        except DataError as error:
            findings.append(placed(str(path), error))
            lines[str(path)] = 0
            continue
        lines[str(path)] = len(rows)
        texts = [(row.number, row.text) for row in rows if isinstance(row, ListedText)]
        findings += [one for one in rows if isinstance(one, Finding)]
        findings += other_form(str(path), texts)
        sizes: dict[tuple[int, ...], Path] = {}
        pictures = (row.path for row in rows if isinstance(row, ListedText) and row.path is not None)
        for picture in dict.fromkeys(pictures):
            findings += _picture(picture, sizes, seen, str(path))
    counts = dict(Counter(one.kind for one in findings))
    return Report(findings, counts, lines, CAPTIONS, "lines", notes=tuple(notes), each=3)


def check_classes(files: Sequence[Path]) -> Report:
    """Check every picture or clip in folders with a folder for each class, or of lists with classes.

    The first is for training: later ones have no other classes, and none of its pictures.
    """
    findings: list[Finding] = []
    lines: dict[str, int] = {}
    notes: list[str] = []
    seen = SeenContent()
    trained: set[str] = set()
    every = [part for path in files for part in (parts_in(path).items() or [(None, path)])]
    for part, path in every:
        name = f"{path} ({part})" if part and not path.is_dir() else str(path)
        try:
            found = list(labelled_images(path, part))
            notes += columns_note(path, LABELLED) if list_of(path).is_file() and not lines else ()
        except DataError as error:
            findings.append(placed(str(path), error))
            continue
        findings += (one for one in found if isinstance(one, Finding))
        pictures = [one for one in found if isinstance(one, LabelledImage)]
        labels = [one.label for one in pictures]
        lines[name] = len(pictures)
        if len(set(labels)) < 2 and pictures:
            what = f"expected two or more classes, got {len(set(labels))}"
            findings.append(Finding(str(path), 0, "single", what))
        for label in sorted(set(labels) - trained) if trained else ():
            alike = next((one for one in trained if one.casefold() == label.casefold()), None)
            hint = f"; is it {alike!r}?" if alike else ""
            what = f"{plural(labels.count(label), 'picture')} of {label!r}, a class that {every[0][1]} lacks"
            findings.append(Finding(str(path), 0, "unseen", f"{what}, so their answers are wrong{hint}"))
        thin = thinly_scored(sorted(trained), Counter(labels), "add pictures")
        trained = trained or set(labels)
        clips = all(is_clip(one.path) for one in pictures)
        sizes: dict[tuple[int, ...], Path] = {}
        for one in pictures:
            findings += _picture(one.path, sizes, seen, name, clip=clips)
        beside = len(every) > 1 or any(path.with_name(name).is_dir() for name in VALID_NAMES)
        if len(set(labels)) > 1 and not beside and not can_hold_out(labels, HOLD_OUT):
            findings.append(Finding(str(path), 0, "single", few(len(labels), "pictures")))
        elif len(set(labels)) > 1 and not beside:
            thin = thinly_held_out(Counter(labels), HOLD_OUT, MORE)
        findings += [Finding(name, 0, "thin", thin)] if thin else []
    counts = dict(Counter(one.kind for one in findings))
    return Report(findings, counts, lines, CLASSES, "pictures", notes=tuple(notes), each=3)


def _picture(
    path: Path,
    sizes: dict[tuple[int, ...], Path],
    seen: SeenContent,
    source: str,
    clip: bool = False,
) -> Iterator[Finding]:
    try:
        pixels = read_clip(path) if clip else read(path, None)
    except DataError as error:
        yield placed(str(path), error)
        return
    shape = pixels.shape
    first = next(iter(sizes), shape)
    if shape != first and shape not in sizes:
        ours, theirs = (" x ".join(map(str, one)) for one in (shape, first))
        setting = "data.frames" if clip and shape[0] != first[0] else "data.size"
        what = f"{ours}, but {sizes[first]} has {theirs}; set {setting} so that all are scaled"
        yield Finding(str(path), 0, "ratio", what)
    sizes.setdefault(shape, path)
    if found := seen.again(pixels.tobytes() + str(shape).encode(), str(path), source):
        kind, other = found
        what = f"is in {source} too" if other == str(path) else f"the same picture as {other}"
        yield Finding(str(path), 0, kind, what)


@dataclass(frozen=True, kw_only=True)
class CaptionModel(Section):
    """A front end for pictures, an encoder of its places, and a decoder that attends to them.

    Args:
        front: a part of nn/pictures: convolution, patches, or regions of given features.
        encoder: a part of nn/encoders; `bag` leaves the front end's places unchanged.
        decoder: a part of nn/decoders.
        size: features of a word's vector.
        dropout: share of a word's features set to zero in training.
        smoothing: share of each word's probability spread over the vocabulary in training.
    """

    renamed: ClassVar[Mapping[str, str]] = {"width": "size"}

    front: Callable[..., Front] = ConvolutionFront
    encoder: Callable[..., Encoder] = BagEncoder
    decoder: Callable[..., Decoder] = RecurrentDecoder
    size: Features = 128
    dropout: DropoutRate = 0.1
    smoothing: Share = 0.0

    def build(self, shape: tuple[int, ...], words: int) -> Generator:
        """A new model for pictures of shape `shape` and a vocabulary of `words` words."""
        front = self.front(shape)
        encoder = self.encoder(front.size)
        embed = Tokens(words, self.size, dropout=self.dropout)
        decoder = self.decoder(self.size, encoder)
        head = Categorical(decoder.size, words, smoothing=self.smoothing)
        return Generator(embed, decoder, head, encoder=encoder, source_embed=front)


@dataclass(frozen=True, kw_only=True)
class ImageModel(Section):
    """A front end for pictures, an encoder of its places, a pool and a classifier.

    Args:
        front: a part of nn/pictures.
        encoder: a part of nn/encoders; `bag` leaves the front end's places unchanged.
        pool: a part of nn/pools.py.
        smoothing: share of each class's probability spread over all of them in training.
    """

    front: Callable[..., Front] = ConvolutionFront
    encoder: Callable[..., Encoder] = BagEncoder
    pool: Callable[..., Pool] = Mean
    smoothing: Share = 0.0

    def build(self, shape: tuple[int, ...], classes: int) -> Labeller:
        """A new model for pictures or clips of shape `shape`."""
        front = self.front(shape)
        encoder = self.encoder(front.size)
        pool = self.pool(encoder.size)
        return Labeller(front, encoder, Categorical(pool.size, classes, smoothing=self.smoothing), pool=pool)


@dataclass(frozen=True, kw_only=True)
class DrawModel(Section):
    """An encoder of words, and a decoder that writes a picture's tiles in reading order.

    Args:
        encoder: a part of nn/encoders.
        decoder: a part of nn/decoders.
        size: features of the vectors of words and tiles.
        dropout: share of their features set to zero in training.
    """

    renamed: ClassVar[Mapping[str, str]] = {"width": "size"}

    encoder: Callable[..., Encoder] = RecurrentEncoder
    decoder: Callable[..., Decoder] = TransformerDecoder
    size: Features = 128
    dropout: DropoutRate = 0.0

    def build(self, words: int, tiles: int) -> Generator:
        """A new model for these numbers of words and tiles, both with the four special symbols."""
        encoder = self.encoder(self.size)
        embed = Tokens(tiles, self.size, dropout=self.dropout)
        decoder = self.decoder(self.size, encoder)
        head = Categorical(decoder.size, tiles)
        source = Tokens(words, self.size, dropout=self.dropout)
        return Generator(embed, decoder, head, encoder=encoder, source_embed=source)


def places_of(front: Callable[..., Front], shape: tuple[int, ...]) -> int:
    """The number of places of a front end for a picture; draws no random numbers."""
    with torch.device("meta"):  # without weights
        return front(shape).places
