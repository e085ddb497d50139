"""Encoder-decoders of the `transformers` library give the same logits once imported."""

from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("transformers", reason="pip install --group import-tests")

from tests.importing.random_models import PAIRS, STEPS, pair_model, tokens
from tests.laws.members import close
from weft.importing.families import import_model
from weft.models import Generator


@pytest.fixture(scope="module", params=PAIRS)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Generator]:
    """The library's model and the imported one."""
    theirs, path = pair_model(request.param), tmp_path_factory.mktemp("checkpoint") / request.param
    theirs.save_pretrained(path)
    ours = import_model(Path(path))
    assert isinstance(ours, Generator) and ours.encoder is not None
    return theirs, ours


@torch.no_grad()
def test_they_say_the_same_at_once_and_step_by_step(pair: tuple[Any, Generator]) -> None:
    theirs, ours = pair
    (source, mask), (target, target_mask) = tokens(1), tokens(2)
    want = theirs(
        input_ids=source.masked_fill(~mask, theirs.config.pad_token_id),
        attention_mask=mask.long(),
        decoder_input_ids=target,
        decoder_attention_mask=target_mask.long(),
    ).logits.log_softmax(-1)
    h, _ = ours.decoder(ours.embed(target), ours.start(source, mask))
    close(ours.head(h)[target_mask], want[target_mask], 1e-5)
    state = ours.start(source, mask)
    for t in range(STEPS):
        logp, state = ours.step(target[:, t], state)
        close(logp[target_mask[:, t]], want[:, t][target_mask[:, t]], 1e-5)
