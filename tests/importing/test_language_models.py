"""Random decoders and masked language models of `transformers`: imported, they give the same outputs.

Skipped with a message if the library is missing: pip install --group import-tests -c constraints.txt
"""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

pytest.importorskip("transformers", reason="pip install --group import-tests")

from tests.importing.random_models import READERS, STEPS, WRITERS, saved_in, tokens
from tests.laws.members import close
from weft.importing.families import import_model
from weft.models import Generator, Labeller
from weft.search.beam import beam_search
from weft.search.greedy import greedy_search
from weft.search.hypotheses import to_lists


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[nn.Module, Path]]:
    return saved_in(tmp_path_factory.mktemp("checkpoints"))


@pytest.mark.parametrize("name", WRITERS)
@torch.no_grad()
def test_a_decoder_gives_the_same_probabilities(name: str, saved: Any) -> None:
    theirs, path = saved[name]
    ours = import_model(path)
    assert isinstance(ours, Generator)
    text, mask = tokens(1)
    want = theirs(text, attention_mask=mask.long()).logits.log_softmax(-1)
    h, _ = ours.decoder(ours.embed(text), ours.start(None, mask))
    close(ours.head(h)[mask], want[mask], 1e-5)
    state = ours.start(None, mask)
    for t in range(STEPS):  # and with the cache, step by step
        logp, state = ours.step(text[:, t], state)
        close(logp[mask[:, t]], want[:, t][mask[:, t]], 1e-5)


@pytest.mark.parametrize("name", WRITERS)
@torch.no_grad()
def test_a_decoder_writes_the_same(name: str, saved: Any) -> None:
    theirs, path = saved[name]
    ours = import_model(path)
    assert isinstance(ours, Generator)
    for text in tokens(2)[0][:, None, :5]:
        _, state = ours.decoder(ours.embed(text[:, :-1]), ours.decoder.start(None, 1))
        for width, never in ((1, [0, 1]), (3, [0, 1, 2]), (3, [0, 1])):
            stops = {} if width == 1 else {"early_stopping": "never"}
            want = theirs.generate(
                text,
                num_beams=width,
                max_new_tokens=13,
                do_sample=False,
                suppress_tokens=never,
                pad_token_id=1,
                **stops,
            )[0, 5:].tolist()
            given = {"eos": 2, "max_length": 13, "banned": never}
            if width == 1:
                found = greedy_search(ours.step, state, text[:, -1], **given)
            else:
                found = beam_search(ours.step, state, text[:, -1], width=width, patience=math.inf, **given)
            got = to_lists(found, 2)[0][0]
            if 2 not in want and len(got) < 13:  # we prefer any text that ended to one that was cut
                assert never == [0, 1] and width == 3
            else:
                assert got == [number for number in want if number != 2]


@pytest.mark.parametrize("name", READERS)
@torch.no_grad()
def test_a_masked_language_model_gives_the_same_probabilities(name: str, saved: Any) -> None:
    theirs, path = saved[name]
    ours = import_model(path)
    assert isinstance(ours, Labeller)
    text, mask = tokens(1)
    text = text.masked_fill(~mask, 1)  # RoBERTa counts positions without padding
    want = theirs(text, attention_mask=mask.long()).logits.log_softmax(-1)
    close(ours(text, mask)[mask], want[mask], 1e-5)
