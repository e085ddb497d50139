"""A tiny recipe of every task, and its answers to inputs given together: what promises to all are tried on.

A task of weft/tasks without an entry here fails tests/tasks/test_every_task.py. Read next: that file.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from tests import toys
from tests.commands import corpus, labelled
from tests.commands.prose import make as make_prose
from weft.data.shapes import shapes
from weft.nn.forecasters.forecaster import Past
from weft.run import LoadedRun
from weft.tasks.masked.predictor import MASK
from weft.tasks.predictor import Place
from weft.text.vocabulary import EOS, PAD, SOS

Answers = list[tuple[Any, list[float]]]
"""For each input: what was answered, which must be the same, and its scores, which must be close."""


class Kind(NamedTuple):
    """A task as it is tried.

    make: writes data and recipe into a folder, and returns the recipe.
    changes: overrides that give it dropout, and batches so small that an epoch has several.
    inputs: of the lengths that matter: 1, and several others; the last is the longest.
    answer: the answers to inputs, given together.
    evaluated: what `weft evaluate` is given to score its run.
    """

    make: Callable[[Path], Path]
    changes: Sequence[str]
    inputs: Sequence[Any]
    answer: Callable[[LoadedRun, Sequence[Any]], Answers]
    evaluated: Sequence[str] = ("--split", "valid")


def _translated(opened: LoadedRun, lines: Sequence[Any], target: str = "") -> Answers:
    translator = opened.pipeline.predictor(opened.model)
    translator = translator.to(target) if target else translator
    return [([each.text for each in n], [each.score for each in n]) for n in translator.translate(lines)]


def _decided(opened: LoadedRun, lines: Sequence[Any]) -> Answers:
    found = opened.pipeline.predictor(opened.model).classify(lines)
    return [(each.label, each.probs.tolist()) for each in found]


def _tagged(opened: LoadedRun, lines: Sequence[Any]) -> Answers:
    sentences = [line.split() for line in lines]
    found = opened.pipeline.predictor(opened.model).tag(sentences, probs=True)
    return [(each.tags, each.probs) for each in found]


def _written(opened: LoadedRun, lines: Sequence[Any]) -> Answers:
    found = opened.pipeline.predictor(opened.model).write(lines)
    return [([each.text for each in n], [each.logp for each in n]) for n in found]


def _filled(opened: LoadedRun, lines: Sequence[Any]) -> Answers:
    filler = opened.pipeline.predictor(opened.model)
    size = len(filler.vocabulary)
    rows = []
    for line in lines:
        parts = [filler.vocabulary.encode(part) for part in line.split(MASK)]
        inside = [token for number, part in enumerate(parts) for token in [size] * (number > 0) + part]
        rows.append(torch.tensor([SOS, *inside, EOS]))
    source = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)
    with torch.no_grad():
        logp = opened.model(source, source != PAD)
    texts = [filler.fill(line).text for line in lines]
    return [(text, logp[n][source[n] == size].flatten().tolist()) for n, text in enumerate(texts)]


def _heard(opened: LoadedRun, recordings: Sequence[Any]) -> Answers:
    found = opened.pipeline.predictor(opened.model).transcribe(recordings)
    return [([each.text for each in n], [each.score for each in n]) for n in found]


def _forecast(opened: LoadedRun, starts: Sequence[Any]) -> Answers:
    values = torch.stack(
        [torch.sin(torch.arange(opened.task.data.lookback) * 0.3 + start) for start in starts]
    )
    known = values.new_zeros(len(starts), opened.task.data.lookback + opened.task.data.horizon, 0)
    with torch.no_grad():
        found = opened.model.best(
            Past(values, known, torch.zeros(len(starts), dtype=torch.long), known[:, : values.shape[1]])
        )  # type: ignore[operator]
    return [((), row) for row in found.tolist()]


def _remembered(opened: LoadedRun, lines: Sequence[Any]) -> Answers:
    rememberer = opened.pipeline.predictor(opened.model)
    rows = [rememberer.parse(line, Place("input"))[0] for line in lines]
    x = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
    mask = torch.arange(x.shape[1]) < torch.tensor([len(row) for row in rows])[:, None]
    with torch.no_grad():
        return [((), [value]) for value in rememberer._answer(x, mask).tolist()]


def _captioned(opened: LoadedRun, pictures: Sequence[Any]) -> Answers:
    found = opened.pipeline.predictor(opened.model).captions(np.stack(pictures))
    return [([each.text for each in n], [each.score for each in n]) for n in found]


def _seen(opened: LoadedRun, pictures: Sequence[Any]) -> Answers:
    probs = opened.pipeline.predictor(opened.model).probs(np.stack(pictures))
    return [(int(row.argmax()), row.tolist()) for row in probs]


def _layers(opened: LoadedRun, lines: Sequence[Any]) -> Answers:
    comparer = opened.pipeline.predictor(opened.model)
    sentences = [line.split() for line in lines]
    with torch.no_grad():
        found = opened.model(*comparer.lexicon.spell(sentences))
    rows = [torch.cat([layer[n, : len(words)] for layer in found]) for n, words in enumerate(sentences)]
    return [((), row.flatten().tolist()) for row in rows]


def _drawn(opened: LoadedRun, lines: Sequence[Any]) -> Answers:
    drawer = opened.pipeline.predictor(opened.model)
    pictures = drawer.draw([drawer.vocabulary.encode(line) for line in lines])
    return [((line, one.tobytes()), []) for line, one in zip(lines, pictures, strict=True)]


def _near(opened: LoadedRun, words: Sequence[Any]) -> Answers:
    vectors = opened.pipeline.predictor(opened.model)
    found = [vectors.nearest(word, 3) for word in words]
    return [([each.word for each in near], [each.similarity for each in near]) for near in found]


def _in_place(make: Callable[[Path], Path]) -> Callable[[Path], Path]:
    """The same recipe, with the folder of its data written into it."""

    def made(folder: Path) -> Path:
        recipe = make(folder)
        recipe.write_text(recipe.read_text("utf-8").replace("data: {", f"data: {{folder: {folder}, ", 1))
        return recipe

    return made


def _lines(words: Sequence[str], lengths: Sequence[int]) -> list[str]:
    return [" ".join(words[(at + n) % len(words)] for n in range(size)) for at, size in enumerate(lengths)]


LENGTHS = 1, 3, 2, 5, 1, 4, 7, 23
SUMS = [
    " ".join(f"{np.sin(n + at) ** 2:.2f}" + "*" * (n in (0, size - 1)) for n in range(size))
    for at, size in enumerate((2, 5, 3, 11, 7))
]
GAPS = [
    " ".join(MASK if n == at % size else ("the", "cat", "can", "purr")[(at + n) % 4] for n in range(size))
    for at, size in enumerate(LENGTHS)
]
SONGS = [
    np.sin(np.arange(16 * size).reshape(size, 16) * (0.3 + at)).astype(np.float32)
    for at, size in enumerate((1, 7, 3, 29, 53))
]
PICTURES = list(shapes([2], range(5), 12)[0])
GREEDY = "decoding.search=greedy", "decoding.max_tokens=9"

KINDS = {
    "translate": Kind(
        corpus.make,
        ["model.decoder.dropout=0.2", "data.batch_tokens=200", "decoding.nbest=2",
         "data.augment={concatenate: 0.5, drop_words: 0.1, swap_words: 0.2, typos: 0.1}"],
        _lines(list(corpus.WORDS), LENGTHS),
        _translated,
    ),
    "summarise": Kind(  # a pointer: unknown words are copied
        toys.names,
        ["model.decoder.dropout=0.2", "data.batch_tokens=30", "decoding.nbest=2"],
        _lines(["alpha", "It", "is", "zyx", "qua", ".", "mor"], LENGTHS),
        _translated,
    ),
    "multilingual": Kind(
        toys.many,
        ["data.vocabulary={kind: bpe, size: 40, dropout: 0.3}",
         "data.augment={concatenate: 0.5, drop_words: 0.2, swap_words: 0.2, typos: 0.2}",
         "model.encoder={use: recurrent, cell: gru, sizes: [12]}",
         "model.decoder={use: recurrent, cell: gru, sizes: [16], score: bilinear}"],
        _lines(["one", "two", "three", "four", "five"], LENGTHS),
        lambda opened, lines: _translated(opened, lines, "bb"),
    ),
    "language": Kind(
        make_prose,  # the state is carried, so an update has one batch
        ["model.decoder.dropout=0.2", "training.accumulate=1", *GREEDY],
        _lines(["the", "cat", "sat", "on", "a", "mat"], LENGTHS),
        _written,
    ),
    "language in windows": Kind(
        lambda folder: make_prose(folder, batches="windows"),
        ["model.decoder.dropout=0.2", *GREEDY],
        _lines(["the", "cat", "sat", "on", "a", "mat"], LENGTHS),
        _written,
    ),
    "classify": Kind(
        labelled.make_texts,
        ["model.dropout=0.2", "data.batch_tokens=100"],
        _lines(["a", "fine", "film", "this", "was", "grim"], LENGTHS),
        _decided,
    ),
    "tag": Kind(
        labelled.make_sentences,
        ["model.embedding.dropout=0.2", "data.batch_rows=10"],
        _lines(["telo", "beding", ".", "gruno"], LENGTHS),
        _tagged,
    ),
    "forecast": Kind(toys.series, [], [0.1, 0.7, 1.9, 3.1, 4.4], _forecast, ("--split", "test")),
    "embeddings": Kind(
        toys.words, ["training.max_epochs=0"], ["apple", "saw", "fig", "axe"], _near, ("--split", "test")
    ),
    "caption": Kind(_in_place(toys.captions), ["data.batch_rows=2"], PICTURES, _captioned),
    "draw": Kind(
        _in_place(toys.drawings), ["data.batch_rows=2", "decoding.search=greedy"],
        _lines(["red", "circle", "at", "the", "top"], LENGTHS), _drawn,
    ),
    "elmo": Kind(
        toys.contexts, ["model.dropout=0.2"], _lines(["go", "the", "bank", "lake", "now"], LENGTHS), _layers
    ),
    "images": Kind(_in_place(toys.pictures), ["data.batch_rows=2"], PICTURES, _seen),
    "masked": Kind(toys.gaps, ["model.dropout=0.2", "data.batch_rows=11"], GAPS, _filled),
    "memory": Kind(toys.sums, ["model.encoder.dropout=0.2"], SUMS, _remembered),
    "speech": Kind(
        toys.songs,
        ["model.decoder.dropout=0.2", "data.batch_frames=200", "decoding.nbest=2", "decoding.max_extra=5"],
        SONGS,
        _heard,
    ),
    "summarise without copying": Kind(
        toys.digests,
        ["model.decoder.dropout=0.2", "decoding.nbest=2", "decoding.max_extra=5"],
        _lines(["alpha", "beta", ".", "It", "is", "gamma"], LENGTHS),
        _translated,
    ),
}  # fmt: skip

TIMED = {"tokens_per_second", "tokens_per_cpu_second", "seconds", "cpu_seconds", "seconds_left"}


def left(run: Path, updates: int) -> dict[str, Any]:
    """All that a training of so many updates leaves, but for the times and what monitors measured in them."""
    last = run / "checkpoints" / f"step-{updates:08}"
    found: dict[str, Any] = {
        path.name: path.read_bytes() for path in [*run.glob("*.safetensors"), *run.glob("tokenizer*.json")]
    }
    found |= {f"last {path.name}": path.read_bytes() for path in last.glob("*.safetensors")}
    found["checkpoints.json"] = (run / "checkpoints.json").read_bytes()
    lines = map(json.loads, (run / "metrics.jsonl").read_text("utf-8").splitlines())
    found["metrics.jsonl"] = [
        {k: v for k, v in line.items() if k not in TIMED} for line in lines if line["event"] != "monitor"
    ]
    return found


def agree_to_the_bit(mine: Path, other: Path, updates: int) -> None:
    """Fail where two runs of the same updates differ."""
    ours, whole = left(mine, updates), left(other, updates)
    assert [name for name in whole if ours.get(name) != whole[name]] == []
    assert len(whole["metrics.jsonl"]) >= updates and any("last optimiser" in name for name in whole)
