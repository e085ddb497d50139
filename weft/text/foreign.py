"""Another program's tokenizer.json, read to import a model. Read next: imported.py, what a run has of it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from weft.errors import CheckpointError
from weft.store import jsonfile
from weft.text import bounds
from weft.text.vocabulary import guarded

_SAMPLE = "Ångström, İ: “½” \u1f82 ① 中文 ﷺ"


def numbers_of(path: Path, names: Sequence[str]) -> tuple[list[int], list[int]]:
    """The symbols that another program's tokenizer puts around a text, and the numbers of those it has."""
    tokenizer = _tokenizer_of(path, content_of(path))
    found = [tokenizer.token_to_id(name) for name in names]
    return tokenizer.encode("").ids, [number for number in found if number is not None]


def before_text(path: Path) -> list[int]:
    """The numbers that another program's tokenizer puts before a text."""
    found = _tokenizer_of(path, content_of(path)).encode("a")
    return found.ids[: found.special_tokens_mask.index(0)]


def after_prefix(path: Path, prefix: str) -> tuple[list[int], list[int]] | None:
    """The numbers before and after a text that is read after a prefix, such as "summarize: ".

    Returns:
        None if the prefix changes how the text is cut into pieces.
    """
    tokenizer = _tokenizer_of(path, content_of(path))
    found = tokenizer.encode(f"{prefix}a")
    inner = [n for n, special in enumerate(found.special_tokens_mask) if not special]
    own = tokenizer.encode(prefix.rstrip(), add_special_tokens=False).ids
    for text in ("a", _SAMPLE):
        whole = tokenizer.encode(f"{prefix}{text}", add_special_tokens=False).ids
        if whole != own + tokenizer.encode(text, add_special_tokens=False).ids:
            return None
    return [*found.ids[: inner[0]], *own], found.ids[inner[-1] + 1 :]


def renumbered(
    path: Path, size: int, *, pad: int | None, start: int, end: int
) -> tuple[dict[str, Any], list[int]]:
    """Read another program's tokenizer and renumber it so that Weft's special symbols come first.

    Returns:
        The file's content, and the original number of each of Weft's numbers; -1 for a symbol that the
        tokenizer lacks. A symbol with two roles, such as start and end, appears twice.
    """
    content = content_of(path)
    tokenizer = _tokenizer_of(path, content)
    if tokenizer.get_vocab_size() > size:
        raise CheckpointError(
            f"{path}: has {tokenizer.get_vocab_size()} pieces, the model {size}; is it the right file?"
        )
    names = ("<unk>", "[UNK]", "<|unk|>")
    unknown = next((number for name in names if (number := tokenizer.token_to_id(name)) is not None), -1)
    special = [-1 if pad is None else pad, unknown, start, end]
    return content, special + [number for number in range(size) if number not in special]


def built(content: dict[str, Any]) -> Tokenizer:
    """The library's tokenizer, built only after its cost has been checked."""
    bounds.check_tokenizer_json(content)
    bounds.Growth(content.get("normalizer")).check(_SAMPLE)
    with guarded("the tokenizer"):
        tokenizer = Tokenizer.from_str(json.dumps(content))
        tokenizer.no_padding()
        tokenizer.no_truncation()
        if tokenizer.normalizer is not None:
            tokenizer.normalizer.normalize_str(_SAMPLE)  # a damaged table panics on the first text
    return tokenizer


def _tokenizer_of(path: Path, content: dict[str, Any]) -> Tokenizer:
    try:
        return built(content)
    except Exception as error:
        raise CheckpointError(f"{path}: cannot be used ({str(error)[:200]}); fetch it again") from error


def content_of(path: Path) -> dict[str, Any]:
    """The content of a tokenizer.json."""
    remedy = "the fast tokenizer of the transformers library writes one (save_pretrained)"
    return jsonfile.load(path, dict[str, Any], remedy)
