"""Import the vocabularies of a checkpoint directory from a tokenizer.json or from Marian's files.

The texts of a translator have symbols around them: languages of mBART, M2M100 and NLLB, a forced first token.
Read next: ../text/imported.py, ../text/sentencepiece.py; runs.py, which saves them in a run.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from weft.errors import CheckpointError, ConfigError
from weft.importing.checkpoint import Checkpoint
from weft.text.imported import (
    ImportedVocabulary,
    after_prefix,
    before_text,
    content_of,
    numbers_of,
    renumbered,
)
from weft.text.sentencepiece import SentencePieces, read_model, read_numbers
from weft.text.vocabulary import Vocabulary

FILE = "tokenizer.json"
PAIR = ("tokenizer.source.json", "tokenizer.target.json")
MASKS = ("[MASK]", "<mask>")


class RunVocabularies(NamedTuple):
    """The vocabularies of a run."""

    vocabularies: Mapping[str, Vocabulary]  # by the name of their file
    order: list[int]  # the original number of each of Weft's numbers; -1 for a symbol that there was not
    prefix: str = ""  # the text that every source is read after


def vocabulary(foreign: Checkpoint) -> RunVocabularies:
    """The vocabulary of a language model, numbered like all vocabularies of Weft.

    A text is read whole, with its line ends, after what the tokenizer puts before it.
    """
    end = _end(foreign)
    start = foreign.setting("decoder_start_token_id", "bos_token_id", default=end)
    content, order = _content(foreign, start, end)
    last = {there: here for here, there in enumerate(order)}
    opening = [last[number] for number in before_text(foreign.path / FILE)]
    return RunVocabularies({FILE: ImportedVocabulary(content, order, framed=False, opening=opening)}, order)


def of_pair(foreign: Checkpoint, source: str, target: str) -> RunVocabularies:
    """The vocabularies of a translator, numbered like all vocabularies of Weft.

    A directory with source.spm but no tokenizer.json is Marian's, as published by Helsinki-NLP: two
    SentencePiece models, numbered by vocab.json.
    """
    end, path = _end(foreign), foreign.path / FILE
    usual = foreign.setting("decoder_start_token_id", "bos_token_id", default=end)
    if not path.exists() and (foreign.path / "source.spm").exists():
        size, pad = foreign.setting("vocab_size"), foreign.setting("pad_token_id", default=-1)
        pieces, order = read_numbers(foreign.path / "vocab.json", size, pad=pad, start=usual, end=end)
        each = [
            SentencePieces(read_model(foreign.path / f"{side}.spm"), pieces, framed=side == "source")
            for side in ("source", "target")
        ]
        return RunVocabularies(dict(zip(PAIR, each, strict=True)), order)
    around = frame(foreign, source, target, end)
    start = usual if around.start is None else around.start
    content, order = _content(foreign, start, end)
    read = content if around.source is None else framed(content, *around.source)
    written = framed(content, around.target, []) if around.target else content
    texts = (
        ImportedVocabulary(read, order, framed=True),
        ImportedVocabulary(written, order, framed=bool(around.target)),
    )
    return RunVocabularies(dict(zip(PAIR, texts, strict=True)), order, around.prefix)


def _content(foreign: Checkpoint, start: int, end: int) -> tuple[dict[str, Any], list[int]]:
    """The content of tokenizer.json, numbered like all vocabularies of Weft, and the order of its rows."""
    size, pad = foreign.setting("vocab_size"), foreign.config.get("pad_token_id")
    return renumbered(foreign.path / FILE, size, pad=pad, start=start, end=end)


def _end(foreign: Checkpoint) -> int:
    end = foreign.setting("eos_token_id")
    if not isinstance(end, int):
        raise ConfigError(
            f"{foreign.place}: eos_token_id: expected one number, got {str(end)[:60]}; "
            "keep only the one that ends a text"
        )
    return end


def with_mask(foreign: Checkpoint) -> RunVocabularies:
    """The vocabulary of a masked language model, and the order of its rows, in which the mask is last.

    The tokenizer's own symbols around a text become <sos> and <eos>.
    """
    path = foreign.path / FILE
    around, numbers = numbers_of(path, MASKS)
    if len(around) != 2 or not numbers:
        raise CheckpointError(
            f"{path}: expected one symbol before a text, one after it, and one of {', '.join(MASKS)}, "
            f"got {len(around)} and {len(numbers)}; is it the tokenizer of a masked language model?"
        )
    content, order = _content(foreign, *around)
    order = [number for number in order if number != numbers[0]]
    return RunVocabularies({FILE: ImportedVocabulary(content, order, framed=False)}, [*order, numbers[0]])


def with_frame(foreign: Checkpoint) -> RunVocabularies:
    """The vocabulary of a classifier: texts are read with the tokenizer's own symbols around them."""
    path = foreign.path / FILE
    around, _ = numbers_of(path, ())
    if len(around) != 2:
        raise CheckpointError(
            f"{path}: expected one symbol before a text and one after it, got {len(around)}; is it the "
            "tokenizer of a classifier?"
        )
    content, order = _content(foreign, *around)
    return RunVocabularies({FILE: ImportedVocabulary(content, order, framed=True)}, order)


LANGUAGES = ("mbart", "m2m_100")  # families whose texts have a symbol of their language


class Frame(NamedTuple):
    """Original numbers of the symbols around the texts."""

    source: tuple[list[int], list[int]] | None  # before and after; None for the tokenizer's own
    target: list[int]  # before; the end is added by the task
    start: int | None  # the decoder's first input; None for the one in config.json
    prefix: str = ""  # the text that the source is read after, such as "summarize:"


def frame(foreign: Checkpoint, source: str, target: str, end: int) -> Frame:
    """The symbols for one pair of languages."""
    family = foreign.setting("model_type")
    if family not in LANGUAGES:
        forced = foreign.config.get("forced_bos_token_id")
        if forced is not None and type(forced) is not int:
            raise ConfigError(
                f"{foreign.path}: forced_bos_token_id: expected the number of a token, got {str(forced)[:40]}"
            )
        written = [] if forced is None else [foreign.setting("forced_bos_token_id")]
        prefix = foreign.config.get("prefix") or ""
        around = after_prefix(foreign.path / "tokenizer.json", prefix) if prefix.strip() else None
        return Frame(around, written, None, prefix.strip() if around else "")
    content = content_of(foreign.path / "tokenizer.json")
    here, there = (_language(foreign, content, *pair) for pair in (("source", source), ("target", target)))
    if not _symbol_is_last(content):
        return Frame(([here], [end]), [there], end)
    if family == "mbart":  # the older form: the symbol itself is the decoder's first input
        return Frame(([], [end, here]), [], there)
    return Frame(([], [end, here]), [there], end)


def framed(content: dict[str, Any], before: list[int], after: list[int]) -> dict[str, Any]:
    """The content of a tokenizer.json that puts these symbols before and after a text."""
    names = {number: f"weft{number}" for number in (*before, *after)}
    pieces: list[dict[str, Any]] = [
        *({"SpecialToken": {"id": names[number], "type_id": 0}} for number in before),
        {"Sequence": {"id": "A", "type_id": 0}},
        *({"SpecialToken": {"id": names[number], "type_id": 0}} for number in after),
    ]
    symbols = {name: {"id": name, "ids": [number], "tokens": [name]} for number, name in names.items()}
    pair = [*pieces, {"Sequence": {"id": "B", "type_id": 1}}]
    processor = {"type": "TemplateProcessing", "single": pieces, "pair": pair, "special_tokens": symbols}
    return content | {"post_processor": processor}


def _language(foreign: Checkpoint, content: dict[str, Any], side: str, name: str) -> int:
    """The number of a language's symbol."""
    added = content.get("added_tokens") or []
    symbols = {str(one["content"]): int(one["id"]) for one in added if one.get("special")}
    found = [symbol for symbol in (name, f"__{name}__") if symbol in symbols]
    found = found or [symbol for symbol in symbols if symbol.startswith(f"{name}_")]
    if len(found) != 1:
        known = [symbol for symbol in symbols if "_" in symbol]
        said = f"one of {', '.join(found)}" if found else f"a language such as {', '.join(known[:5])}"
        raise ConfigError(
            f"{foreign.path / 'tokenizer.json'}: --{side}: expected {said}, got {name!r}; "
            "name it as the tokenizer does"
        )
    return symbols[found[0]]


def _symbol_is_last(content: dict[str, Any]) -> bool:
    """Whether a source ends with the symbol of its language; otherwise it begins with it."""
    single = (content.get("post_processor") or {}).get("single") or []
    return bool(single) and "Sequence" in single[0]
