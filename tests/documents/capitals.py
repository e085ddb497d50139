"""A translator that writes capitals, for documents; it keeps placeholders as every translator does."""

import numpy as np

from weft.documents.files import Document, opened
from weft.text.kept import missing, restored
from weft.text.segments import Links, WrittenSentence
from weft.words import spans as words


def shouted(document: Document) -> bytes:
    """The document with each text in capitals, each word linked with itself."""
    found = []
    for one in document.segments:
        spans = words(one.text)
        written = WrittenSentence(one.text.upper(), Links(np.eye(len(spans)), spans, spans))
        text = restored(one.text, written, missing(one.text, written.text))
        found.append(written._replace(text=text))
    return document.written(found)


def translated(text: str, name: str) -> str:
    return shouted(opened(text.encode(), name, "en", "es")).decode()
