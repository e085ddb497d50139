"""A tokenizer.json trained by another program, renumbered so that Weft's special symbols come first.

The file is the `tokenizers` library's with one more key, `weft`: the original number of each of Weft's
numbers (-1 for a symbol that the tokenizer lacks), and whether texts are encoded with the tokenizer's own
special symbols around them. Normalisation and segmentation are the file's own; nothing is trained here.
Read next: vocabulary.py.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from weft import jsonfile
from weft.errors import CheckpointError, DataError
from weft.text import bounds
from weft.text.vocabulary import EOS, UNK, Vocabulary, Word, listed

KEY = "weft"
_SPACES = {"Ġ": " ", "▁": " "}  # how byte-level and SentencePiece tokenizers write the space before a word
_SAMPLE = "Ångström, İ: “½” \u1f82 ① 中文 ﷺ"


class Imported(Vocabulary):
    """A Vocabulary on top of another program's tokenizer.

    Args:
        content: the tokenizer.json without the key `weft`.
        order: the original number of each number; -1 if there is none.
        framed: encode with the special symbols that the tokenizer puts before and after a text.
        known: pieces with this number or a larger one are the tokenizer's alone and unknown to the model;
            None for an error there.

    Raises:
        ValueError: the content is damaged or could use unbounded time or memory (bounds.py).
    """

    def __init__(
        self, content: dict[str, Any], order: Sequence[int], *, framed: bool, known: int | None = None
    ) -> None:
        self.kind, self.form, self.lowercase = "imported", "none", False
        self._content = content
        self._order = list(order)
        self._framed = framed
        self._limit = known
        model = content.get("model") or {}
        self._ending = model.get("end_of_word_suffix") or ""
        self._whole = model.get("type") == "WordLevel" and not content.get("decoder")  # pieces are words
        self._tokenizer = _built(content)
        self._growth = bounds.Growth(content.get("normalizer"))
        added = self._tokenizer.get_added_tokens_decoder().items()
        self._marks = {number for number, token in added if token.special}
        self._number = {there: here for here, there in reversed(list(enumerate(order))) if there >= 0}
        if known is not None:
            for there in self._tokenizer.get_vocab().values():
                if there >= known:
                    self._number[there] = UNK

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The numbers of many texts.

        Raises:
            DataError: a text contains half a surrogate pair or becomes far too long when normalised; or the
                tokenizer fails, or has a piece that the model lacks.
        """
        try:
            for text in texts:
                self._growth.check(text)
            with bounds.guarded("the tokenizer"):
                found = self._tokenizer.encode_batch(list(texts), add_special_tokens=self._framed)
            return [[self._number[there] for there in one.ids] for one in found]
        except (TypeError, UnicodeEncodeError) as error:
            raise bounds.half_pair("a text") from error
        except KeyError as error:
            raise DataError(
                f"the tokenizer gives the number {error}, the model has {len(self._number)} tokens; "
                "import it with the tokenizer it was trained with"
            ) from None

    def begin(self) -> list[int]:
        """The symbols that the tokenizer puts before a text, if it is encoded with them."""
        return self.around()[0]

    def around(self) -> tuple[list[int], list[int]]:
        """The symbols that the tokenizer puts before and after a text, if it is encoded with them."""
        if not self._framed:
            return [], []
        found = self._tokenizer.encode("a")
        numbers, inner = [self._number[there] for there in found.ids], found.special_tokens_mask
        return numbers[: inner.index(0)], numbers[len(inner) - inner[::-1].index(0) :]

    def decode(self, ids: Iterable[int]) -> str:
        """The text of the pieces; special symbols are left out."""
        there = [self._order[number] for number in listed(ids) if number > EOS]
        with bounds.guarded("the tokenizer's decoder"):
            return self._tokenizer.decode([number for number in there if number >= 0]).strip()

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """The pieces for display, with ▁ for a space."""
        return [self._piece(number).replace(" ", "▁") for number in listed(ids)]

    def words(self, ids: Iterable[int], text: str | None = None) -> list[Word]:
        """The words between spaces with the positions of their pieces; special symbols are skipped."""
        numbers = listed(ids)
        found: list[list[int]] = []
        begin = self.begin()
        first = len(begin) if numbers[: len(begin)] == begin else 0  # a prefix may have words too
        for place, number in enumerate(numbers):
            if place < first or number <= EOS or self._order[number] in self._marks:
                continue
            if not found or self._begins(number, numbers[found[-1][-1]]):
                found.append([])
            found[-1].append(place)
        return [Word(self.decode(numbers[place] for place in places), places) for places in found]

    def save(self, path: str | Path) -> None:
        """Write the file atomically."""
        about: dict[str, Any] = {"order": self._order, "framed": self._framed}
        about |= {} if self._limit is None else {"known": self._limit}
        jsonfile.save(Path(path), {**self._content, KEY: about})

    def __len__(self) -> int:
        return len(self._order)

    def _begins(self, number: int, before: int) -> bool:
        """Whether a piece begins a word, behind another piece."""
        if self._ending:
            return self._piece(before).endswith(" ")
        return self._whole or self._piece(number).startswith(" ")

    def _piece(self, number: int) -> str:
        there = self._order[number]
        piece = self._tokenizer.id_to_token(there) if there >= 0 else None
        if piece is None:
            return f"<{number}>"
        if self._ending and piece.endswith(self._ending):
            return f"{piece.removesuffix(self._ending)} "
        return _SPACES.get(piece[:1], piece[:1]) + piece[1:]


def numbers_of(path: Path, names: Sequence[str]) -> tuple[list[int], list[int]]:
    """The symbols that another program's tokenizer puts around a text, and the numbers of those it has.

    Args:
        path: its tokenizer.json.
        names: symbols to look for.

    Raises:
        CheckpointError: the file is missing or damaged.
    """
    tokenizer = _tokenizer_of(path, content_of(path))
    found = [tokenizer.token_to_id(name) for name in names]
    return tokenizer.encode("").ids, [number for number in found if number is not None]


def after_prefix(path: Path, prefix: str) -> tuple[list[int], list[int]] | None:
    """The numbers before and after a text that is read after a prefix, such as "summarize: ".

    Args:
        path: another program's tokenizer.json.
        prefix: the words before the text, with a space at the end.

    Returns:
        None if the prefix changes how the text is cut into pieces.

    Raises:
        CheckpointError: the file is missing or damaged.
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

    Args:
        path: its tokenizer.json.
        size: rows of the model's embedding table.
        pad, start, end: the model's numbers for padding and for the beginning and end of a text.

    Returns:
        The file's content, and the original number of each of Weft's numbers; -1 for a symbol that the
        tokenizer lacks. A symbol with two roles, such as start and end, appears twice.

    Raises:
        CheckpointError: the file is missing or damaged, or has more pieces than the model.
    """
    content = content_of(path)
    tokenizer = _tokenizer_of(path, content)
    if tokenizer.get_vocab_size() > size:
        raise CheckpointError(
            f"{path}: has {tokenizer.get_vocab_size()} pieces, the model {size}; is it the one of this model?"
        )
    names = ("<unk>", "[UNK]", "<|unk|>")
    unknown = next((number for name in names if (number := tokenizer.token_to_id(name)) is not None), -1)
    special = [-1 if pad is None else pad, unknown, start, end]
    return content, special + [number for number in range(size) if number not in special]


def restored(content: dict[str, Any], about: dict[str, Any]) -> Imported:
    """The vocabulary of a file that `Imported.save` wrote, from its content and what stands under KEY."""
    order = [int(number) for number in about["order"]]
    known = about.get("known")
    return Imported(content, order, framed=bool(about["framed"]), known=None if known is None else int(known))


def _built(content: dict[str, Any]) -> Tokenizer:
    """The library's tokenizer, built only after its cost has been checked."""
    bounds.check(content)
    bounds.Growth(content.get("normalizer")).check(_SAMPLE)
    with bounds.guarded("the tokenizer"):
        tokenizer = Tokenizer.from_str(json.dumps(content))
        tokenizer.no_padding()
        tokenizer.no_truncation()
        if tokenizer.normalizer is not None:
            tokenizer.normalizer.normalize_str(_SAMPLE)  # a damaged table panics on the first text
    return tokenizer


def _tokenizer_of(path: Path, content: dict[str, Any]) -> Tokenizer:
    try:
        return _built(content)
    except Exception as error:
        raise CheckpointError(f"{path}: cannot be used ({str(error)[:200]}); fetch it again") from error


def content_of(path: Path) -> dict[str, Any]:
    """The content of a tokenizer.json.

    Raises:
        CheckpointError: the file is missing, or no JSON object.
    """
    try:
        content = jsonfile.read(path)
        if not isinstance(content, dict):
            raise ValueError("it is no table")
        return content
    except FileNotFoundError:
        raise CheckpointError(
            f"{path}: is missing; the fast tokenizer of the transformers library writes one (save_pretrained)"
        ) from None
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path}: cannot be read ({error}); fetch it again") from error
