"""SentencePiece models of other programs, such as published Marian translators: the library cuts, we number.

Pieces are numbered by the program's own list, such as Marian's vocab.json; others are unknown. A language
mark such as >>fra<< may precede the text. Read next: imported.py, the same for a tokenizer.json.

Source: Kudo and Richardson 2018; sentencepiece_model.proto.
"""

import base64
import importlib
import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from weft.errors import CheckpointError, ConfigError
from weft.store import jsonfile
from weft.text.bounds import LONGEST_RULE, longest_rule
from weft.text.characters import Alphabet
from weft.text.imported import KEY
from weft.text.pieces import SPECIALS
from weft.text.vocabulary import EOS, PAD, SOS, UNK, Vocabulary, Word, half_pair, listed

SPACE = "▁"
UNIGRAM, BPE = 1, 2  # TrainerSpec.ModelType
NORMAL, UNUSED = 1, 5  # SentencePiece.Type
_MARK = re.compile(r">>[^<]*<<")


class SentencePieces(Vocabulary):
    """A Vocabulary on top of another program's .spm.

    `names` are the pieces by number, Weft's special symbols first. A text gets the end symbol that the
    encoder expects (`framed`), and is cut into these names only (`restricted`), as after SetVocabulary.
    """

    def __init__(
        self,
        model: bytes,
        names: Sequence[str],
        *,
        framed: bool,
        lowercase: bool = False,
        restricted: bool = False,
    ) -> None:
        self.kind, self.form, self.lowercase = "imported", "none", lowercase
        self._content, self._restricted = model, restricted
        self._names = list(names)
        self._framed = framed
        self._numbers_of = {name: number for number, name in enumerate(names) if number > EOS}
        found = _parsed(model)
        _check(found)
        for entry in found.pieces if restricted else ():
            if entry.type == NORMAL and len(entry.piece) > 1 and entry.piece not in self._numbers_of:
                entry.type = UNUSED
        self._processor = _library("").SentencePieceProcessor(model_proto=found.SerializeToString())

    def around(self) -> tuple[list[int], list[int]]:
        return [], [EOS] if self._framed else []

    @cached_property
    def alphabet(self) -> Alphabet:
        pieces = (name.removeprefix(SPACE) for name in self._names[EOS + 1 :])
        known = [piece for piece in pieces if len(piece) == 1]
        return Alphabet(
            known, reads=lambda character: UNK not in self.encode(character), symbol=self._language
        )

    def _language(self, text: str) -> str:
        """The symbol of a language that begins a text, or ""."""
        found = _MARK.match(text)
        return found[0] if found and found[0] in self._numbers_of else ""

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The numbers of many texts; pieces that the list lacks are unknown."""
        marks = [found[0] if (found := _MARK.match(text)) else "" for text in texts]
        cut = [text[len(mark) :] for text, mark in zip(texts, marks, strict=True)]
        try:
            lowered = [text.lower() for text in cut] if self.lowercase else cut
            rows = self._processor.encode(lowered, out_type=str, num_threads=1)
        except (TypeError, UnicodeEncodeError) as error:
            raise half_pair("a text") from error
        end = [EOS] if self._framed else []
        return [
            [*(self._numbers_of.get(piece, UNK) for piece in ([mark] if mark else []) + row), *end]
            for mark, row in zip(marks, rows, strict=True)
        ]

    def decode(self, ids: Iterable[int]) -> str:
        """The text of the pieces; special symbols are left out."""
        pieces = [self._names[number] for number in listed(ids) if number > EOS]
        # Source and target may share one list of names; a piece that only the other model has keeps its ▁.
        return str(self._processor.decode(pieces)).replace(SPACE, " ").strip()

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

    def as_json(self) -> dict[str, Any]:
        cut = {"model": base64.b64encode(self._content).decode(), "restricted": self._restricted}
        about = {"sentencepiece": cut, "names": self._names, "framed": self._framed}
        return {KEY: about | ({"lowercase": True} if self.lowercase else {})}

    def __len__(self) -> int:
        return len(self._names)


def restored(about: dict[str, Any]) -> SentencePieces:
    """Rebuild what `SentencePieces.save` wrote under its key."""
    cut = about["sentencepiece"]
    return SentencePieces(
        base64.b64decode(cut["model"]),
        [str(name) for name in about["names"]],
        framed=bool(about["framed"]),
        lowercase=bool(about.get("lowercase", False)),
        restricted=bool(cut.get("restricted", False)),
    )


def read_numbers(path: Path, size: int, *, pad: int, start: int, end: int) -> tuple[list[str], list[int]]:
    """The pieces of a vocab.json, renumbered so that Weft's special symbols come first.

    Returns for each of Weft's numbers its piece and its original number; -1 for a symbol it lacks.
    """
    numbers = jsonfile.load(path, dict[str, jsonfile.Count], "fetch it again")
    names = {number: piece for piece, number in numbers.items()}
    if len(names) != len(numbers):
        raise CheckpointError(f"{path}: a number stands for two pieces; fetch it again")
    if max(names, default=0) >= size:
        raise CheckpointError(
            f"{path}: has the number {max(names)}, the model {size} tokens; does it belong to this model?"
        )
    unknown = next((number for number, name in names.items() if name == "<unk>"), -1)
    special = [pad, unknown, start, end]
    order = special + [number for number in range(size) if number not in special]
    return [*SPECIALS, *(names.get(number, f"<{number}>") for number in order[len(special) :])], order


def read_model(path: Path) -> bytes:
    """The content of a .spm file, checked."""
    try:
        raw = jsonfile.read_bytes(path, jsonfile.LARGEST)
        SentencePieces(raw, SPECIALS, framed=False)
    except ConfigError:
        raise
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error.strerror}); fetch it again") from error
    except Exception as error:
        raise CheckpointError(f"{path}: is no SentencePiece model ({error}); fetch it again") from error
    return raw


def read_pieces(path: Path) -> list[str]:
    """The pieces of a .spm file by number, special symbols included."""
    return [entry.piece for entry in _parsed(read_model(path)).pieces]


def _parsed(model: bytes) -> Any:
    found = _library(".sentencepiece_model_pb2").ModelProto()
    try:
        found.ParseFromString(model)
    except Exception as error:  # protobuf's DecodeError
        raise ValueError("it is cut off, or of another format") from error
    return found


def _check(found: Any) -> None:
    """Refuse a model of another kind, or one whose texts could grow without end."""
    kind, spaces = found.trainer_spec.model_type, found.normalizer_spec.escape_whitespaces
    if not found.pieces:
        raise ValueError("there is no piece in it")
    if kind not in (UNIGRAM, BPE) or found.trainer_spec.treat_whitespace_as_suffix or not spaces:
        raise ValueError(f"expected type unigram or BPE without suffix spaces, got type {kind}")
    if (longest := longest_rule(found.normalizer_spec.precompiled_charsmap)) > LONGEST_RULE:
        raise ValueError(f"a rule of its table writes {longest} bytes, at most {LONGEST_RULE} may be")


def _library(part: str) -> Any:
    """The library, which takes a while to load and few runs need."""
    return importlib.import_module(f"sentencepiece{part}")
