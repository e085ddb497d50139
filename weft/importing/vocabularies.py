"""Import the vocabularies of a checkpoint directory from a tokenizer.json or from Marian's files.

Read next: ../text/imported.py, ../text/sentencepiece.py; runs.py, which saves them in a run.
"""

from typing import Any

from weft.importing.checkpoint import Foreign
from weft.text.imported import Imported, renumbered
from weft.text.sentencepiece import SentencePieces, read_model, read_numbers
from weft.text.vocabulary import Vocabulary


def vocabularies(foreign: Foreign, names: dict[str, bool]) -> tuple[dict[str, Vocabulary], list[int]]:
    """The vocabularies of source and target, numbered like all vocabularies of Weft.

    A directory with source.spm but no tokenizer.json is Marian's, as published by Helsinki-NLP: two
    SentencePiece models, numbered by vocab.json.

    Args:
        foreign: the checkpoint.
        names: file names for the run, each with True to encode with special symbols around the text; of two
            files the second is the target's.

    Returns:
        The vocabulary of each file, and the original number of each of Weft's numbers; -1 for a symbol that
        the checkpoint lacks.

    Raises:
        CheckpointError: a file is missing or damaged, or belongs to another model.
    """
    end = foreign.setting("eos_token_id")
    symbols: dict[str, Any] = {
        "start": foreign.setting("decoder_start_token_id", "bos_token_id", default=end),
        "end": end,
    }
    size, pad = foreign.setting("vocab_size"), foreign.config.get("pad_token_id")
    if (foreign.path / "tokenizer.json").exists() or not (foreign.path / "source.spm").exists():
        content, order = renumbered(foreign.path / "tokenizer.json", size, pad=pad, **symbols)
        return {file: Imported(content, order, framed=framed) for file, framed in names.items()}, order
    pieces, order = read_numbers(foreign.path / "vocab.json", size, pad=-1 if pad is None else pad, **symbols)
    models = [read_model(foreign.path / file) for file in ("source.spm", "target.spm")]
    return {
        file: SentencePieces(model, pieces, framed=framed)
        for (file, framed), model in zip(names.items(), models, strict=True)
    }, order
