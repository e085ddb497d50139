"""A tagger as one graph: words and letters to the scores of all tags."""

import random
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from weft.errors import ConfigError, DataError
from weft.models import Predictor
from weft.nn.embed.words import Spelled, Words
from weft.nn.heads.crf import Crf
from weft.store import files
from weft.tasks.exported import Exported, Graph
from weft.tasks.lexicon import LETTERS

if TYPE_CHECKING:
    from weft.tasks.tag.ready import TagPipeline

SEED = 1


class Scores(nn.Module):
    """Words, letters and their mask to the score of each tag."""

    def __init__(self, model: Predictor) -> None:
        super().__init__()
        self.model = model

    def forward(self, words: Tensor, letters: Tensor, which: Tensor, mask: Tensor) -> Tensor:
        """[B, S], [N, L], [B, S] int64 and [B, S] bool to [B, S, C]."""
        h, _ = self.model.features(Spelled(words, letters, which), mask)
        head = self.model.head
        scores: Tensor = head.emit(h) if isinstance(head, Crf) else head(h)
        return scores


def exported(pipeline: "TagPipeline", model: nn.Module) -> Exported:
    """See ../exported.py.

    Raises:
        ConfigError: the tagger reads words in context from another run.
    """
    assert isinstance(model, Predictor)
    if not isinstance(model.embed, Words):
        raise ConfigError(
            "embedding: contextual: words in context come from another run, which a graph cannot hold; "
            "serve the run with weft serve"
        )
    lexicon, head = pipeline.lexicon, model.head
    examples = _inputs(pipeline, 3, 7, 11), _inputs(pipeline, 2, 10, 6)
    crf: dict[str, Any] | None = None
    if isinstance(head, Crf):
        crf = {name: getattr(head, name).tolist() for name in ("begin", "end", "transitions")}
    settings: dict[str, Any] = {"kind": "tagger", "lexicon": "lexicon.json", "letters": LETTERS, "crf": crf}
    content = {name: getattr(lexicon, name) for name in ("words", "letters", "tags", "lowercase")}
    return Exported(
        [Graph("scores", Scores(model), examples, ["scores"])],
        settings,
        {"lexicon.json": files.to_json(content)},
        lambda count: _examples(pipeline, count),
        program="labels",
    )


def _inputs(pipeline: "TagPipeline", rows: int, steps: int, length: int) -> dict[str, Tensor]:
    """Random sentences of words and letters."""
    draw = torch.Generator().manual_seed(rows)
    words = torch.randint(pipeline.lexicon.num_words, (rows, steps), generator=draw)
    letters = torch.randint(1, pipeline.lexicon.num_letters, (rows * steps, length), generator=draw)
    mask = torch.arange(steps) < torch.arange(steps, steps - rows, -1)[:, None]
    which = torch.arange(rows * steps).view(rows, steps)
    return {"words": words, "letters": letters, "which": which, "mask": mask}


def _examples(pipeline: "TagPipeline", count: int) -> Sequence[str]:
    """Validation sentences, or random known words where the data is missing."""
    with suppress(DataError):
        found = [" ".join(one.forms) for one in islice(pipeline.task.data.sentences("valid"), count)]
        if found:
            return found
    draw = random.Random(SEED)
    words = pipeline.lexicon.words or ["a"]
    return [" ".join(draw.choices(words, k=draw.randint(1, 12))) for _ in range(count)]
