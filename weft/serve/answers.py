"""The batcher's work for a run that rewrites texts: translate a batch of lines.

Read next: predicting.py, all other tasks; continuing.py, language models; watching.py, the search of one
translation.
"""

from weft.models import Generator
from weft.serve.job import Stopped, Work
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
        run: a run that rewrites texts.
        target: one of its target languages; ignored by a summariser.
        decoding: settings of the search.
        stopped: tells whether to stop early; None never stops.
        model: a changed model to use instead of the run's.
    """
    rewriter, used = run.rewriter, model or run.opened.model
    assert rewriter is not None and isinstance(used, Generator)
    return rewriter.translator(used if stopped is None else stoppable(used, stopped), decoding, target)


def translating(run: Served, target: str, decoding: Decoding) -> Work:
    """The work that maps lines to their n best translations."""

    def work(lines: list[str], stopped: Stopped) -> list[list[Translation]]:
        return list(translator(run, target, decoding, stopped).translate(lines))

    return work
