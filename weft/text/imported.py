"""A tokenizer.json trained by another program, read and renumbered so that Weft's special symbols come first.

The file is the `tokenizers` library's with one more key, `weft`: the original number of each of Weft's
numbers (-1 for a symbol that the tokenizer lacks), and whether texts are encoded with the tokenizer's own
special symbols around them, or as whole texts of a language model. Normalisation and segmentation are the
file's own; nothing is trained here. Read next: vocabulary.py.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer
from tokenizers.decoders import DecodeStream

from weft.errors import CheckpointError, DataError
from weft.store import jsonfile
from weft.text import bounds
from weft.text.bounds import Growth
from weft.text.characters import Alphabet
from weft.text.vocabulary import EOS, UNK, Vocabulary, Word, guarded, half_pair, listed

KEY = "weft"
_SPACES = {"Ġ": " ", "▁": " "}  # how byte-level and SentencePiece tokenizers write the space before a word
_LINE_ENDS = ("\n", "Ċ")


class ImportedVocabulary(Vocabulary):
    """A Vocabulary on top of another program's tokenizer.

    Args:
        content: the tokenizer.json without the key `weft`.
        order: the original number of each number; -1 if there is none.
        framed: encode with the special symbols that the tokenizer puts before and after a text.
        known: pieces with this number or a larger one are the tokenizer's alone and unknown to the model;
            None for an error there.
        opening: numbers read before a whole text, line ends included; None if texts are lines.
    """

    def __init__(
        self,
        content: dict[str, Any],
        order: Sequence[int],
        *,
        framed: bool,
        known: int | None = None,
        opening: Sequence[int] | None = None,
    ) -> None:
        self.kind, self.form, self.lowercase = "imported", "none", False
        self.content = content
        self.order = list(order)
        self._framed = framed
        self._limit = known
        model = content.get("model") or {}
        self._ending = model.get("end_of_word_suffix") or ""
        self._inside = model.get("continuing_subword_prefix") or ""
        self._wordlist = model.get("type") == "WordLevel"
        self._whole = self._wordlist and not content.get("decoder")  # pieces are words
        self._tokenizer = built(content)
        self._growth = Growth(content.get("normalizer"))
        added = self._tokenizer.get_added_tokens_decoder().items()
        self._marks = {number for number, token in added if token.special}
        self._opening = None if opening is None else list(opening)
        # Of a symbol with two roles, a language model predicts the last one, the end.
        numbers = list(enumerate(order)) if opening is not None else reversed(list(enumerate(order)))
        self._number = {there: here for here, there in numbers if there >= 0}
        self._texts: dict[int, str] = {}  # see `spelled`
        if known is not None:
            for there in self._tokenizer.get_vocab().values():
                if there >= known:
                    self._number[there] = UNK

    @property
    def opening(self) -> list[int] | None:
        return self._opening

    @cached_property
    def alphabet(self) -> Alphabet:
        """The characters that it reads, at least inside a word; of a list of words, those of the words."""
        own = (n for n, there in enumerate(self.order) if n > EOS and there >= 0 and there not in self._marks)
        pieces = (self._piece(number).removeprefix(self._inside).strip() for number in own)
        known = (piece for piece in pieces if self._wordlist or len(piece) == 1)
        normaliser = self._tokenizer.normalizer if self._wordlist else None
        return Alphabet(
            chain.from_iterable(known),
            shaped=normaliser and normaliser.normalize_str,
            reads=lambda character: UNK not in self.encode(character),
        )

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The numbers of many texts."""
        try:
            for text in texts:
                self._growth.check(text)
            with guarded("the tokenizer"):
                found = self._tokenizer.encode_batch(list(texts), add_special_tokens=self._framed)
            return [[self._number[there] for there in one.ids] for one in found]
        except (TypeError, UnicodeEncodeError) as error:
            raise half_pair("a text") from error
        except KeyError as error:
            raise DataError(
                f"the tokenizer gives the number {error}, the model has {len(self._number)} tokens; "
                "import it with the tokenizer it was trained with"
            ) from None

    def around(self) -> tuple[list[int], list[int]]:
        """The symbols that the tokenizer puts before and after a text, if it is encoded with them."""
        if not self._framed:
            return [], []
        found = self._tokenizer.encode("a")
        numbers, inner = [self._number[there] for there in found.ids], found.special_tokens_mask
        return numbers[: inner.index(0)], numbers[len(inner) - inner[::-1].index(0) :]

    def decode(self, ids: Iterable[int]) -> str:
        """The text of the pieces; special symbols are left out."""
        return self.exact(ids).strip()

    def exact(self, ids: Iterable[int]) -> str:
        """Like `decode`, with the white space at the ends."""
        there = [self.order[number] for number in listed(ids) if number > EOS]
        with guarded("the tokenizer's decoder"):
            return self._tokenizer.decode([number for number in there if number >= 0])

    def growing(self) -> Callable[[int], str]:
        """A function that is given numbers in order and returns the characters they complete."""
        stream = DecodeStream(skip_special_tokens=True)

        def feed(number: int) -> str:
            nonlocal stream
            there = self.order[number] if number > EOS else -1
            try:
                with guarded("the tokenizer's decoder"):
                    return (stream.step(self._tokenizer, there) or "") if there >= 0 else ""
            except DataError:  # a byte that makes those before it invalid
                stream = DecodeStream(skip_special_tokens=True)
                return ""

        return feed

    def spelled(self, ids: Iterable[int]) -> list[str]:
        """The text of each piece; one that is only part of a character is as in the file."""
        numbers = listed(ids)
        new = set(numbers) - self._texts.keys()
        before = self._tokenizer.encode("a", add_special_tokens=False).ids if new else []
        for number in new:
            there = self.order[number]
            with guarded("the tokenizer's decoder"):
                start = self._tokenizer.decode(before)
                both = self._tokenizer.decode([*before, max(there, 0)], skip_special_tokens=False)
            text = both.removeprefix(start)
            whole = there >= 0 and text and "\ufffd" not in text
            self._texts[number] = text if whole else self._piece(number)
        return [self._texts[number] for number in numbers]

    def begins(self, text: str) -> list[int]:
        self._growth.check(text)
        with guarded("the tokenizer"):
            places = self._tokenizer.encode(text, add_special_tokens=False).offsets
        found, end = [], 0
        for begin, stop in places:  # some tokenizers leave out the space before a word
            found.append(min(begin, end))
            end = max(end, stop)
        return found

    def numbered(self, ids: Iterable[int]) -> list[int]:
        numbers = listed(ids)
        if wrong := [number for number in numbers if number not in self._number]:
            raise DataError(f"expected numbers of tokens from 0 to {max(self._number)}, got {wrong[0]}")
        return [self._number[number] for number in numbers]

    def pieces(self, ids: Iterable[int]) -> list[str]:
        return [self._piece(number).replace(" ", "▁") for number in listed(ids)]

    def words(self, ids: Iterable[int], text: str | None = None) -> list[Word]:
        """The words between spaces with the positions of their pieces; special symbols are skipped."""
        numbers = listed(ids)
        found: list[list[int]] = []
        begin = self.begin()
        first = len(begin) if numbers[: len(begin)] == begin else 0  # a prefix may have words too
        for place, number in enumerate(numbers):
            if place < first or number <= EOS or self.order[number] in self._marks:
                continue
            if not found or self._begins(number, numbers[found[-1][-1]]):
                found.append([])
            found[-1].append(place)
        return [Word(self.decode(numbers[place] for place in places), places) for places in found]

    def edges(self) -> tuple[list[bool], list[bool]]:
        pieces = [self._piece(number) for number in range(len(self))]
        if self._ending:
            return [False] * len(pieces), [piece.endswith(" ") for piece in pieces]
        begins = [self._whole or piece.startswith((" ", *_LINE_ENDS)) for piece in pieces]
        return begins, [False] * len(pieces)

    def as_json(self) -> dict[str, Any]:
        about: dict[str, Any] = {"order": self.order, "framed": self._framed}
        about |= {} if self._limit is None else {"known": self._limit}
        about |= {} if self._opening is None else {"opening": self._opening}
        return {**self.content, KEY: about}

    def __len__(self) -> int:
        return len(self.order)

    def _begins(self, number: int, before: int) -> bool:
        """Whether a piece begins a word, behind another piece."""
        if self._ending:
            return self._piece(before).endswith(" ")
        return self._whole or self._piece(number).startswith(" ")

    def _piece(self, number: int) -> str:
        there = self.order[number]
        piece = self._tokenizer.id_to_token(there) if there >= 0 else None
        if piece is None:
            return f"<{number}>"
        if self._ending and piece.endswith(self._ending):
            return f"{piece.removesuffix(self._ending)} "
        return _SPACES.get(piece[:1], piece[:1]) + piece[1:]


def restored(content: dict[str, Any], about: dict[str, Any]) -> ImportedVocabulary:
    """The vocabulary in a file that its `save` wrote, with `about` under KEY."""
    order = [int(number) for number in about["order"]]
    known, opening = about.get("known"), about.get("opening")
    return ImportedVocabulary(
        content,
        order,
        framed=bool(about["framed"]),
        known=None if known is None else int(known),
        opening=None if opening is None else [int(number) for number in opening],
    )


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
    """The content of another program's tokenizer, and the original number of each of Weft's numbers.

    It is -1 for a symbol that the tokenizer lacks. A symbol with two roles, such as start and end, is there
    twice.
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
