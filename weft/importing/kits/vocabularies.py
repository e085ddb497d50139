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
from weft.importing.language_symbols import framed as with_symbols
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


def special(tokens: Sequence[str], names: Sequence[str]) -> Special:
    """The numbers of the symbols for padding, unknown, start and end; -1 for a missing one."""
    return Special(*(tokens.index(name) if name in tokens else -1 for name in names))


def from_words(
    tokens: Sequence[str], special: Special, *, framed: bool, normaliser: Any = None, characters: bool = False
) -> RunVocabulary:
    """Words between spaces, or characters with \u2581 for a space."""
    model = {"type": "WordLevel", "vocab": _numbers(tokens), "unk_token": tokens[special.unknown]}
    spaces: Any = {"type": "Split", "pattern": {"Regex": " "}, "behavior": "Removed", "invert": False}
    decoder: Any = None
    if characters:
        spaces = {
            "type": "Sequence",
            "pretokenizers": [
                {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "never", "split": False},
                {"type": "Split", "pattern": {"Regex": "."}, "behavior": "Isolated", "invert": False},
            ],
        }
        decoder = {
            "type": "Sequence",
            "decoders": [
                {"type": "Fuse"},
                {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
            ],
        }
    return _imported(tokens, special, model, spaces, decoder, framed=framed, normaliser=normaliser)


def from_codes(
    tokens: Sequence[str],
    special: Special,
    codes: Path,
    *,
    framed: bool,
    normaliser: Any = None,
    joiner: str = JOINER,
) -> RunVocabulary:
    """Byte-pair encoding inside words, as subword-nmt and fastBPE apply it."""
    merges = _merges(codes)
    reserved = {tokens[number] for number in special if number >= 0}
    names = [
        token
        if token in reserved
        else token.removesuffix(joiner)
        if token.endswith(joiner)
        else token + END_OF_WORD
        for token in tokens
    ]
    numbers = _numbers(names)
    for piece in (one for left, right in merges for one in (left, right, left + right)):
        numbers.setdefault(piece, len(numbers) + len(tokens))  # not the model's: unknown to it
    model = {
        "type": "BPE",
        "dropout": None,
        "unk_token": names[special.unknown],
        "continuing_subword_prefix": None,
        "end_of_word_suffix": END_OF_WORD,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": False,
        "vocab": numbers,
        "merges": [list(pair) for pair in merges],
    }
    spaces = {"type": "Split", "pattern": {"Regex": " "}, "behavior": "Removed", "invert": False}
    decoder = {"type": "BPEDecoder", "suffix": END_OF_WORD}
    return _imported(tokens, special, model, spaces, decoder, framed=framed, normaliser=normaliser)


def from_model(
    tokens: Sequence[str],
    special: Special,
    model: Path,
    *,
    framed: bool,
    lowercase: bool = False,
    restricted: bool = False,
) -> RunVocabulary:
    """Pieces of a SentencePiece model, numbered by the toolkit's list; other pieces are unknown."""
    order = _order(len(tokens), special)
    names = [*SPECIALS, *(tokens[number] for number in order[4:])]
    found = SentencePieces(
        read_model(model), names, framed=framed, lowercase=lowercase, restricted=restricted
    )
    return RunVocabulary(found, order)


def from_subwords(
    tokens: Sequence[str],
    special: Special,
    subwords: Path | None,
    *,
    framed: bool,
    normaliser: Any = None,
    place: Path | None = None,
) -> RunVocabulary:
    """Words if there is no file of subwords; otherwise pieces of its BPE codes or SentencePiece model."""
    if subwords is None:
        if place is not None:
            _check_whole(tokens, place)
        return from_words(tokens, special, framed=framed, normaliser=normaliser)
    try:
        with open(subwords, "rb") as file:
            is_model = file.read(1) == b"\n"
    except OSError as error:
        raise CheckpointError(f"{subwords}: cannot be read ({error}); give another file") from error
    if is_model:
        return from_model(tokens, special, subwords, framed=framed)
    return from_codes(tokens, special, subwords, framed=framed, normaliser=normaliser)


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


def _order(size: int, special: Special) -> list[int]:
    return [*special, *(number for number in range(size) if number not in special)]


def _imported(
    tokens: Sequence[str],
    special: Special,
    model: dict[str, Any],
    spaces: dict[str, Any],
    decoder: Any,
    *,
    framed: bool,
    normaliser: Any,
) -> RunVocabulary:
    """A vocabulary from the parts of a tokenizer.json."""
    order = _order(len(tokens), special)
    content: dict[str, Any] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": normaliser,
        "pre_tokenizer": spaces,
        "post_processor": None,
        "decoder": decoder,
        "model": model,
    }
    if framed:
        content = with_symbols(content, [], [special.end])
    return RunVocabulary(ImportedVocabulary(content, order, framed=framed, known=len(tokens)), order)


def normaliser(*, lowercase: bool = False, steps: Sequence[Any] = ()) -> dict[str, Any] | None:
    """The `normalizer` of a tokenizer.json from its steps; None for none."""
    every = [*steps, *([{"type": "Lowercase"}] if lowercase else [])]
    return {"type": "Sequence", "normalizers": every} if every else None
