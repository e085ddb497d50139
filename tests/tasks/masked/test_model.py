"""What is hidden from a masked language model, and that the loss is of that alone."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from weft.nn.encoders.transformer import TransformerEncoder
from weft.tasks.masked.model import MaskedModel, hide
from weft.tasks.masked.task import MaskedTraining
from weft.tasks.running_text.base import ProseData
from weft.text.vocabulary import Vocabulary

LINES = [list(range(4, 34))] * 400 + [[7]]


def test_fifteen_in_a_hundred_are_chosen_and_eighty_ten_ten_of_them() -> None:
    batch = hide(LINES, 100, share=0.15, seed=[1])
    words = 400 * 30
    chosen = batch.chosen[:400]
    assert int(chosen.sum()) / words == pytest.approx(0.15, abs=0.02)
    asked, read = batch.target[:400][chosen], batch.source[:400][chosen]
    shares = [(read == 100).double().mean().item(), (read == asked).double().mean().item()]
    assert shares == pytest.approx([0.8, 0.1], abs=0.03)
    assert bool((batch.source[:400][~chosen] == batch.target[:400][~chosen]).all())
    assert not bool(batch.chosen[:, 0].any()) and int(read.min()) >= 4
    assert batch.chosen[400].tolist() == [False, True] + [False] * 30 and batch.target_tokens == int(
        batch.chosen.sum()
    )


def test_the_same_seed_hides_the_same() -> None:
    one, two, three = (hide(LINES[:7], 50, share=0.3, seed=seed) for seed in ([1, 2], [1, 2], [1, 3]))
    assert torch.equal(one.source, two.source) and not torch.equal(one.source, three.source)


def test_the_loss_is_that_of_the_chosen_tokens() -> None:
    torch.manual_seed(2)
    model = MaskedModel(size=8, dropout=0.0).build(13).double().eval()
    batch = hide([[5, 6, 7, 9], [8]], 13, share=0.5, seed=[3])
    logp = model(batch.source, batch.source_mask).detach().numpy()
    wanted = -sum(
        logp[row, place, batch.target[row, place]] for row, place in np.argwhere(batch.chosen.numpy())
    )
    loss = model.loss(batch)
    assert loss.total.item() == pytest.approx(wanted, abs=1e-10)
    assert int(loss.count) == batch.target_tokens


def test_a_sample_that_fills_all_positions_is_validated() -> None:
    text = "a cat sat on it unbelievable cats sit"
    pieces = Vocabulary.train([text] * 5, kind="bpe", size=30)
    line = pieces.encode("unbelievable")
    before, after = (pieces.decode(half) for half in (line[:4], line[5:]))
    assert len(line) == 8 and len([*pieces.encode(before), *pieces.encode(after)]) == 8  # without the gap
    encoder = partial(
        TransformerEncoder, num_layers=1, num_heads=1, inner=5, positions="learned", max_length=10
    )
    model = MaskedModel(size=6, encoder=encoder).build(len(pieces)).eval()
    data = ProseData(train=Path("x"), valid=Path("y"))
    found = MaskedTraining(data, 0.15, pieces, [line], [line]).validate(model)
    (sample,) = found.samples
    assert sample.source == f"{before} [MASK] {after}" and set(found.scores) == {"loss", "accuracy"}
