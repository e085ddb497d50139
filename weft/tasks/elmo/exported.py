"""ELMo as one graph: the letters of words to the layers of their vectors in context."""

import json
import random
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from weft.errors import DataError
from weft.nn.embed.contextual import BothWays
from weft.nn.embed.words import Spelled
from weft.tasks.elmo.predictor import WORDS, Embedded
from weft.tasks.exported import Exported, Graph
from weft.tasks.lexicon import LETTERS
from weft.tasks.predictor import Answer
from weft.tasks.running_text import sentences as text
from weft.text.portable import portable_cutter

if TYPE_CHECKING:
    from weft.tasks.elmo.ready import ElmoPipeline

SEED = 1


class Layers(nn.Module):
    """Letters, the word at each position and the mask to all layers."""

    def __init__(self, model: BothWays) -> None:
        super().__init__()
        self.model = model

    def forward(self, letters: Tensor, which: Tensor, mask: Tensor) -> Tensor:
        """[N, C], [B, S] int64 and [B, S] bool to [B, L + 1, S, 2 H]."""
        return torch.stack(self.model(Spelled(which, letters, which), mask), 1)


def exported(pipeline: "ElmoPipeline", model: nn.Module) -> Exported:
    """What `weft export` writes for this task."""
    assert isinstance(model, BothWays)
    lexicon, how = pipeline.lexicon, pipeline.task.data.vocabulary
    settings: dict[str, Any] = {
        "kind": "contexts",
        "vocabulary": "tokenizer.json",
        "letters": lexicon.letters,
        "longest": LETTERS,
        "most": WORDS,
    }
    both = _inputs(lexicon.num_letters, 3, 7, 11), _inputs(lexicon.num_letters, 2, 10, 6)
    return Exported(
        [Graph("layers", Layers(model), both, ["layers"])],
        settings,
        {"tokenizer.json": portable_cutter(how.kind, form=how.form, lowercase=how.lowercase)},
        lambda count: _examples(pipeline, count),
        program="contexts",
        shown=_shown,
        same=_close,
    )


def _inputs(num_letters: int, rows: int, steps: int, length: int) -> dict[str, Tensor]:
    """Random words of sentences, each sentence shorter than the one before."""
    draw = torch.Generator().manual_seed(rows)
    letters = torch.randint(1, num_letters, (rows * steps, length), generator=draw)
    mask = torch.arange(steps) < torch.arange(steps, steps - rows, -1)[:, None]
    return {"letters": letters, "which": torch.arange(rows * steps).view(rows, steps), "mask": mask}


def _examples(pipeline: "ElmoPipeline", count: int) -> Sequence[str]:
    """Validation sentences, and a word of each in it and in itself alone; random words without the data."""
    sentences: list[list[str]] = []
    with suppress(DataError):
        data = pipeline.task.data
        sentences = list(islice(text.sentences(data, data.open("valid")), count // 2))
    if not sentences:
        draw, known = random.Random(SEED), pipeline.lexicon.words or ["a"]
        sentences = [draw.choices(known, k=draw.randint(1, 12)) for _ in range(count // 2)]
    plain = [" ".join(words) for words in sentences]
    return [
        *plain,
        *(f"{words[-1]}\t{line}\t{words[-1]}" for words, line in zip(sentences, plain, strict=True)),
    ]


def _shown(answer: Answer) -> str:
    """The cosines; of a sentence, words and vectors."""
    return json.dumps(answer.json(), ensure_ascii=False) if isinstance(answer, Embedded) else answer.text()


def _close(ours: str, theirs: str) -> bool:
    """Equal words, and numbers equal to 1e-3."""
    if ours.startswith("{"):
        a, b = (json.loads(text) for text in (ours, theirs))
        return bool(a["words"] == b["words"] and np.allclose(a["vectors"], b["vectors"], rtol=0, atol=1e-3))
    (word, *first), (other, *second) = (text.split("\t") for text in (ours, theirs))
    return word == other and bool(
        np.allclose(np.array(first, np.float64), np.array(second, np.float64), atol=1e-3)
    )
