"""Loads the vocabulary of a run, trained by Weft, by another fast tokenizer or by sentencepiece.

`portable` gives it as the file that exported models read. Read next: saved.py, Weft's own file; imported.py
and sentencepiece.py.
"""

import json
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, models

from weft.errors import CheckpointError, ConfigError
from weft.text import imported, sentencepiece
from weft.text.imported import KEY, ImportedVocabulary
from weft.text.pieces import cutter
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


def portable(vocabulary: Vocabulary) -> bytes:
    """A tokenizer.json with one more key, `weft`: the normalisation, and the numbering if it is another.

    Special symbols are ordinary entries, so "<eos>" in a text is text, as in Weft.
    """
    content = vocabulary.as_json()
    about = content.pop(KEY, None)
    if about is None:
        about = {}
    elif "sentencepiece" in about:
        raise ConfigError(
            "vocabulary: expected a tokenizer.json, got a sentencepiece model, which the exported program "
            "cannot read; serve the run with weft serve"
        )
    about |= {"form": vocabulary.form, "lowercase": vocabulary.lowercase}
    if isinstance(vocabulary, ImportedVocabulary):
        about |= dict(zip(("before", "after"), vocabulary.around(), strict=True))
    return (json.dumps({**content, KEY: about}, ensure_ascii=False) + "\n").encode()


def portable_cutter(kind: str, *, form: str, lowercase: bool) -> bytes:
    """A tokenizer.json without pieces, which only says how a text is cut into words."""
    made = Tokenizer(models.WordLevel({"<unk>": 1}, unk_token="<unk>"))
    made.pre_tokenizer = cutter(kind)
    content: dict[str, Any] = json.loads(made.to_str())
    return (json.dumps({**content, KEY: {"form": form, "lowercase": lowercase}}) + "\n").encode()
