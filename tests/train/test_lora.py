"""Low-rank adaptation: the model begins as it was, only the narrow matrices and the head move."""

import pytest
import torch

from weft.errors import ConfigError
from weft.models import Labeller
from weft.nn.embed.tokens import Tokens
from weft.nn.encoders.transformer import TransformerEncoder
from weft.nn.heads.categorical import Categorical
from weft.nn.pools import Mean
from weft.store import weights
from weft.train.tuned import Lora, adapt

SOURCE = torch.tensor([[5, 6, 7, 2], [8, 0, 0, 0]])
MASK = SOURCE > 0


def labeller() -> Labeller:
    torch.manual_seed(5)
    encoder = TransformerEncoder(8, size=8, num_layers=2, num_heads=2, dropout=0.0)
    return Labeller(Tokens(13, 8), encoder, Categorical(8, 3), pool=Mean(8))


def moved(model: Labeller) -> Labeller:
    """The narrow matrices filled with random numbers."""
    with torch.no_grad():
        for name, one in model.named_parameters():
            if ".parametrizations.weight.0." in name:
                one.normal_()
    return model


def test_at_the_start_every_number_is_as_before() -> None:
    model = labeller()
    before = model(SOURCE, MASK)
    adapt(model, Lora(rank=3))
    assert torch.equal(model(SOURCE, MASK), before)


def test_only_the_narrow_matrices_and_the_head_have_gradients_and_they_are_right() -> None:
    model = labeller().double()
    adapt(model, Lora(rank=3, alpha=6, targets=("query", "encoder.blocks.1.network")))
    moved(model)
    trained = {name: one for name, one in model.named_parameters() if one.requires_grad}
    matrices = [f"encoder.blocks.{n}.attention.query" for n in (0, 1)]
    matrices += [f"encoder.blocks.1.network.{name}" for name in ("first", "second")]
    wanted = {f"{name}.parametrizations.weight.0.{part}" for name in matrices for part in "ab"}
    assert set(trained) == {*wanted, "head.weight", "head.bias"}

    def loss() -> torch.Tensor:
        h, mask = model.features(SOURCE, MASK)
        return model.head.loss(h, torch.tensor([[0], [2]]), mask).total

    found = torch.autograd.grad(loss(), list(trained.values()))
    for (name, one), gradient in zip(trained.items(), found, strict=True):
        with torch.no_grad():
            place = (0,) * one.dim()
            one[place] += 1e-6
            above = loss()
            one[place] -= 2e-6
            below = loss()
            one[place] += 1e-6
        assert gradient[place].item() == pytest.approx(((above - below) / 2e-6).item(), abs=1e-7), name


def test_a_file_is_read_merged_and_equals_w_plus_the_product() -> None:
    model = labeller()
    base = {name: one.clone() for name, one in model.state_dict().items()}
    adapt(model, Lora(rank=3, alpha=6))
    moved(model).eval()
    merged = weights.merged(weights.unpack(weights.pack(model.state_dict())))
    assert merged.keys() == base.keys()
    plain = labeller().eval()
    weights.restore(plain, merged, "merged")
    torch.testing.assert_close(plain(SOURCE, MASK), model(SOURCE, MASK), atol=1e-6, rtol=0)
    with torch.inference_mode():
        assert torch.equal(plain(SOURCE, MASK), model(SOURCE, MASK))
    name = "encoder.blocks.1.attention.query"
    own = model.state_dict()
    product = own[f"{name}.parametrizations.weight.0.b"] @ own[f"{name}.parametrizations.weight.0.a"]
    torch.testing.assert_close(merged[f"{name}.weight"], base[f"{name}.weight"] + 2.0 * product)


def test_evaluation_follows_what_was_trained() -> None:
    model = labeller()
    adapt(model, Lora(rank=3))
    for _ in range(2):
        model.eval()
        before = model(SOURCE, MASK)
        moved(model.train())
        assert not torch.equal(model.eval()(SOURCE, MASK), before)


@pytest.mark.parametrize(
    ("targets", "words"),
    [(["querry"], "did you mean 'query'"), (["attention_norm"], "has none"), (["head"], "has none")],
)
def test_a_target_without_a_matrix_is_refused(targets: list[str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        adapt(labeller(), Lora(targets=tuple(targets)))
