"""A sentence and a tag for each of its words."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch

from weft.nn.embed.contextual import Twice
from weft.nn.embed.words import Spelled
from weft.tasks.inspection import (
    Examples,
    Inspected,
    Vectors,
    around,
    checked,
    choices_of,
    sentences,
    table_of,
)
from weft.tasks.labels.batch import LabelBatch

if TYPE_CHECKING:
    from weft.tasks.tag.ready import TagPipeline


def inspected(
    pipeline: "TagPipeline", model: Any, text: str | None, examples: Examples, options: Mapping[str, Any]
) -> Inspected:
    """See Pipeline.inspected.

    Words stand between spaces.
    """
    text = checked(examples.middle() if text is None else text)
    words = text.split()
    tagger = pipeline.predictor(model)
    lexicon, model = tagger.lexicon, tagger.model
    device = next(model.parameters()).device

    def features(forms: list[str]) -> tuple[Spelled | Twice, torch.Tensor, torch.Tensor]:
        given, mask = lexicon.read([forms])
        given, mask = given.to(device), mask.to(device)
        with torch.no_grad():
            return (given, *model.features(given, mask))

    spelled, h, mask = features(words)
    with torch.no_grad():
        best = model.head.best(h, mask)
        logp = model.head(h)[0]
    numbers = best[0].tolist()
    tags = [lexicon.tags[number] for number in numbers]
    table = table_of(model.embed, lexicon.num_words)
    vectors = None
    if table is not None:
        own = spelled.own if isinstance(spelled, Twice) else spelled
        names = ["<pad>", "<unk>", *lexicon.words]
        beside = around(
            sentences(lambda: (" ".join(one.forms) for one in pipeline.task.data.sentences("valid"))),
            lambda line: (line.split(), features(line.split())[1][0].float().cpu().numpy()),
        )
        context = h[0].float().cpu().numpy()
        vectors = Vectors(names, table, own.words[0].tolist(), words, context, beside)
    return Inspected(
        text=text,
        answer=" ".join(tags),
        source=words,
        batch=LabelBatch(spelled, mask, best, len(words)),
        choices=choices_of(logp, numbers, lexicon.tags, words),
        chosen_what="the tag of each word",
        vectors=vectors,
    )
