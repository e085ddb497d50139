"""The vocabularies of a checkpoint directory, numbered as Weft's are: a tokenizer.json's, or Marian's files'.

Read next: ../text/imported.py, ../text/sentencepiece.py; runs.py, which keeps them in a run.
"""

from typing import Any

from weft.importing.checkpoint import Foreign
from weft.text.imported import Imported, renumbered
from weft.text.sentencepiece import SentencePieces, read_model, read_numbers
from weft.text.vocabulary import Vocabulary


def vocabularies(foreign: Foreign, names: dict[str, bool]) -> tuple[dict[str, Vocabulary], list[int]]:
    """What the model reads and writes.

    A directory with source.spm and no tokenizer.json is one of Marian's: two SentencePiece models whose
    pieces vocab.json numbers, as Helsinki-NLP publishes them.

    Args:
        foreign: the checkpoint.
        names: the files to be, and whether a text of theirs is encoded with the marks around it; the second
            of two is the target's.

    Returns:
        Each file's vocabulary, and for each number of Weft's the number there; -1 for a symbol it lacks.

    Raises:
        CheckpointError: a file is missing or damaged, or of another model.
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
