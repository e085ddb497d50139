"""What each task answers to a batch of inputs: the work that a batcher does.

Read next: continuing.py, language models; watching.py, a translation watched while it is found.
"""

from collections.abc import Callable, Sequence
from typing import Any

from weft.errors import WeftError
from weft.serve.batcher import Left, Stopped, Work
from weft.serve.limits import Limits, Refusal, kind_of
from weft.serve.served import Served, heeding
from weft.tasks.pairs.decoding import Decoding
from weft.tasks.pairs.translator import Translation, Translator

PREDICTED = ("classify", "tag", "forecast", "memory")


def translator(run: Served, target: str, decoding: Decoding, stopped: Stopped | None = None) -> Translator:
    """The translator of a run into one of its languages."""
    opened = run.opened
    model = opened.model if stopped is None else heeding(opened.model, stopped)  # type: ignore[arg-type]
    if run.kind == "translate":
        return opened.task.predictor(model, decoding)  # type: ignore[no-any-return]
    sources = [source for source, to in run.directions() if to == target]
    many = opened.task.predictor(model)
    many = type(many)(model, opened.task.data, opened.task.vocabulary, decoding)
    return many.to(target, sources[0])  # type: ignore[no-any-return]


def translating(run: Served, target: str, decoding: Decoding) -> Work:
    """Lines to their n best translations."""

    def work(lines: list[str], stopped: Stopped) -> list[list[Translation]]:
        return list(translator(run, target, decoding, stopped).translate(lines))

    return work


def predicting(run: Served) -> Work:
    """Inputs of a task that answers each at once, as JSON."""
    answer: Callable[[Any, list[Any]], list[Any]] = _ANSWERS[run.kind]

    def work(items: list[Any], stopped: Stopped) -> list[Any]:
        if stopped():
            raise Left
        return answer(run.opened.task.predictor(run.opened.model), items)

    return work


def inputs_of(run: Served, given: Any, limits: Limits) -> list[Any]:
    """The inputs of `/predict`, checked.

    Raises:
        Refusal: not what this task reads.
    """
    if run.kind not in PREDICTED:
        raise Refusal(
            400,
            f"{run.name}: a run of the kind {run.kind} does not answer here; ask /translate for translations "
            "and /v1/completions for continuations",
        )
    if run.kind == "forecast":
        return _numbers(given, limits)
    texts = limits.texts(given, "inputs")
    if any(not text.strip() for text in texts):
        raise Refusal(400, "inputs: an empty text came, there is nothing to answer; send some words")
    return texts


def _numbers(given: Any, limits: Limits) -> list[list[float]]:
    rows = given if isinstance(given, list) and given and isinstance(given[0], list) else [given]
    if len(rows) > limits.items:
        raise Refusal(400, f"inputs: {len(rows)} series came, at most {limits.items} are answered at once")
    for row in rows:
        if not isinstance(row, list) or not row:
            raise Refusal(400, f"inputs: a list of numbers is needed, {kind_of(row)} came")
        if len(row) > limits.characters:
            raise Refusal(400, f"inputs: {len(row):,} numbers came, at most {limits.characters:,} are read")
        if not all(
            isinstance(one, int | float) and not isinstance(one, bool) and abs(one) < 1e30 for one in row
        ):
            raise Refusal(400, "inputs: numbers of a size below 1e30 are needed in every place")
    return [[float(one) for one in row] for row in rows]


def _classes(classifier: Any, texts: list[str]) -> list[Any]:
    return [
        {
            "label": found.label,
            "prob": found.prob,
            "probs": dict(zip(classifier.reader.classes, found.probs.tolist(), strict=True)),
        }
        for found in classifier.classify(texts)
    ]


def _tags(tagger: Any, texts: list[str]) -> list[Any]:
    sentences = [text.split() for text in texts]
    return [
        [
            {"word": word, "tag": tag, "prob": prob}
            for word, tag, prob in zip(words, found.tags, found.probs, strict=True)
        ]
        for words, found in zip(sentences, tagger.tag(sentences, probs=True), strict=True)
    ]


def _each(predictor: Any, items: Sequence[Any]) -> list[Any]:
    try:
        return [predictor.predict(item) for item in items]
    except WeftError as error:
        raise Refusal(400, str(error)) from error


_ANSWERS: dict[str, Callable[[Any, list[Any]], list[Any]]] = {
    "classify": _classes,
    "tag": _tags,
    "forecast": _each,
    "memory": _each,
}
