"""Import the vocabularies of a checkpoint directory from a tokenizer.json or from Marian's files.

Read next: ../text/imported.py, ../text/sentencepiece.py; runs.py, which saves them in a run.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from weft.errors import CheckpointError, ConfigError
from weft.importing.checkpoint import Checkpoint
from weft.importing.language_symbols import frame, framed
from weft.text.foreign import before_text, numbers_of, renumbered
from weft.text.imported import ImportedVocabulary
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
