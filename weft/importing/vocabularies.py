"""Import the vocabularies of a checkpoint directory from a tokenizer.json or from Marian's files.

Read next: ../text/imported.py, ../text/sentencepiece.py; runs.py, which saves them in a run.
"""

from collections.abc import Mapping
from typing import NamedTuple

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
    size, pad = foreign.setting("vocab_size"), foreign.config.get("pad_token_id")
    content, order = renumbered(foreign.path / FILE, size, pad=pad, start=start, end=end)
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
    size, pad = foreign.setting("vocab_size"), foreign.config.get("pad_token_id")
    if not path.exists() and (foreign.path / "source.spm").exists():
        pieces, order = read_numbers(
            foreign.path / "vocab.json", size, pad=-1 if pad is None else pad, start=usual, end=end
        )
        models = [read_model(foreign.path / file) for file in ("source.spm", "target.spm")]
        each = [
            SentencePieces(model, pieces, framed=framed)
            for model, framed in zip(models, (True, False), strict=True)
        ]
        return RunVocabularies(dict(zip(PAIR, each, strict=True)), order)
    around = frame(foreign, source, target, end)
    start = usual if around.start is None else around.start
    content, order = renumbered(path, size, pad=pad, start=start, end=end)
    read = content if around.source is None else framed(content, *around.source)
    written = framed(content, around.target, []) if around.target else content
    texts = (
        ImportedVocabulary(read, order, framed=True),
        ImportedVocabulary(written, order, framed=bool(around.target)),
    )
    return RunVocabularies(dict(zip(PAIR, texts, strict=True)), order, around.prefix)


def _end(foreign: Checkpoint) -> int:
    end = foreign.setting("eos_token_id")
    if not isinstance(end, int):
        raise ConfigError(
            f"{foreign.path / 'config.json'}: eos_token_id: expected one number, got {str(end)[:60]}; "
            "keep only the one that ends a text"
        )
    return end


def with_mask(foreign: Checkpoint) -> RunVocabularies:
    """The vocabulary of a masked language model, and the order of its rows, in which the mask is last.

    The tokenizer's own symbols around a text become <sos> and <eos>.
    """
    path, size, pad = (
        foreign.path / FILE,
        foreign.setting("vocab_size"),
        foreign.config.get("pad_token_id"),
    )
    around, numbers = numbers_of(path, MASKS)
    if len(around) != 2 or not numbers:
        raise CheckpointError(
            f"{path}: expected one symbol before a text, one after it, and one of {', '.join(MASKS)}, "
            f"got {len(around)} and {len(numbers)}; is it the tokenizer of a masked language model?"
        )
    content, order = renumbered(path, size, pad=pad, start=around[0], end=around[1])
    order = [number for number in order if number != numbers[0]]
    return RunVocabularies({FILE: ImportedVocabulary(content, order, framed=False)}, [*order, numbers[0]])


def with_frame(foreign: Checkpoint) -> RunVocabularies:
    """The vocabulary of a classifier: texts are read with the tokenizer's own symbols around them."""
    path, size = foreign.path / FILE, foreign.setting("vocab_size")
    around, _ = numbers_of(path, ())
    if len(around) != 2:
        raise CheckpointError(
            f"{path}: expected one symbol before a text and one after it, got {len(around)}; is it the "
            "tokenizer of a classifier?"
        )
    pad = foreign.config.get("pad_token_id")
    content, order = renumbered(path, size, pad=pad, start=around[0], end=around[1])
    return RunVocabularies({FILE: ImportedVocabulary(content, order, framed=True)}, order)
