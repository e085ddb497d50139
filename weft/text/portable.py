"""A vocabulary as the file that exported models read."""

import json
from typing import Any

from tokenizers import Tokenizer, models

from weft.errors import ConfigError
from weft.text.imported import KEY, ImportedVocabulary
from weft.text.pieces import cutter
from weft.text.vocabulary import Vocabulary


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
