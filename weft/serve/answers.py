"""The work of a batcher for a run that writes texts for texts: a batch of lines is translated.

Read next: predicting.py, all other tasks; continuing.py, language models; watching.py, a translation watched
while it is found.
"""

from weft.models import Generator
from weft.serve.batcher import Stopped, Work
from weft.serve.served import Served, stoppable
from weft.tasks.shared.writing.decoding import Decoding
from weft.tasks.shared.writing.translator import Translation, Translator


def translator(
    run: Served,
    target: str,
    decoding: Decoding,
    stopped: Stopped | None = None,
    model: Generator | None = None,
) -> Translator:
    """The translator of a run into one of its languages, or its summariser.

    Args:
        run: writes texts for texts.
        target: a language of it; ignored by a summariser.
        decoding: how it searches.
        stopped: whether to give up.
        model: a changed one in the place of the run's.
    """
    rewriter, at_work = run.rewriter, model or run.opened.model
    assert rewriter is not None and isinstance(at_work, Generator)
    return rewriter.translator(at_work if stopped is None else stoppable(at_work, stopped), decoding, target)


def translating(run: Served, target: str, decoding: Decoding) -> Work:
    """Lines to their n best translations."""

    def work(lines: list[str], stopped: Stopped) -> list[list[Translation]]:
        return list(translator(run, target, decoding, stopped).translate(lines))

    return work
