"""tokenizer.json: the format of the `tokenizers` library, which other programs can read.

Weft's settings (kind, Unicode form, letter case) are derived from the file's parts. Reading takes only the
pieces and these settings and builds the rest itself, so an untrusted file controls nothing else.
Read next: vocabulary.py.
"""

from pathlib import Path
from typing import Any, NamedTuple

from tokenizers import models

from weft.errors import CheckpointError
from weft.store import jsonfile
from weft.text.pieces import PATTERNS, SPECIALS
from weft.text.vocabulary import guarded

LARGEST = jsonfile.LARGEST

_KINDS = {"BPE": "bpe", "Unigram": "unigram", "WordLevel": "word"}
_FORMS = {"NFC": "nfc", "NFKC": "nfkc"}


class SavedTokenizer(NamedTuple):
    """The contents of a tokenizer.json."""

    model: models.Model
    settings: dict[str, Any]


def read_content(path: Path) -> Any:
    """The JSON of a tokenizer.json."""
    try:
        return jsonfile.read(path, LARGEST)
    except FileNotFoundError as error:
        why = "is missing; this is not a run directory, or training has not started"
        raise CheckpointError(f"{path}: {why}") from error
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error.strerror}); name a run directory") from error
    except ValueError as error:
        sort = str(error).removeprefix("it is ")
        raise _wrong(path, sort if "larger" in sort or "regular" in sort else "not JSON") from error


def tokenizer_of(content: Any, path: Path) -> SavedTokenizer:
    """The model and the settings in the content of a tokenizer.json."""
    try:
        with guarded("it"):
            return _parse(content)
    except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
        reason = str(error) if type(error) is ValueError else "a part is missing or of the wrong type"
        raise _wrong(path, reason) from error


def _wrong(path: Path, what: str) -> CheckpointError:
    return CheckpointError(
        f"{path}: {what}; this is not a tokenizer.json of Weft, or it is damaged: train again"
    )


def _parse(content: Any) -> SavedTokenizer:
    model = content["model"]
    kind = _KINDS.get(model["type"])
    if kind is None:
        raise ValueError(f"a model of type {model['type']!r}, expected one of {', '.join(_KINDS)}")
    steps = [step["type"] for step in content["normalizer"]["normalizers"]]
    if kind == "word" and content["pre_tokenizer"]["pattern"] == {"Regex": PATTERNS["space"]}:
        kind = "space"
    settings = {
        "kind": "character" if kind == "word" and "Prepend" not in steps else kind,
        "form": next((_FORMS[step] for step in steps if step in _FORMS), "none"),
        "lowercase": "Lowercase" in steps,
    }
    if kind == "unigram":
        pieces = [(piece, float(score)) for piece, score in model["vocab"]]
        _check([piece for piece, _ in pieces])
        return SavedTokenizer(models.Unigram(pieces, 1, False), settings)
    vocab = {**model["vocab"]}
    if sorted(vocab.values()) != list(range(len(vocab))):
        raise ValueError(f"its {len(vocab)} pieces are not numbered from 0 without gaps")
    _check(sorted(vocab, key=vocab.__getitem__))
    if kind in ("word", "space"):
        return SavedTokenizer(models.WordLevel(vocab, SPECIALS[1]), settings)
    merges = [(left, right) for left, right in model["merges"]]
    for left, right in merges:
        if not {left, right, left + right} <= vocab.keys():
            raise ValueError(f"the merge of {left!r} and {right!r} is not among its pieces")
    return SavedTokenizer(
        models.BPE(vocab=vocab, merges=merges, unk_token=SPECIALS[1], fuse_unk=True), settings
    )


def _check(pieces: list[str]) -> None:
    first = tuple(pieces[: len(SPECIALS)])
    if first != SPECIALS:
        raise ValueError(f"expected its first pieces to be {', '.join(SPECIALS)}, got {', '.join(first)}")
    if len(set(pieces)) < len(pieces):
        raise ValueError("it has a duplicate piece")
