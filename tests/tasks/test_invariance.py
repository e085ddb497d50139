"""Law 2 on what a user gets: a line's translations depend on nothing beside it.

Alone, in a batch of 64, in another order and with more padding it has the same hypotheses with the same
scores. Read next: tests/laws, where the parts are held to it.
"""

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

import weft as package
from tests.commands import corpus
from tests.commands.shell import weft
from tests.shared import shared_run
from weft.tasks.seq2seq import translator as module
from weft.tasks.seq2seq.encoding import pad
from weft.tasks.seq2seq.translator import SearchResult, Translator

KINDS = {
    "transformer": [
        "model.encoder={use: transformer, size: 20, num_layers: 2, num_heads: 2, inner: 23}",
        "model.decoder={use: transformer, size: 20, num_layers: 2, num_heads: 2, inner: 23}",
        "model.embedding.size=20",
    ],
    "hybrid": [
        "model.encoder={use: transformer, size: 20, num_layers: 1, num_heads: 2, inner: 23, norm: after}",
        "model.decoder={use: recurrent, cell: lstm, sizes: [17, 13], score: additive, enters: both}",
        "model.embedding.size=20",
    ],
}


@pytest.fixture(scope="module", params=["rnn", "transformer", pytest.param("hybrid", marks=pytest.mark.slow)])
def translator(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Translator:
    run = shared_run("translate")
    if request.param != "rnn":
        folder = tmp_path_factory.mktemp(request.param)
        changes = *KINDS[request.param], "training.max_updates=80", "training.validate_every=80"
        answer = weft("train", corpus.make(folder / "toy"), "--run", folder / "run", *changes)
        assert answer.code == 0, answer.err
        run = folder / "run"
    found = package.load(run)
    return Translator(
        found.model, found.source, found.target, replace(found.decoding, beam=4, nbest=3, batch_rows=64)
    )


LINES = [
    " ".join(random.Random(number).choices(list(corpus.WORDS), k=1 + number * number % 13))
    for number in range(67)
]


def answers(translator: Translator, lines: Sequence[str], **changes: int) -> list[list[SearchResult]]:
    how = replace(translator.decoding, **changes)
    return list(Translator(translator.model, translator.source, translator.target, how).translate(lines))


def agree(one: list[list[SearchResult]], other: list[list[SearchResult]]) -> None:
    assert len(one) == len(other)
    for mine, theirs in zip(one, other, strict=True):
        assert [each.tokens for each in mine] == [each.tokens for each in theirs]
        assert [each.text for each in mine] == [each.text for each in theirs]
        assert [each.score for each in mine] == pytest.approx([each.score for each in theirs], abs=1e-5)
        assert [each.logp for each in mine] == pytest.approx(
            [each.logp for each in theirs], abs=1e-4
        )  # a sum


def test_the_lines_tell_something(translator: Translator) -> None:
    found = answers(translator, LINES)
    assert {len(line.split()) for line in LINES} >= {1, 2, 5, 10, 13}
    assert len({each[0].text for each in found}) > len(LINES) / 3  # 80 updates: some lines share one
    assert all(len(each) == 3 for each in found)


def test_a_line_alone(translator: Translator) -> None:
    agree(answers(translator, LINES, batch_rows=1), answers(translator, LINES))
    agree([answers(translator, [line])[0] for line in LINES[:9]], answers(translator, LINES)[:9])


def test_another_order(translator: Translator) -> None:
    order = random.Random(5).sample(range(len(LINES)), len(LINES))
    shuffled = answers(translator, [LINES[number] for number in order], batch_rows=7)
    agree([shuffled[order.index(number)] for number in range(len(LINES))], answers(translator, LINES))


def test_more_padding(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = answers(translator, LINES)
    widths: list[int] = []

    def wide(rows: Sequence[Sequence[int]]) -> object:
        widths.append(max(map(len, rows)) + 11)
        return pad(rows, widths[-1])

    monkeypatch.setattr(module, "pad", wide)
    agree(answers(translator, LINES), plain)
    assert len(widths) == 2  # it was used


@pytest.mark.parametrize("search", [{"search": "greedy", "nbest": 1}, {"beam": 1, "nbest": 1}])
def test_greedy_is_a_beam_of_one(translator: Translator, search: dict[str, int]) -> None:
    agree(answers(translator, LINES, **search), answers(translator, LINES, beam=1, nbest=1, batch_rows=3))


def test_alignments_do_not_depend_on_the_batch(translator: Translator) -> None:
    # One by one they are made; what was translated in a batch must align as if it was alone.
    for line, found in zip(LINES[:5], answers(translator, LINES[:5]), strict=True):
        looked = translator.align(translator.source.encode(line), found[0].tokens)
        assert looked.weights.shape == (len(found[0].tokens) + 1, len(line.split()))
        assert looked.weights.sum(1) == pytest.approx([1.0] * len(looked.target), abs=1e-5)
