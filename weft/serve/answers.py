"""The batcher's work for a run that rewrites texts: translate a batch of lines.

Read next: predicting.py, all other tasks; continuing.py, language models; watching.py, the search of one
translation.
"""

from weft.documents.segments import Sentence, WrittenSentence
from weft.errors import DataError
from weft.models import Generator
from weft.serve.job import Stopped, Work
from weft.serve.served import ServedRun, stoppable
from weft.tasks.predictor import Answer, Failure
from weft.tasks.seq2seq.decoding import Decoding
from weft.tasks.seq2seq.documents import written
from weft.tasks.seq2seq.translator import BestTexts, Translator

SHOWN = 40
"""Characters of a sentence in an error."""


def translator(
    run: ServedRun,
    target: str,
    decoding: Decoding,
    stopped: Stopped | None = None,
    model: Generator | None = None,
) -> Translator:
    """The translator of a run into one of its languages, or its summariser.

    Args:
        run: a run that rewrites texts.
        target: one of its target languages; ignored by a summariser.
        decoding: settings of the search.
        stopped: tells whether to stop early; None never stops.
        model: a changed model to use instead of the run's.
    """
    rewriter, used = run.rewriter, model or run.opened.model
    assert rewriter is not None and isinstance(used, Generator)
    return rewriter.translator(used if stopped is None else stoppable(used, stopped), decoding, target)


def translating(run: ServedRun, target: str, decoding: Decoding) -> Work:
    """The work that maps sentences to their n best translations."""

    def work(sentences: list[Sentence], stopped: Stopped) -> list[list[WrittenSentence]]:
        used = translator(run, target, decoding, stopped)
        answers = used.attempts([one.text for one in sentences])
        return [_written(used, sentence, answer) for sentence, answer in zip(sentences, answers, strict=True)]

    return work


def _written(used: Translator, sentence: Sentence, answer: Answer | Failure) -> list[WrittenSentence]:
    """The n best translations of a sentence.

    Raises:
        DataError: it cannot be translated; the error says which sentence it is.
    """
    if not isinstance(answer, BestTexts):
        shown = sentence.text if len(sentence.text) <= SHOWN else f"{sentence.text[:SHOWN]}…"
        raise DataError(f"the sentence {shown!r}: {answer}")
    return [written(used, sentence, one) for one in answer.found] or [WrittenSentence("")]
