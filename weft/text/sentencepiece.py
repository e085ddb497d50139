"""SentencePiece models (.spm) numbered by a vocab.json, as in published Marian translators.

The file is a protocol buffer. We read the few fields that determine segmentation, and the `tokenizers`
library does the rest: normalisation by the file's own table, ▁ for spaces, the most probable segmentation.
Pieces that are not in the vocab.json are unknown. A language mark such as >>fra<< may precede the text.
Read next: imported.py, the same for a tokenizer.json.

Source: Kudo and Richardson 2018; sentencepiece_model.proto.
"""

import base64
import re
import struct
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tokenizers import Tokenizer, models

from weft import jsonfile
from weft.errors import CheckpointError
from weft.text.bounds import guarded, half_pair
from weft.text.charsmap import Charsmap
from weft.text.imported import KEY
from weft.text.pieces import SPECIALS
from weft.text.saved import LARGEST
from weft.text.vocabulary import EOS, PAD, SOS, UNK, Vocabulary, Word, listed

SPACE = "▁"
UNIGRAM = 1  # TrainerSpec.ModelType
NORMAL, UNKNOWN, USER = 1, 2, 4  # SentencePiece.Type; control and unused pieces never match in a text
NOWHERE = "\ufdd0"  # the library's unknown piece; no text contains this noncharacter
_MARK = re.compile(r">>[^<]*<<")


class Model(NamedTuple):
    """The parts of a .spm that determine segmentation."""

    pieces: list[tuple[str, float]]  # with log-probabilities; the unknown piece first
    table: bytes  # normalisation table; empty for none
    prefixed: bool  # prepend a space to every text
    squeezed: bool  # strip spaces at the ends and merge repeated ones


class SentencePieces(Vocabulary):
    """A Vocabulary on top of another program's .spm.

    Args:
        model: determines the segmentation.
        names: the piece of each number; the first four are Weft's special symbols.
        framed: append the end symbol to a text, as the encoder expects.

    Raises:
        ValueError: the model's table or pieces cannot be used.
    """

    def __init__(self, model: Model, names: Sequence[str], *, framed: bool) -> None:
        self.kind, self.form, self.lowercase = "imported", "none", False
        self._cut = model
        self._names = list(names)
        self._framed = framed
        self._numbers_of = {name: number for number, name in enumerate(names) if number > EOS}
        with guarded("the tokenizer"):
            self._segment = Tokenizer(models.Unigram(model.pieces, 0, False))
        self._table = Charsmap(model.table)

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
            [self._numbers_of.get(piece, UNK) for piece in ([mark] if mark else []) + one.tokens] + end
            for mark, one in zip(marks, found, strict=True)
        ]

    def decode(self, ids: Iterable[int]) -> str:
        """The text of the pieces; special symbols are left out."""
        pieces = [self._names[number] for number in listed(ids) if number > EOS]
        return "".join(pieces).replace(SPACE, " ").strip()

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """The pieces for display, with ▁ for a space."""
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
        """Write the file atomically."""
        cut = self._cut._asdict() | {"table": base64.b64encode(self._cut.table).decode()}
        jsonfile.save(Path(path), {KEY: {"sentencepiece": cut, "names": self._names, "framed": self._framed}})

    def __len__(self) -> int:
        return len(self._names)

    def _mark(self, text: str) -> str:
        found = _MARK.match(text)
        return found[0] if found else ""

    def _normalised(self, text: str) -> str:
        text = self._table(text)
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
    model = Model(pieces, table, bool(cut["prefixed"]), bool(cut["squeezed"]))
    return SentencePieces(model, [str(name) for name in about["names"]], framed=bool(about["framed"]))


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
            f"{path}: has the number {max(names)}, the model {size} tokens; is it the one of this model?"
        )
    unknown = next((number for number, name in names.items() if name == "<unk>"), -1)
    special = [pad, unknown, start, end]
    order = special + [number for number in range(size) if number not in special]
    return [*SPECIALS, *(names.get(number, f"<{number}>") for number in order[len(special) :])], order


def read_model(path: Path) -> Model:
    """Read a .spm file.

    Raises:
        CheckpointError: the file is missing, damaged or of an unsupported kind.
    """
    try:
        content = _fields(_bytes(path))
        trainer, normaliser = (_fields(_last(content, number, b"")) for number in (2, 3))
        pieces = [_piece(raw) for number, raw in content if number == 1]
        if not pieces:
            raise ValueError("there is no piece in it")
        kind, bytewise = _last(trainer, 3, UNIGRAM), _last(trainer, 35, 0)
        behind, spaces = _last(trainer, 24, 0), _last(normaliser, 5, 1)
        table = bytes(_last(normaliser, 2, b""))
        found = [(piece, score) for piece, score, sort in pieces if sort in (NORMAL, USER)]
        model = Model(
            [(NOWHERE, 0.0), *found], table, bool(_last(normaliser, 3, 1)), bool(_last(normaliser, 4, 1))
        )
        SentencePieces(model, SPECIALS, framed=False)  # to check its table and pieces now
    except CheckpointError:
        raise
    except Exception as error:
        raise CheckpointError(f"{path}: is no SentencePiece model ({error}); fetch it again") from error
    if kind != UNIGRAM or bytewise or behind or not spaces or any(sort == USER for _, _, sort in pieces):
        raise CheckpointError(
            f"{path}: expected a SentencePiece unigram model without byte fallback, user-defined symbols "
            f"or suffix spaces, got type {kind}"
        )
    return model


Field = tuple[int, Any]


def _fields(data: bytes) -> list[Field]:
    """The fields of a protobuf message: varints as int, 32-bit fields as float, the rest as bytes."""
    return list(_walk(memoryview(data)))


def _walk(data: memoryview) -> Iterator[Field]:
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield number, value
            continue
        size, at = (8, at) if wire == 1 else (4, at) if wire == 5 else _varint(data, at)
        if wire not in (1, 2, 5) or at + size > len(data):
            raise ValueError("it is cut off, or of another format")
        part = bytes(data[at : at + size])
        yield number, struct.unpack("<f", part)[0] if wire == 5 else part
        at += size


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError("it is cut off")
        byte, at = data[at], at + 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def _piece(raw: bytes) -> tuple[str, float, int]:
    fields = _fields(raw)
    return (
        bytes(_last(fields, 1, b"")).decode("utf-8"),
        float(_last(fields, 2, 0.0)),
        _last(fields, 3, NORMAL),
    )


def _last(fields: list[Field], number: int, default: Any) -> Any:
    return next((value for one, value in reversed(fields) if one == number), default)


def _bytes(path: Path) -> bytes:
    try:
        with open(path, "rb") as file:
            raw = file.read(LARGEST + 1)
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error.strerror}); fetch it again") from error
    if len(raw) > LARGEST:
        raise CheckpointError(f"{path}: is larger than {LARGEST // 2**20} MiB; fetch it again")
    return raw
