"""The vocabularies of other toolkits: a list of tokens, and how a text becomes such tokens.

A list of tokens goes with words, characters, BPE codes of subword-nmt (with @@ at the end of a piece inside a
word) or a SentencePiece model. Each becomes a vocabulary whose special symbols come first, as in every run.
Read next: ../../text/imported.py, ../../text/sentencepiece.py.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from weft.errors import CheckpointError, ConfigError
from weft.importing.kits.reading import lines
from weft.importing.vocabularies import framed as with_symbols
from weft.text.imported import ImportedVocabulary
from weft.text.pieces import SPECIALS
from weft.text.sentencepiece import SentencePieces, read_model
from weft.text.vocabulary import Vocabulary

END_OF_WORD = "</w>"
JOINER = "@@"


class Special(NamedTuple):
    """Numbers of the special symbols in a toolkit's list of tokens; -1 for one that it lacks."""

    pad: int
    unknown: int
    start: int
    end: int


class RunVocabulary(NamedTuple):
    """A vocabulary of a run."""

    vocabulary: Vocabulary
    order: list[int]  # the original number of each of Weft's numbers; -1 for a symbol that there was not


def special_of(tokens: Sequence[str], names: Sequence[str]) -> Special:
    """The numbers of the symbols for padding, unknown, start and end; -1 for a missing one."""
    return Special(*(tokens.index(name) if name in tokens else -1 for name in names))


WORDS = {"type": "Split", "pattern": {"Regex": " "}, "behavior": "Removed", "invert": False}
"""The `pre_tokenizer` of words between spaces."""

CHARACTERS = {
    "type": "Sequence",
    "pretokenizers": [
        {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "never", "split": False},
        {"type": "Split", "pattern": {"Regex": "."}, "behavior": "Isolated", "invert": False},
    ],
}
FUSED = {
    "type": "Sequence",
    "decoders": [
        {"type": "Fuse"},
        {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
    ],
}
"""The `decoder` of characters."""


class TokenList(NamedTuple):
    """A toolkit's list of tokens, which becomes a vocabulary of a run."""

    tokens: Sequence[str]
    special: Special
    framed: bool  # whether the end symbol stands after each text
    normaliser: Any = None  # of a tokenizer.json

    @property
    def order(self) -> list[int]:
        """The number of each token, those of the special symbols first."""
        return [*self.special, *(n for n in range(len(self.tokens)) if n not in self.special)]

    def words(self, *, characters: bool = False) -> RunVocabulary:
        """Words between spaces, or characters with \u2581 for a space."""
        unknown = self.tokens[self.special.unknown]
        model = {"type": "WordLevel", "vocab": _numbers(self.tokens), "unk_token": unknown}
        return self._imported(model, CHARACTERS, FUSED) if characters else self._imported(model, WORDS, None)

    def codes(self, codes: Path, *, joiner: str = JOINER) -> RunVocabulary:
        """Byte-pair encoding inside words, as subword-nmt and fastBPE apply it."""
        merges = _merges(codes)
        reserved = {self.tokens[number] for number in self.special if number >= 0}
        names = [
            token
            if token in reserved
            else token.removesuffix(joiner)
            if token.endswith(joiner)
            else token + END_OF_WORD
            for token in self.tokens
        ]
        numbers = _numbers(names)
        for piece in (one for left, right in merges for one in (left, right, left + right)):
            numbers.setdefault(piece, len(numbers) + len(self.tokens))  # not the model's: unknown to it
        model = {
            "type": "BPE",
            "dropout": None,
            "unk_token": names[self.special.unknown],
            "continuing_subword_prefix": None,
            "end_of_word_suffix": END_OF_WORD,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": numbers,
            "merges": [list(pair) for pair in merges],
        }
        return self._imported(model, WORDS, {"type": "BPEDecoder", "suffix": END_OF_WORD})

    def pieces(self, model: Path, *, lowercase: bool = False, restricted: bool = False) -> RunVocabulary:
        """Pieces of a SentencePiece model, numbered by this list; other pieces are unknown."""
        names, read = [*SPECIALS, *(self.tokens[number] for number in self.order[4:])], read_model(model)
        found = SentencePieces(read, names, framed=self.framed, lowercase=lowercase, restricted=restricted)
        return RunVocabulary(found, self.order)

    def subwords(self, file: Path | None, place: Path | None = None) -> RunVocabulary:
        """Words if there is no file of subwords; otherwise pieces of its BPE codes or SentencePiece model."""
        if file is None:
            if place is not None:
                _check_whole(self.tokens, place)
            return self.words()
        try:
            with open(file, "rb") as opened:
                is_model = opened.read(1) == b"\n"
        except OSError as error:
            raise CheckpointError(f"{file}: cannot be read ({error}); give another file") from error
        return self.pieces(file) if is_model else self.codes(file)

    def _imported(self, model: dict[str, Any], spaces: dict[str, Any], decoder: Any) -> RunVocabulary:
        """A vocabulary from the parts of a tokenizer.json."""
        content: dict[str, Any] = {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [],
            "normalizer": self.normaliser,
            "pre_tokenizer": spaces,
            "post_processor": None,
            "decoder": decoder,
            "model": model,
        }
        if self.framed:
            content = with_symbols(content, [], [self.special.end])
        known = len(self.tokens)
        found = ImportedVocabulary(content, self.order, framed=self.framed, known=known)
        return RunVocabulary(found, self.order)


def _check_whole(tokens: Sequence[str], place: Path) -> None:
    """Check that tokens are words, where no file says how words are cut."""
    for mark, kind in ((JOINER, "BPE codes"), ("\u2581", "SentencePiece model")):
        pieces = sum(token.endswith(mark) if mark == JOINER else mark in token for token in tokens)
        if 10 * pieces > len(tokens):
            raise ConfigError(
                f"{place}: {pieces:,} of {len(tokens):,} tokens are pieces of words with {mark}; "
                f"give the {kind} that made them with --subwords FILE"
            )


def _merges(codes: Path) -> list[tuple[str, str]]:
    found = []
    content, first = lines(codes), 1
    if content and content[0].startswith("#version:"):
        version, first = content.pop(0).removeprefix("#version:").strip(), 2
        if version != "0.2":
            raise CheckpointError(
                f"{codes}:1: expected codes of version 0.2, got {version[:20]}; "
                "learn them with subword-nmt 0.2 or later"
            )
    elif content and END_OF_WORD in (row := content[0].split(" ")) and len(row) == 2:
        raise CheckpointError(
            f"{codes}: expected codes of version 0.2, got 0.1; learn them with subword-nmt 0.2"
        )
    for count, line in enumerate(content, first):
        parts = line.split(" ")
        if len(parts) == 3 and parts[2].isdigit():  # fastBPE adds how often the pair was seen
            parts.pop()
        if len(parts) != 2 or not all(parts):
            raise CheckpointError(
                f"{codes}:{count}: expected two pieces with a space between, got {line[:40]!r}"
            )
        found.append((parts[0], parts[1]))
    return list(dict.fromkeys(found))


def _numbers(tokens: Sequence[str]) -> dict[str, int]:
    return {token: number for number, token in reversed(list(enumerate(tokens)))}


def normaliser(*, lowercase: bool = False, steps: Sequence[Any] = ()) -> dict[str, Any] | None:
    """The `normalizer` of a tokenizer.json from its steps; None for none."""
    every = [*steps, *([{"type": "Lowercase"}] if lowercase else [])]
    return {"type": "Sequence", "normalizers": every} if every else None
