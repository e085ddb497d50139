"""Load the vocabulary of a run from its tokenizer.json, the format of the `tokenizers` library.

Reading Weft's own file takes only the pieces, derives the settings (kind, Unicode form, letter case) from its
parts and builds the rest itself, so an untrusted file controls nothing else. `portable` writes the file that
exported models read. Read next: vocabulary.py; imported.py and sentencepiece.py.
"""

import json
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, models

from weft.errors import CheckpointError, ConfigError
from weft.store import jsonfile
from weft.text import imported, sentencepiece
from weft.text.imported import KEY, ImportedVocabulary
from weft.text.pieces import PATTERNS, SPECIALS, cutter
from weft.text.vocabulary import Vocabulary, guarded

_KINDS = {"BPE": "bpe", "Unigram": "unigram", "WordLevel": "word"}
_FORMS = {"NFC": "nfc", "NFKC": "nfkc"}


def load_vocabulary(path: str | Path) -> Vocabulary:
    """Read what `save` of a vocabulary wrote; only pieces and settings are taken, nothing in it is run."""
    path = Path(path)
    content = _content(path)
    if not isinstance(content, dict) or KEY not in content:
        return _own(content, path)
    try:
        about = content.pop(KEY)
        if "sentencepiece" in about:
            return sentencepiece.restored(about)
        return imported.restored(content, about)
    except ConfigError:
        raise
    except Exception as error:
        raise CheckpointError(
            f"{path}: cannot be used ({str(error)[:200]}); import the model again"
        ) from error


def portable(vocabulary: Vocabulary) -> bytes:
    """A tokenizer.json with one more key, `weft`: the normalisation, and the numbering if it is another.

    Special symbols are ordinary entries, so "<eos>" in a text is text, as in Weft.
    """
    content = vocabulary.as_json()
    about = content.pop(KEY, None)
    if about is None:
        about = {}
    elif "sentencepiece" in about:
        raise ConfigError(
            "vocabulary: expected a tokenizer.json, got a sentencepiece model, which the exported program "
            "cannot read; serve the run with weft serve"
        )
    about |= {"form": vocabulary.form, "lowercase": vocabulary.lowercase}
    if isinstance(vocabulary, ImportedVocabulary):
        about |= dict(zip(("before", "after"), vocabulary.around(), strict=True))
    return (json.dumps({**content, KEY: about}, ensure_ascii=False) + "\n").encode()


def portable_cutter(kind: str, *, form: str, lowercase: bool) -> bytes:
    """A tokenizer.json without pieces, which only says how a text is cut into words."""
    made = Tokenizer(models.WordLevel({"<unk>": 1}, unk_token="<unk>"))
    made.pre_tokenizer = cutter(kind)
    content: dict[str, Any] = json.loads(made.to_str())
    return (json.dumps({**content, KEY: {"form": form, "lowercase": lowercase}}) + "\n").encode()


def _content(path: Path) -> Any:
    try:
        return jsonfile.read(path)
    except FileNotFoundError as error:
        why = "is missing; this is not a run directory, or training has not started"
        raise CheckpointError(f"{path}: {why}") from error
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error.strerror}); name a run directory") from error
    except ValueError as error:
        sort = str(error).removeprefix("it is ")
        raise _wrong(path, sort if "larger" in sort or "regular" in sort else "not JSON") from error


def _own(content: Any, path: Path) -> Vocabulary:
    """A vocabulary trained by Weft."""
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


def _parse(content: Any) -> Vocabulary:
    about = content["model"]
    kind = _KINDS.get(about["type"])
    if kind is None:
        raise ValueError(f"a model of type {about['type']!r}, expected one of {', '.join(_KINDS)}")
    steps = [step["type"] for step in content["normalizer"]["normalizers"]]
    if kind == "word" and content["pre_tokenizer"]["pattern"] == {"Regex": PATTERNS["space"]}:
        kind = "space"
    settings: dict[str, Any] = {
        "kind": "character" if kind == "word" and "Prepend" not in steps else kind,
        "form": next((_FORMS[step] for step in steps if step in _FORMS), "none"),
        "lowercase": "Lowercase" in steps,
    }
    if kind == "unigram":
        pieces = [(piece, float(score)) for piece, score in about["vocab"]]
        _check([piece for piece, _ in pieces])
        return Vocabulary(models.Unigram(pieces, 1, False), **settings)
    vocab = {**about["vocab"]}
    if sorted(vocab.values()) != list(range(len(vocab))):
        raise ValueError(f"its {len(vocab)} pieces are not numbered from 0 without gaps")
    _check(sorted(vocab, key=vocab.__getitem__))
    if kind in ("word", "space"):
        return Vocabulary(models.WordLevel(vocab, SPECIALS[1]), **settings)
    merges = [(left, right) for left, right in about["merges"]]
    for left, right in merges:
        if not {left, right, left + right} <= vocab.keys():
            raise ValueError(f"the merge of {left!r} and {right!r} is not among its pieces")
    model = models.BPE(vocab=vocab, merges=merges, unk_token=SPECIALS[1], fuse_unk=True)
    return Vocabulary(model, **settings)


def _check(pieces: list[str]) -> None:
    first = tuple(pieces[: len(SPECIALS)])
    if first != SPECIALS:
        raise ValueError(f"expected its first pieces to be {', '.join(SPECIALS)}, got {', '.join(first)}")
    if len(set(pieces)) < len(pieces):
        raise ValueError("it has a duplicate piece")
