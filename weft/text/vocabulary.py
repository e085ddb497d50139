"""A vocabulary: text to numbers and back, trained, saved as JSON and loaded.

Five kinds: words (split at punctuation, or at white space only), characters, and two kinds of subwords
(byte-pair encoding, unigram). For all of them decode(encode(text)) == normalise(text) if no symbol is
unknown. Pieces and segmentation are the `tokenizers` library's. Read next: pieces.py, how a text is split;
loading.py, the file.
"""

import copy
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from tokenizers import Tokenizer, models

from weft.errors import DataError
from weft.store import jsonfile
from weft.text.characters import Alphabet, in_form, normalise, words_of
from weft.text.learn import learn
from weft.text.pieces import SPECIALS, complete, count_words, cutter

PAD, UNK, SOS, EOS = range(len(SPECIALS))

_CACHE = 500_000  # words whose numbers are cached; encoding is mostly a dictionary look-up


class Word(NamedTuple):
    """A word between spaces and the positions of its pieces."""

    text: str
    positions: list[int]


class Vocabulary:
    """Pieces of text and their numbers; pad, unk, sos and eos are always 0, 1, 2 and 3.

    Create one with `train`, or with `load_vocabulary` (loading.py).

    Example:
        >>> words = Vocabulary.train(["a cat sat, a cat ran"], kind="word", size=None)
        >>> words.pieces(words.encode("a cat, sat"))
        ['▁a', '▁cat', ',', '▁sat']
        >>> words.decode(words.encode("  a cat,   sat"))
        'a cat, sat'
    """

    def __init__(self, model: models.Model, *, kind: str, form: str, lowercase: bool) -> None:
        self.kind = kind
        self.form = form
        self.lowercase = lowercase
        self._model = model
        self._segment = Tokenizer(model)
        self._segment.pre_tokenizer = cutter(kind)
        numbers = self._segment.get_vocab(with_added_tokens=False)
        self._pieces = sorted(numbers, key=numbers.__getitem__)
        self._known: dict[str, Sequence[int]] = {}
        self._more: dict[str, int] = {}

    @property
    def opening(self) -> list[int] | None:
        """Tokens before a whole text, line ends included; None if texts are lines, each with its end."""
        return None

    @property
    def base(self) -> "Vocabulary":
        """The vocabulary that numbers a source: this one."""
        return self

    @cached_property
    def alphabet(self) -> Alphabet:
        """The characters that its pieces are made of."""
        return Alphabet(chain.from_iterable(self._pieces[EOS + 1 :]), shaped=self._shaped)

    @classmethod
    def train(
        cls,
        lines: Iterable[str],
        *,
        kind: str,
        size: int | None,
        min_count: int = 1,
        form: str = "nfc",
        lowercase: bool = False,
        progress: bool = False,
    ) -> "Vocabulary":
        """Learn a vocabulary; the order of the lines makes no difference.

        Args:
            lines: raw training text.
            kind: "word", "space" (words of tokenised text), "character", "bpe" or "unigram".
            size: number of pieces including the four special symbols, of words and characters at most; None
                keeps every word or character.
            min_count: words (kind "word") or characters (other kinds) seen less often become unknown.
            form, lowercase: see `normalise`.
            progress: show a progress bar when training takes long.

        Raises:
            ConfigError: an unknown kind, or a size too small, or one of subwords too large for the data.
        """
        texts = (normalise(line, form=form, lowercase=lowercase) for line in lines)
        words, number = count_words(texts)
        model = learn(words, number, kind=kind, size=size, min_count=min_count, progress=progress)
        return cls(model, kind=kind, form=form, lowercase=lowercase)

    def encode(self, text: str) -> list[int]:
        """The numbers of a text's pieces, without sos and eos."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The numbers of many texts, faster than one by one.

        Raises:
            DataError: a text contains half a surrogate pair, which is not a character.
        """
        split = [self._words(text) for text in texts]
        if len(self._known) > _CACHE:
            self._known.clear()
        known = self._known
        rows, late = [], []
        for number, words in enumerate(split):
            try:
                rows.append(list(chain.from_iterable(map(known.__getitem__, words))))
            except KeyError:  # an uncached word; most lines have none
                rows.append([])
                late.append(number)
        if late:
            new = sorted(set().union(*(split[number] for number in late)).difference(known))
            known.update(zip(new, self._numbers(new), strict=True))
            for number in late:
                rows[number] = list(chain.from_iterable(map(known.__getitem__, split[number])))
        # A character vocabulary encodes spaces between words, but not the one before the first.
        return [row[1:] for row in rows] if self.kind == "character" else rows

    def begin(self) -> list[int]:
        """Symbols before every encoded text, such as that of its language; none unless imported."""
        return self.around()[0]

    def around(self) -> tuple[list[int], list[int]]:
        """Symbols before and after every encoded text; none unless imported."""
        return [], []

    def decode(self, ids: Iterable[int]) -> str:
        """The detokenised text of the pieces; special symbols, including unknown, are left out."""
        pieces = self._pieces
        return " ".join("".join([pieces[number] for number in listed(ids) if number > EOS]).split())

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """The pieces for display, with ▁ for a space and special symbols by name."""
        return [self._pieces[number].replace(" ", "▁") for number in listed(ids)]

    def spelled(self, ids: Iterable[int]) -> list[str]:
        """The text of each piece, with its space; special symbols by name."""
        return [self._pieces[number] for number in listed(ids)]

    def begins(self, text: str) -> list[int]:
        """The place in a text where each of its pieces begins; spaces belong to the piece after them.

        Example:
            >>> words = Vocabulary.train(["a cat sat, a cat ran"], kind="word", size=None)
            >>> words.begins("a cat,  sat")
            [0, 1, 5, 6]
        """
        words = []
        for number, word in enumerate(self._words(text)):
            with guarded("the vocabulary"):
                found = [begin - 1 for begin, _ in self._segment.encode(" " + word).offsets]
            # A character vocabulary has no space before the first word.
            words.append(found[1:] if self.kind == "character" and not number else found)
        return begins(text, words, form=self.form, lowercase=self.lowercase)

    def numbered(self, ids: Iterable[int]) -> list[int]:
        """Numbers of the file tokenizer.json as numbers of this vocabulary; the same unless imported.

        Raises:
            DataError: there is no such number.
        """
        found = listed(ids)
        wrong = next((number for number in found if not 0 <= number < len(self)), None)
        if wrong is not None:
            raise DataError(f"expected numbers of tokens from 0 to {len(self) - 1}, got {wrong}")
        return found

    def words(self, ids: Iterable[int], text: str | None = None) -> list[Word]:
        """The words between spaces with the positions of their pieces; pad, sos and eos are skipped.

        Args:
            ids: numbers of pieces.
            text: the text they encode, if known; then words with unknown symbols are shown as in the text.
                Without it, an unknown piece of a word vocabulary counts as a word.

        Example:
            >>> words = Vocabulary.train(["a cat sat, a cat ran"], kind="word", size=None)
            >>> words.words(words.encode("a cat,"))
            [Word(text='a', positions=[0]), Word(text='cat,', positions=[1, 2])]
        """
        numbers = listed(ids)
        real = iter([place for place, number in enumerate(numbers) if number not in (PAD, SOS, EOS)])
        if text is not None:
            return list(self._words_of(text, real))
        found: list[Word] = []
        for place in real:
            piece = self._pieces[numbers[place]]
            unknown = numbers[place] == UNK
            if not found or piece.startswith(" ") or (unknown and self.kind in ("word", "space")):
                found.append(Word("", []))
            text_so_far, places = found[-1]
            found[-1] = Word(text_so_far + piece.removeprefix(" "), [*places, place])
        return found

    def edges(self) -> tuple[list[bool], list[bool]]:
        """Which pieces begin a word if another piece is before them, and which end their word.

        Example:
            >>> Vocabulary.train(["a cat,"], kind="word", size=None).edges()[0][4:]  # ' a', ' cat', ','
            [True, True, False]
        """
        begins = [piece.startswith(" ") for piece in self._pieces]
        return begins, [False] * len(begins)

    def unknown(self, text: str) -> list[str]:
        """The pieces of a text that this vocabulary lacks, one for each unknown symbol, in order.

        Example:
            >>> words = Vocabulary.train(["a cat sat"], kind="word", size=None)
            >>> words.encode("a dog, a cat").count(1), words.unknown("a dog, a cat")
            (2, [' dog', ','])
        """
        self.encode(text)  # caches the numbers of all its words
        pieces: list[str] = []
        for index, word in enumerate(self._words(text)):
            if UNK not in self._known[word]:
                continue
            # A character vocabulary has no space before the first word.
            begin = 1 if self.kind == "character" and index == 0 else 0
            pieces += [piece for number, piece in self._spelled(word)[begin:] if number == UNK]
        return pieces

    def surface_pieces(self, text: str) -> list[str]:
        """The pieces of a text as written there, including unknown ones, without surrounding spaces."""
        unknown = iter(self.unknown(text))
        row = self.encode(text)
        return [(next(unknown) if number == UNK else self._pieces[number]).strip() for number in row]

    def copyable(self, text: str) -> Sequence[str]:
        """Unknown pieces of a source that the output may copy: none; see tasks/seq2seq/batch_search.py."""
        return ()

    def extended(self, pieces: Sequence[str]) -> "Vocabulary":
        """A copy with more pieces at the end, such as the unknown words of one text.

        Example:
            >>> words = Vocabulary.train(["a cat sat"], kind="word", size=None).extended([" dog"])
            >>> words.encode("a dog"), words.decode([4, 7])
            ([4, 7], 'a dog')
        """
        if not pieces:
            return self
        other = copy.copy(self)
        other._more = {piece: len(self) + place for place, piece in enumerate(pieces)}
        other._pieces = [*self._pieces, *pieces]
        other._known = {}
        return other

    def save(self, path: str | Path) -> None:
        """Write tokenizer.json atomically; other programs that read such files can use it.

        Raises:
            CheckpointError: the file cannot be written.
        """
        jsonfile.save(Path(path), self.as_json())

    def as_json(self) -> dict[str, Any]:
        """The content of tokenizer.json."""
        whole = complete(self._model, self.kind, self.form, self.lowercase)
        return dict(json.loads(whole.to_str()))

    def __len__(self) -> int:
        return len(self._pieces)

    def _shaped(self, text: str) -> str:
        return " ".join(self._words(text))

    def _words(self, text: str) -> list[str]:
        return words_of(text, form=self.form, lowercase=self.lowercase)

    def _numbers(self, words: list[str]) -> list[Sequence[int]]:
        try:
            if self._more:
                return [self._with_more(word) for word in words]
            with guarded("the vocabulary"):
                return [
                    found.ids for found in self._segment.encode_batch_fast([" " + word for word in words])
                ]
        except (TypeError, UnicodeEncodeError) as error:
            wrong = next((word for word in words if any("\ud800" <= mark <= "\udfff" for mark in word)), None)
            if wrong is None:
                raise
            raise half_pair(repr(wrong)) from error

    def _spelled(self, word: str) -> list[tuple[int, str]]:
        """The number and the spelling of each piece."""
        with guarded("the vocabulary"):
            found = self._segment.encode(" " + word)
        spans = zip(found.ids, found.offsets, strict=True)
        return [(number, (" " + word)[begin:end]) for number, (begin, end) in spans]

    def _with_more(self, word: str) -> list[int]:
        spelled = self._spelled(word)
        return [self._more.get(piece, UNK) if number == UNK else number for number, piece in spelled]

    def _words_of(self, text: str, places: Iterator[int]) -> Iterator[Word]:
        for index, word in enumerate(self._words(text)):
            numbers = self._numbers([word])[0]
            # A character vocabulary has no space before the first word.
            count = len(numbers) - (self.kind == "character" and index == 0)
            positions = list(islice(places, count))
            if positions:
                yield Word(word, positions)


def begins(text: str, words: list[list[int]], *, form: str, lowercase: bool) -> list[int]:
    r"""The place of each piece's first character; spaces belong to the piece after them.

    Example:
        >>> begins("e\u0301te\u0301,  oui", [[-1, 3], [-1, 1]], form="nfc", lowercase=False)
        [0, 5, 6, 9]
    """
    normal, origins = _origins(text, form=form, lowercase=lowercase)
    found: list[int] = []
    end = 0
    for word, places in zip(re.finditer(r"\S+", normal), words, strict=True):
        found += [end if place < 0 else origins[word.start() + place] for place in places]
        end = origins[word.end()]
    return [0, *found[1:]] if found else []


def _origins(text: str, *, form: str, lowercase: bool) -> tuple[str, list[int]]:
    """The normalised text, and for each of its characters, and its end, a place in the text."""
    parts: list[str] = []
    origins: list[int] = []
    for begin, end in _clusters(text, form):
        part = in_form(text[begin:end], form)
        part = in_form(part.lower(), form) if lowercase else part
        parts.append(part)
        origins += [begin] * len(part)
    return "".join(parts), [*origins, len(text)]


def _clusters(text: str, form: str) -> Iterator[tuple[int, int]]:
    """Parts of a text that are normalised without regard to each other."""
    begin = 0
    for place in range(1, len(text)):
        mark = text[place]
        if mark.isascii():
            apart = True
        elif unicodedata.combining(in_form(mark, form)[0]):  # an accent
            apart = False
        else:  # letters that unite, such as those of a Korean syllable
            so_far = text[begin:place]
            apart = in_form(so_far + mark, form) == in_form(so_far, form) + in_form(mark, form)
        if apart:
            yield begin, place
            begin = place
    if text:
        yield begin, len(text)


def listed(ids: Any) -> list[int]:
    """Numbers of a tensor, an array or any iterable, as a list."""
    return ids.tolist() if hasattr(ids, "tolist") else list(ids)


@contextmanager
def guarded(what: str) -> Iterator[None]:
    """Turn a failure inside the `tokenizers` library into one of Weft's errors."""
    try:
        yield
    except BaseException as error:
        panicked = type(error).__name__ == "PanicException"  # of pyo3; no module exports it
        if not panicked and type(error) is not Exception:
            raise
        reason = " ".join(str(error).split())[:200]
        raise DataError(f"{what} failed ({reason}); use another tokenizer") from None


def half_pair(what: str) -> DataError:
    """The error for a text that no UTF-8 holds."""
    return DataError(
        f"{what} contains half a surrogate pair, which is not a character; read the text as UTF-8 with "
        "errors='replace'"
    )
