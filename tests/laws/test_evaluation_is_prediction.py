"""Evaluation is prediction, scored: for every task the answers that are scored are those that predict writes.

The file of a split is evaluated, and its inputs are predicted as `weft predict` does. The first score is
also computed here from what predict wrote.
Read next: tests/tasks/test_forecast_evaluation.py, every window of forecasts.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import sacrebleu

from tests.shared import quick_first, shared_run
from weft import rooms, tasks
from weft.data.lines import read_lines
from weft.nn.embed.contextual import BOUNDARY
from weft.run import open_run
from weft.tasks.embeddings.data import read_questions
from weft.tasks.masked.model import hide
from weft.tasks.masked.predictor import ROWS, SHARE
from weft.tasks.predictor import answered
from weft.tasks.task import Split, Task


class Answers(NamedTuple):
    """What predict wrote, the outputs that the evaluation scored, and the first score from the former."""

    written: Any
    scored: Any
    value: float


class Case(NamedTuple):
    """A task as it is tried.

    run: of tests/shared.py.
    answers: of a run, with an evaluation of its split.
    changes: of the recipe, as by --set.
    asked: settings of both commands.
    """

    run: str
    answers: Callable[[Any, Any, Path, dict[str, Any]], Answers]
    split: Split = "valid"
    changes: Sequence[str] = ()
    asked: dict[str, Any] = {}  # noqa: RUF012  never changed


def written(opened: Any, file: Path, asked: dict[str, Any], **more: Any) -> list[str]:
    """The texts that `weft predict RUN FILE` writes."""
    settings = opened.task.prediction_settings(**asked, **more)
    predictor = opened.pipeline.predictor(opened.model, settings)
    found = predictor.formatted(answered(predictor, predictor.inputs(file)))
    return [text for _, text in found if text is not None]


def lines(folder: Path, texts: Sequence[str]) -> Path:
    path = folder / "in.txt"
    path.write_text("".join(f"{text}\n" for text in texts), "utf-8")
    return path


def share(pairs: Sequence[tuple[Any, Any]]) -> float:
    return sum(one == other for one, other in pairs) / len(pairs)


def pairs(opened: Any) -> tuple[list[str], list[str]]:
    """The sources and references of the validation part."""
    found = opened.pipeline.examples_of("valid", None)
    return list(found.sources), list(found.references)


def translated(opened: Any, found: Any, folder: Path, asked: dict[str, Any]) -> Answers:
    sources, references = pairs(opened)
    ours = written(opened, lines(folder, sources), asked)
    bleu = sacrebleu.corpus_bleu(ours, [references], force=True).score
    return Answers(ours, found.compared[0].made().outputs, bleu)


def of_many(opened: Any, found: Any, folder: Path, asked: dict[str, Any]) -> Answers:
    ours, scored, bleus = [], [], []
    for pair, sides in opened.pipeline.examples_of("valid", None).items():
        source, target = pair.split("-")
        file = lines(folder, sides.sources)
        ours.append(written(opened, file, asked, source=source, target=target))
        scored.append(found.pairs[pair].compared[0].made().outputs)
        bleus.append(sacrebleu.corpus_bleu(ours[-1], [list(sides.references)], force=True).score)
    return Answers(ours, scored, float(np.mean(bleus[:4])))  # the fifth pair is never trained


def summarised(opened: Any, found: Any, folder: Path, asked: dict[str, Any]) -> Answers:
    sources, references = pairs(opened)
    ours = written(opened, lines(folder, sources), asked)
    f1 = []
    for output, reference in zip(ours, references, strict=True):  # of single words, so each is right or not
        words = [one for one in output.lower().split() if one.isalnum()]
        f1.append(2 * (reference in words) / (len(words) + 1))
    return Answers(ours, found.compared[0].made().outputs, 100 * float(np.mean(f1)))


def captioned(opened: Any, found: Any, folder: Path, asked: dict[str, Any]) -> Answers:
    data = opened.task.data
    ours = written(opened, data.folder / data.valid, asked)
    references = [one.captions for one in data.find("valid")]
    return Answers(
        ours,
        found.compared[0].made().outputs,
        float(np.mean([one in several for one, several in zip(ours, references, strict=True)])),
    )


def errors(ours: Sequence[str], theirs: Sequence[str]) -> int:
    """Levenshtein's distance."""
    row = list(range(len(theirs) + 1))
    for n, one in enumerate(ours, 1):
        before, row[0] = row[0], n
        for m, other in enumerate(theirs, 1):
            before, row[m] = row[m], min(row[m] + 1, row[m - 1] + 1, before + (one != other))
    return row[-1]


def heard(opened: Any, found: Any, folder: Path, asked: dict[str, Any]) -> Answers:
    listed = list(opened.task.data.listed("valid"))
    ours = written(opened, lines(folder, [str(one.file) for one in listed]), asked)
    wrong = sum(errors(text.split(), one.text.split()) for text, one in zip(ours, listed, strict=True))
    words = sum(len(one.text.split()) for one in listed)
    return Answers(ours, found.compared[0].made().outputs, 100 * wrong / words)


def classified(opened: Any, found: Any, folder: Path, asked: dict[str, Any]) -> Answers:
    examples = opened.pipeline.examples("valid")
    ours = written(opened, lines(folder, [one.text for one in examples]), asked)
    right = share([(text, one.label) for text, one in zip(ours, examples, strict=True)])
    return Answers(ours, found.compared[0].made().outputs, right)


def tagged(opened: Any, found: Any, folder: Path, asked: dict[str, Any]) -> Answers:
    data = opened.task.data
    ours = written(opened, data.file("test"), asked)
    gold = [one.tags for one in data.sentences("test")]
    tags = [
        [line.split("\t")[3] for line in text.split("\n") if line.split("\t")[0].isdigit()] for text in ours
    ]
    right = share(
        [(a, b) for own, true in zip(tags, gold, strict=True) for a, b in zip(own, true, strict=True)]
    )
    return Answers([" ".join(one) for one in tags], found.compared[0].made().outputs, right)


def seen(opened: Any, found: Any, folder: Path, asked: dict[str, Any]) -> Answers:
    files = opened.task.data.find("valid")
    ours = written(opened, lines(folder, [str(one.path) for one in files]), asked)
    right = share([(text, one.label) for text, one in zip(ours, files, strict=True)])
    return Answers(ours, found.compared[0].made().outputs, right)


def forecast(opened: Any, found: Any, folder: Path, asked: dict[str, Any]) -> Answers:
    """The last window of each series."""
    data = opened.task.data
    header, *rows = (data.folder / data.file).read_text().splitlines()
    before, after = rows[: -data.horizon], rows[-data.horizon :]
    texts = written(opened, lines(folder, [header, *before]).rename(folder / "in.csv"), asked)
    values = [[float(line.split(",")[2]) for line in text.split("\n")[-data.horizon :]] for text in texts]
    compared = found.compared[0].made()
    last = [len(compared.references) * (n + 1) // 3 - 1 for n in range(3)]
    true = np.array([row.split(",")[1:] for row in after], float).T
    np.testing.assert_allclose(compared.references[last], true, atol=1e-9)
    mae = float(np.abs(np.array(values) - true).mean())
    ours = float(np.abs(compared.outputs.best[last] - true).mean())
    value = found.scores[0].value if np.isclose(mae, ours, rtol=1e-4) else float("nan")
    return Answers(np.array(values), compared.outputs.best[last], value)


def likely(opened: Any, found: Any, folder: Path, asked: dict[str, Any]) -> Answers:
    """The nats of each line, alone."""
    del asked
    data = opened.task.data
    texts = list(read_lines(data.folder / data.valid))
    texts = texts if data.batches == "lines" else texts[:1]
    if len(texts) == 1:
        found = opened.pipeline.evaluate(opened.model, data=lines(folder, texts))
    ours = written(opened, lines(folder, texts), {"scores": True})
    logp = np.array([float(text.partition("\t")[0]) for text in ours])
    compared = found.compared[0].made()
    value = float(np.exp(-logp.sum() / compared.references.sum()))
    return Answers(logp, -compared.outputs, value if len(texts) > 1 else _again(found, value, opened))


def _again(found: Any, value: float, opened: Any) -> float:
    """The score of the split, if that of one line is its value."""
    assert found.scores[0].value == pytest.approx(value, rel=1e-4)
    return opened.pipeline.evaluate(opened.model, split="valid").scores[0].value


def filled(opened: Any, found: Any, folder: Path, asked: dict[str, Any]) -> Answers:
    """The hidden tokens of each line, where they are masks; others are no gaps."""
    del folder, asked
    filler = opened.pipeline.predictor(opened.model)
    vocabulary, mask = filler.vocabulary, len(filler.vocabulary)
    data = opened.task.data
    rows = [vocabulary.encode(line) for line in read_lines(data.folder / data.valid)]
    order = sorted(range(len(rows)), key=lambda n: len(rows[n]))
    compared, ours, scored = found.compared[1].made(), [], []
    for at in range(0, len(order), ROWS):
        some = order[at : at + ROWS]
        batch = hide([rows[n] for n in some], mask, share=SHARE, seed=[1, at])
        for row, number in enumerate(some):
            tokens = batch.source[row][batch.source_mask[row]].tolist()
            chosen = batch.chosen[row].nonzero()[:, 0].tolist()
            gaps = [place for place in chosen if tokens[place] == mask]
            if gaps:
                (answer,) = filler.answers([tokens])
                ours += [gap[0][0] for gap in answer.filled(1).gaps]
                pieces = compared.outputs[number]
                scored += [pieces[chosen.index(place)].removeprefix("▁") for place in gaps]
    return Answers(ours, scored, found.scores[0].value)


def near(opened: Any, found: Any, folder: Path, asked: dict[str, Any]) -> Answers:
    """Analogies; the cosines of pairs are those of `similarity`."""
    words = ["apple", "pear", "plum", "fig", "saw", "drill", "axe", "file"]
    vectors = opened.pipeline.predictor(opened.model)
    pairs = [one for one in read_questions(opened.task.data.questions("test")).pairs if one.second in vectors]
    cosines = [vectors.similarity(one.first, one.second) for one in pairs]
    np.testing.assert_allclose(found.compared[0].made().outputs, cosines, rtol=1e-5)
    asked_of = [(a, b, c) for a in words[:4] for b in words[4:6] for c in words if c not in (a, b)]
    (folder / "q.txt").write_text(": kinds\n" + "".join(f"{a} {b} {c} apple\n" for a, b, c in asked_of))
    again = opened.pipeline.evaluate(opened.model, data=folder / "q.txt")
    ours = [
        text.split("\t")[1].split()[0]
        for text in written(opened, lines(folder, [" ".join(one) for one in asked_of]), asked)
    ]
    right = share([(one, "apple") for one in ours])
    assert again.scores[0].value == pytest.approx(100 * right)
    return Answers(ours, again.compared[0].made().outputs, found.scores[0].value)


def added(opened: Any, found: Any, folder: Path, asked: dict[str, Any]) -> Answers:
    data = opened.task.data
    batch = data.batch("valid", np.arange(data.valid))
    texts = [" ".join(f"{value!r}{'*' * int(mark)}" for value, mark in row.tolist()) for row in batch.source]
    ours = np.array([float(one) for one in written(opened, lines(folder, texts), asked)])
    return Answers(ours, found.compared[0].made().outputs, float(((ours - batch.target.numpy()) ** 2).mean()))


def drawn(opened: Any, found: Any, folder: Path, asked: dict[str, Any]) -> Answers:
    captions = [one.captions[0] for one in opened.task.data.find("valid")]
    return Answers(written(opened, lines(folder, captions), asked), found.outputs, found.scores[0].value)


def expected(opened: Any, found: Any, folder: Path, asked: dict[str, Any]) -> Answers:
    """The forward nats of each sentence, from what the model expects word by word."""
    del folder, asked
    comparer, data, nats = opened.pipeline.predictor(opened.model), opened.task.data, []
    for line in read_lines(data.folder / data.valid):
        logp = comparer.ahead(line.split())
        numbers = [*comparer.lexicon.spell([line.split()])[0].words[0].tolist(), BOUNDARY]
        nats.append(-float(logp[range(len(numbers)), numbers].sum()))
    compared = found.compared[0].made()
    return Answers(np.array(nats), compared.outputs, float(np.exp(sum(nats) / compared.references.sum())))


SAMPLED = ("decoding.search=sample", "decoding.temperature=1.5")
SCORED = "decoding.max_tokens=0"
SHORT = {"search": {"beam": 2, "length_penalty": 0.1, "prefix": "uno"}}
CASES = {
    "classify": Case("classify", classified),
    "translate, short": Case("translate", translated, asked=SHORT),
    "caption, sampled": Case("caption", captioned, changes=SAMPLED),
    "tag": Case("tag", tagged, "test"),
    "images": Case("images", seen),
    "language in lines": Case("language in lines", likely, changes=[SCORED]),
    "masked": Case("masked", filled),
    "memory": Case("memory", added),
    "draw": Case("draw", drawn),
    "translate": Case("translate", translated),
    "translate, sampled": Case("translate", translated, changes=SAMPLED),
    "caption": Case("caption", captioned),
    "summarise": Case("summarise", summarised),
    "multilingual": Case("multilingual", of_many),
    "speech": Case("speech", heard),
    "speech, sampled": Case("speech", heard, changes=SAMPLED),
    "forecast": Case("forecast", forecast, "test"),
    "language in windows": Case("language in windows", likely, changes=[SCORED, "decoding.stride=3"]),
    "language": Case("language", likely, changes=[SCORED]),
    "embeddings": Case("embeddings", near, "test"),
    "elmo": Case("elmo", expected),
}
QUICK = 9  # the first ones; those of forecasts have a file of their own


@pytest.mark.parametrize("case", quick_first(CASES, QUICK))
def test_the_answers_that_are_scored_are_those_that_predict_writes(case: Case, tmp_path: Path) -> None:
    opened = open_run(shared_run(case.run), device="cpu", changes=case.changes)
    settings = opened.task.evaluation_settings(**case.asked)
    found = opened.pipeline.evaluate(opened.model, split=case.split, settings=settings)
    ours, scored, value = case.answers(opened, found, tmp_path, case.asked)
    if isinstance(ours, np.ndarray):
        np.testing.assert_allclose(ours, scored, rtol=1e-4, atol=1e-4)
    else:
        assert list(ours) == list(scored)
    assert found.scores[0].value == pytest.approx(value, rel=1e-4)


def test_every_task_is_tried() -> None:
    assert {case.run.split()[0] for case in CASES.values()} == set(rooms.parts(tasks, Task))


def test_a_text_that_prediction_refuses_is_scored_as_wrong_for_the_same_reason(tmp_path: Path) -> None:
    opened, path = open_run(shared_run("classify"), device="cpu"), tmp_path / "in.csv"
    path.write_text('label,text\ngood,a fine film\nbad," "\n')
    found = opened.pipeline.evaluate(opened.model, data=path)
    predictor = opened.pipeline.predictor(opened.model)
    (why,) = (
        one.wrong
        for one in answered(predictor, predictor.inputs(lines(tmp_path, ["fine", " "])))
        if one.wrong
    )
    assert [one.partition(": ")[2] for one in found.wrong] == [why.partition(": ")[2]]
    assert found.outputs[1] == "" and found.scores[0].value <= 0.5
