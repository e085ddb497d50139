"""What a run that writes texts after texts answers to a batch of them: the work that a batcher does.

Read next: predicting.py, all other tasks; continuing.py, language models; watching.py, a translation watched
while it is found.
"""

from weft.models import Generator
from weft.serve.batcher import Stopped, Work
from weft.serve.served import Served, heeding
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
        run: that writes texts after texts.
        target: a language of it; of no meaning to a summariser.
        decoding: how it searches.
        stopped: whether to give up.
        model: a changed one in the place of the run's.
    """
    opened = run.opened
    model = model or opened.model  # type: ignore[assignment]
    assert model is not None
    model = model if stopped is None else heeding(model, stopped)
    if run.kind in ("translate", "summarise"):
        return opened.ready.predictor(model, decoding)  # type: ignore[no-any-return]
    sources = [source for source, to in run.directions() if to == target]
    many = opened.ready.predictor(model)
    many = type(many)(model, opened.task.data, opened.ready.vocabulary, decoding)
    return many.to(target, sources[0])  # type: ignore[no-any-return]


def translating(run: Served, target: str, decoding: Decoding) -> Work:
    """Lines to their n best translations."""

    def work(lines: list[str], stopped: Stopped) -> list[list[Translation]]:
        return list(translator(run, target, decoding, stopped).translate(lines))

    return work
