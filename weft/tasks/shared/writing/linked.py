"""The links between the words of a sentence and those of its translation, by the model's own attention.

Read next: alignment.py; ../../../documents/links.py.
"""

from collections.abc import Iterator, Sequence

from weft.documents.links import attended, proportional
from weft.documents.segments import Sentence, Written
from weft.errors import ConfigError, DataError, ShapeError
from weft.tasks.shared.writing.translator import Translated, Translation, Translator


def translated(translator: Translator, sentences: Sequence[Sentence], wrong: list[str]) -> Iterator[Written]:
    """The best translation of each sentence; one that cannot be translated stays as it is.

    Args:
        translator: the model.
        sentences: of a document.
        wrong: gets the sentences that stay as they are, with reasons.
    """
    answers = translator.attempts([one.text for one in sentences])
    for sentence, answer in zip(sentences, answers, strict=True):
        if isinstance(answer, DataError | ShapeError):
            wrong.append(f"{sentence.text[:60]!r}: {answer}")
            yield Written(sentence.text, proportional(sentence.text, sentence.text))
        else:
            assert isinstance(answer, Translated)
            yield written(translator, sentence, answer.found[0])


def written(translator: Translator, sentence: Sentence, found: Translation) -> Written:
    """A translation as a document needs it.

    A model without attention over the source, such as a decoder alone, links words by their position in the
    sentence.

    Args:
        translator: the model.
        sentence: what it translated.
        found: one of its translations.
    """
    if not sentence.linked:
        return Written(found.text)
    if not found.tokens:
        return Written(found.text, proportional(sentence.text, found.text))
    copying = translator.copying(sentence.text)
    try:
        seen = copying.align(copying.source.encode(sentence.text), found.tokens)
    except ConfigError:  # no attention
        return Written(found.text, proportional(sentence.text, found.text))
    pieces = copying.source.pieces(seen.source), copying.target.pieces(found.tokens)
    return Written(found.text, attended(sentence.text, found.text, pieces, seen.weights))
