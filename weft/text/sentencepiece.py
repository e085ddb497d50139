"""SentencePiece models (.spm) numbered by a vocab.json, as in published Marian translators.

The file is a protocol buffer. We read the few fields that determine segmentation, and the `tokenizers`
library does the rest: normalisation by the file's own table, ▁ for spaces, the most probable segmentation.
Pieces that are not in the vocab.json are unknown. A language mark such as >>fra<< may precede the text.
Read next: imported.py, the same for a tokenizer.json.

Source: Kudo and Richardson 2018; sentencepiece_model.proto.
"""

import base64
import re
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from tokenizers import Encoding, Tokenizer, models

from weft.errors import CheckpointError
from weft.store import jsonfile
from weft.text import protobuf
from weft.text.bounds import guarded, half_pair
from weft.text.characters import Alphabet
from weft.text.charsmap import Charsmap
from weft.text.imported import KEY
from weft.text.pieces import SPECIALS, listed
from weft.text.saved import LARGEST
from weft.text.vocabulary import EOS, PAD, SOS, UNK, Vocabulary, Word

SPACE = "▁"
UNIGRAM, BPE = 1, 2  # TrainerSpec.ModelType
NORMAL, UNKNOWN, USER = 1, 2, 4  # SentencePiece.Type; control and unused pieces never match in a text
NOWHERE = "\ufdd0"  # the library's unknown piece; no text contains this noncharacter
_MARK = re.compile(r">>[^<]*<<")


class SentencePieceModel(NamedTuple):
    """The parts of a .spm that determine segmentation."""

    pieces: list[tuple[str, float]]  # with log-probabilities; the unknown piece first
    table: bytes  # normalisation table; empty for none
    prefixed: bool  # prepend a space to every text
    squeezed: bool  # strip spaces at the ends and merge repeated ones
    kind: str = "unigram"  # or "bpe", whose scores order the merges
    restricted: bool = False  # to the vocabulary: the library's SetVocabulary


class SentencePieces(Vocabulary):
    """A Vocabulary on top of another program's .spm.

    Args:
        model: determines the segmentation.
        names: the piece of each number; the first four are Weft's special symbols.
        framed: append the end symbol to a text, as the encoder expects.
        lowercase: convert texts to lower case first.

    Raises:
        ValueError: the model's table or pieces cannot be used.
    """

    def __init__(
        self, model: SentencePieceModel, names: Sequence[str], *, framed: bool, lowercase: bool = False
    ) -> None:
        self.kind, self.form, self.lowercase = "imported", "none", lowercase
        self._cut = model
        self._names = list(names)
        self._framed = framed
        self._numbers_of = {name: number for number, name in enumerate(names) if number > EOS}
        with guarded("the tokenizer"):
            self._segment = Tokenizer(_segmenter(_restricted(model, self._numbers_of)))
        self._halves = _halves(model) if model.restricted and model.kind == "bpe" else {}
        self._table = Charsmap(model.table)

    @cached_property
    def alphabet(self) -> Alphabet:
        return Alphabet((), reads=lambda character: UNK not in self.encode(character))

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The numbers of many texts; pieces that the vocab.json lacks are unknown.

        Raises:
            DataError: a text contains half a surrogate pair.
        """
        marks = [self._mark(text) for text in texts]
        try:
            cut = [self._normalised(text[len(mark) :]) for text, mark in zip(texts, marks, strict=True)]
            with guarded("the tokenizer"):
                found = self._segment.encode_batch(cut, add_special_tokens=False)
        except (TypeError, UnicodeEncodeError) as error:
            raise half_pair("a text") from error
        end = [EOS] if self._framed else []
        return [
            [
                self._numbers_of.get(piece, UNK)
                for whole in ([mark] if mark else []) + _surfaces(one, text)
                for piece in self._parts(whole)
            ]
            + end
            for mark, one, text in zip(marks, found, cut, strict=True)
        ]

    def decode(self, ids: Iterable[int]) -> str:
        """The text of the pieces; special symbols are left out."""
        pieces = [self._names[number] for number in listed(ids) if number > EOS]
        return "".join(pieces).replace(SPACE, " ").strip()

    def pieces(self, ids: Iterable[int]) -> list[str]:
        return [self._names[number].replace(" ", SPACE) for number in listed(ids)]

    def words(self, ids: Iterable[int], text: str | None = None) -> list[Word]:
        """The words between spaces with the positions of their pieces; special symbols are skipped."""
        numbers = listed(ids)
        found: list[list[int]] = []
        for place, number in enumerate(numbers):
            if number in (PAD, SOS, EOS):
                continue
            if not found or self._names[number].startswith(SPACE):
                found.append([])
            found[-1].append(place)
        return [Word(self.decode(numbers[place] for place in places), places) for places in found]

    def save(self, path: str | Path) -> None:
        cut = self._cut._asdict() | {"table": base64.b64encode(self._cut.table).decode()}
        about = {"sentencepiece": cut, "names": self._names, "framed": self._framed}
        jsonfile.save(Path(path), {KEY: about | ({"lowercase": True} if self.lowercase else {})})

    def __len__(self) -> int:
        return len(self._names)

    def _parts(self, piece: str) -> list[str]:
        """The piece, or what it was merged from if the vocabulary lacks it."""
        if piece in self._numbers_of or piece not in self._halves:
            return [piece]
        left, right = self._halves[piece]
        return self._parts(left) + self._parts(right)

    def _mark(self, text: str) -> str:
        found = _MARK.match(text)
        return found[0] if found else ""

    def _normalised(self, text: str) -> str:
        text = self._table(text.lower() if self.lowercase else text)
        if self._cut.squeezed:
            text = " ".join(part for part in text.split(" ") if part)
        if text and self._cut.prefixed:
            text = " " + text
        return text.replace(" ", SPACE)


def restored(about: dict[str, Any]) -> SentencePieces:
    """Rebuild what `SentencePieces.save` wrote under its key."""
    cut = about["sentencepiece"]
    pieces = [(str(piece), float(score)) for piece, score in cut["pieces"]]
    table = base64.b64decode(cut["table"])
    kind = str(cut.get("kind", "unigram"))
    restricted = bool(cut.get("restricted", False))
    model = SentencePieceModel(pieces, table, bool(cut["prefixed"]), bool(cut["squeezed"]), kind, restricted)
    names = [str(name) for name in about["names"]]
    return SentencePieces(
        model, names, framed=bool(about["framed"]), lowercase=bool(about.get("lowercase", False))
    )


def _surfaces(found: Encoding, text: str) -> list[str]:
    """The pieces; an unknown one as it is in the text, because the vocabulary may have it."""
    return [
        text[begin:end] if piece == NOWHERE else piece
        for piece, (begin, end) in zip(found.tokens, found.offsets, strict=True)
    ]


def _segmenter(model: SentencePieceModel) -> models.Model:
    """The `tokenizers` library's model; of equal scores the piece that comes first is merged first."""
    if model.kind == "unigram":
        return models.Unigram(model.pieces, 0, False)
    numbers = {piece: number for number, (piece, _) in reversed(list(enumerate(model.pieces)))}
    return models.BPE(numbers, list(_merges(model)), unk_token=NOWHERE, fuse_unk=True)


def _merges(model: SentencePieceModel) -> Iterator[tuple[str, str]]:
    """The merges of a BPE model, best first."""
    known = {piece for piece, _ in model.pieces}
    ranked = sorted(enumerate(model.pieces[1:], 1), key=lambda one: (-one[1][1], one[0]))
    for _, (piece, _) in ranked:
        for cut in range(1, len(piece)):
            if piece[:cut] in known and piece[cut:] in known:
                yield piece[:cut], piece[cut:]


def _halves(model: SentencePieceModel) -> dict[str, tuple[str, str]]:
    """What each piece of a BPE model is merged from, if it can be merged in several ways the first."""
    return {left + right: (left, right) for left, right in reversed(list(_merges(model)))}


def _restricted(model: SentencePieceModel, known: Container[str]) -> SentencePieceModel:
    """A unigram model without the pieces that its vocabulary lacks; single characters stay."""
    if not model.restricted or model.kind == "bpe":
        return model
    return model._replace(pieces=[one for one in model.pieces if len(one[0]) == 1 or one[0] in known])


def read_numbers(path: Path, size: int, *, pad: int, start: int, end: int) -> tuple[list[str], list[int]]:
    """The pieces of a vocab.json, renumbered so that Weft's special symbols come first.

    Args:
        path: a JSON table of pieces and their numbers.
        size: rows of the model's embedding table.
        pad, start, end: the model's numbers for padding and for the beginning and end of a text.

    Returns:
        For each of Weft's numbers its piece and its original number; -1 for a symbol it lacks.

    Raises:
        CheckpointError: the file is missing or damaged, or has more pieces than the model.
    """
    try:
        numbers = jsonfile.decode(_bytes(path), dict[str, jsonfile.Count])
        names = {number: piece for piece, number in numbers.items()}
        if len(names) != len(numbers):
            raise ValueError("a number stands for two pieces")
    except ValueError as error:
        raise CheckpointError(
            f"{path}: is no table of pieces and numbers ({error}); fetch it again"
        ) from error
    if max(names, default=0) >= size:
        raise CheckpointError(
            f"{path}: has the number {max(names)}, the model {size} tokens; does it belong to this model?"
        )
    unknown = next((number for number, name in names.items() if name == "<unk>"), -1)
    special = [pad, unknown, start, end]
    order = special + [number for number in range(size) if number not in special]
    return [*SPECIALS, *(names.get(number, f"<{number}>") for number in order[len(special) :])], order


def read_model(path: Path) -> SentencePieceModel:
    """Read a .spm file.

    Raises:
        CheckpointError: the file is missing, damaged or of an unsupported kind.
    """
    try:
        content = protobuf.fields(_bytes(path))
        trainer, normaliser = (protobuf.fields(protobuf.last(content, number, b"")) for number in (2, 3))
        pieces = [_piece(raw) for number, raw in content if number == 1]
        if not pieces:
            raise ValueError("there is no piece in it")
        kind, bytewise = protobuf.last(trainer, 3, UNIGRAM), protobuf.last(trainer, 35, 0)
        behind, spaces = protobuf.last(trainer, 24, 0), protobuf.last(normaliser, 5, 1)
        table = bytes(protobuf.last(normaliser, 2, b""))
        found = [(piece, score) for piece, score, sort in pieces if sort in (NORMAL, USER)]
        model = SentencePieceModel(
            [(NOWHERE, 0.0), *found],
            table,
            bool(protobuf.last(normaliser, 3, 1)),
            bool(protobuf.last(normaliser, 4, 1)),
            "bpe" if kind == BPE else "unigram",
        )
        SentencePieces(model, SPECIALS, framed=False)  # to check its table and pieces now
    except CheckpointError:
        raise
    except Exception as error:
        raise CheckpointError(f"{path}: is no SentencePiece model ({error}); fetch it again") from error
    unusual = bytewise or behind or not spaces or any(sort == USER for _, _, sort in pieces)
    if unusual or kind not in (UNIGRAM, BPE):
        raise CheckpointError(
            f"{path}: expected a SentencePiece model of type unigram or BPE without byte fallback, "
            f"user-defined symbols or suffix spaces, got type {kind}"
        )
    return model


def read_pieces(path: Path) -> list[str]:
    """The pieces of a .spm file by number, special symbols included.

    Raises:
        CheckpointError: see read_model.
    """
    read_model(path)  # checks it
    return [_piece(raw)[0] for number, raw in protobuf.fields(_bytes(path)) if number == 1]


def _piece(raw: bytes) -> tuple[str, float, int]:
    fields = protobuf.fields(raw)
    return (
        bytes(protobuf.last(fields, 1, b"")).decode("utf-8"),
        float(protobuf.last(fields, 2, 0.0)),
        protobuf.last(fields, 3, NORMAL),
    )


def _bytes(path: Path) -> bytes:
    try:
        with open(path, "rb") as file:
            raw = file.read(LARGEST + 1)
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error.strerror}); fetch it again") from error
    if len(raw) > LARGEST:
        raise CheckpointError(f"{path}: is larger than {LARGEST // 2**20} MiB; fetch it again")
    return raw
