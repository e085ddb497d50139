"""A text under a language model: the probability of each token, and a continuation."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from weft.search.beam import beam
from weft.search.trace import Trace
from weft.tasks.inspection import (
    Examples,
    Inspected,
    Searched,
    Vectors,
    around,
    checked,
    choices_of,
    sentences,
    table_of,
)
from weft.tasks.language.stream import collate_lines
from weft.tasks.seq2seq.inspection import Called
from weft.text.vocabulary import EOS, PAD, SOS, UNK

if TYPE_CHECKING:
    from weft.tasks.language.ready import LanguagePipeline

WRITTEN = 16
"""Maximum number of tokens of the continuation."""

WIDTH = 5


def inspected(
    pipeline: "LanguagePipeline", model: Any, text: str | None, examples: Examples, options: Mapping[str, Any]
) -> Inspected:
    """See Pipeline.inspected.

    Computes the probability of each token of the text, and searches a continuation.
    """
    text = checked(examples.middle() if text is None else text)
    writer = pipeline.predictor(model)
    vocabulary, device = writer.vocabulary, next(model.parameters()).device
    tokens = writer.reading.tokens(text)
    tokens = tokens[: writer.length - 1] if writer.batching == "windows" else tokens
    batch = collate_lines([tokens]).to(device)
    model = writer.model
    with torch.no_grad():
        logp = model.head(model.features(batch))[0]
    names = Called(vocabulary)
    pieces = ["</s>" if piece == "<eos>" else piece for piece in vocabulary.pieces([EOS, *tokens])]
    trace = Trace()
    with torch.inference_mode():
        state, first = writer.reader.start([[EOS, *tokens]])
        found = beam(
            writer.reader.step,
            state,
            first,
            eos=EOS,
            max_length=WRITTEN,
            width=WIDTH,
            nbest=WIDTH,
            banned=(PAD, UNK, SOS),
            trace=trace,
        )
    rows = zip(found.tokens[0].tolist(), found.lengths[0].tolist(), strict=True)
    paths = [row[:length] for row, length in rows if length]
    different = {one.token for one in trace.candidates}
    table = table_of(model.embed, len(vocabulary))
    vectors = None
    if table is not None and tokens:

        def context(line: str) -> tuple[list[str], np.ndarray] | None:
            read = writer.reading.tokens(line)[: writer.length - 1]
            with torch.no_grad():
                states = model.features(collate_lines([read]).to(device))[0, 1:]
            return (vocabulary.pieces(read), states.float().cpu().numpy()) if read else None

        with torch.no_grad():
            own = model.features(batch)[0, 1:].float().cpu().numpy()
        beside = around(sentences(lambda: pipeline.task.data.open("valid")), context)
        vectors = Vectors(vocabulary.pieces(range(len(vocabulary))), table, tokens, pieces[1:], own, beside)
    return Inspected(
        text=text,
        answer="… " + vocabulary.decode([token for token in paths[0] if token != EOS]),
        target=pieces,
        batch=batch,
        searched=Searched(trace, dict(zip(different, vocabulary.pieces(different), strict=True)), paths),
        choices=choices_of(logp, [*tokens, EOS], names),
        chosen_what="each token of the text, given those before it",
        vectors=vectors,
    )
