"""A translator that writes capitals, for documents."""

import numpy as np

from weft.documents.files import Document, opened
from weft.documents.links import Links
from weft.documents.segments import WrittenSentence
from weft.words import spans as words


def shouted(document: Document) -> bytes:
    """The document with each text in capitals, each word linked with itself."""
    found = []
    for one in document.segments:
        spans = words(one.text)
        found.append(WrittenSentence(one.text.upper(), Links(np.eye(len(spans)), spans, spans)))
    return document.written(found)


def translated(text: str, name: str) -> str:
    return shouted(opened(text.encode(), name, "en", "es")).decode()
