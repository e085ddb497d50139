"""Loads the vocabulary of a run, trained by Weft, by another fast tokenizer or by sentencepiece.

Read next: saved.py, Weft's own file; imported.py and sentencepiece.py.
"""

from pathlib import Path

from weft.errors import CheckpointError, ConfigError
from weft.text import imported, sentencepiece
from weft.text.saved import read_content, tokenizer_of
from weft.text.vocabulary import Vocabulary


def load_vocabulary(path: str | Path) -> Vocabulary:
    """Read what `save` of a vocabulary wrote; only pieces and settings are taken, nothing in the file is run.

    Raises:
        CheckpointError: the file is missing or damaged, or no tokenizer.json of Weft.
        ConfigError: it needs a library that is not installed.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> words = Vocabulary.train(["a cat sat"], kind="word", size=None)
        >>> with TemporaryDirectory() as folder:
        ...     words.save(Path(folder, "tokenizer.json"))
        ...     load_vocabulary(Path(folder, "tokenizer.json")).decode(words.encode("a cat"))
        'a cat'
    """
    path = Path(path)
    content = read_content(path)
    if not isinstance(content, dict) or imported.KEY not in content:
        model, settings = tokenizer_of(content, path)
        return Vocabulary(model, **settings)
    try:
        about = content.pop(imported.KEY)
        if "sentencepiece" in about:
            return sentencepiece.restored(about)
        return imported.restored(content, about)
    except ConfigError:
        raise
    except Exception as error:
        raise CheckpointError(
            f"{path}: cannot be used ({str(error)[:200]}); import the model again"
        ) from error
