"""A tagger and a classifier that train the model of words in context further."""

import shutil
from pathlib import Path

import pytest
import torch

from tests import toys
from tests.commands import labelled
from tests.commands.shell import refused, weft
from weft.nn.embed.contextual import InContext, Pieces, PiecesInContext, Twice
from weft.nn.embed.tokens import Tokens
from weft.nn.encoders.transformer import TransformerEncoder
from weft.store import weights

PART = "embed.model."


@pytest.fixture(scope="module")
def masked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("masked")
    changes = ["training.max_updates=4", "data.vocabulary.kind=bpe", "data.vocabulary.size=30"]
    assert weft("train", toys.gaps(folder / "toy"), "--run", folder / "run", *changes).code == 0
    return folder / "run"


@pytest.mark.parametrize("task", ["classify", "tag"])
def test_the_model_is_trained_further_and_kept(masked: Path, task: str, tmp_path: Path) -> None:
    shutil.copytree(masked, tmp_path / "other")
    make = labelled.make_texts if task == "classify" else labelled.make_sentences
    change = [f"model.embedding.contextual={tmp_path / 'other'}", "model.embedding.tuned=true"]
    change += ["training.max_updates=10", "training.validate_every=10", "training.validate_start=true"]
    change += ["training.part_rates={embed.model: 0.1}"]
    change += ["data.vocabulary.kind=word"] if task == "classify" else []
    weft("train", make(tmp_path / "toy"), "--run", tmp_path / "run", *change, code=0)
    shutil.rmtree(tmp_path / "other")
    theirs = weights.load(masked / "model.safetensors")
    steps = sorted((tmp_path / "run" / "checkpoints").iterdir())
    before, after = (weights.load(step / "model.safetensors") for step in (steps[0], steps[-1]))
    taken = [name for name in before if name.startswith(PART)]
    assert len(taken) > 5
    for name in taken:
        same = theirs[f"predictor.{name.removeprefix(PART)}"]
        assert torch.equal(before[name], same), name
    moved = [name for name in taken if not torch.equal(after[name], before[name])]
    assert set(taken) - set(moved) <= {name for name in taken if "positions" in name}
    line = b"this film was great\n" if task == "classify" else b"telo beding .\n"
    assert weft("predict", tmp_path / "run", stdin=line).code == 0


def test_gradients_reach_it_only_if_it_is_tuned() -> None:
    def given() -> InContext:
        torch.manual_seed(5)
        context = PiecesInContext(
            Tokens(7, 4), 4, TransformerEncoder(4, size=4, num_layers=1, num_heads=2, dropout=0.2)
        )
        return InContext(Tokens(5, 3), context, dropout=0.0, tuned=tuned)

    tokens = torch.tensor([[2, 4, 5, 3]])
    pieces = Pieces(tokens, tokens > 0, torch.tensor([[0, 0, 1, 0]]), torch.tensor([[0.0, 1.0, 1.0, 0.0]]))
    for tuned in (False, True):
        embed = given().train()
        assert embed.model.training == tuned and embed.words.training
        own = torch.tensor([[2, 4]])
        embed(Twice(own, pieces, own > 0)).square().sum().backward()
        reached = {name for name, one in embed.model.named_parameters() if one.grad is not None}
        assert reached == ({name for name, _ in embed.model.named_parameters()} if tuned else set())
        assert embed.mix.scores.grad is not None and embed.eval().model.training is False


@pytest.mark.parametrize("make", [labelled.make_texts, labelled.make_sentences])
def test_tuned_without_a_run_is_refused(make: object, tmp_path: Path) -> None:
    recipe = make(tmp_path / "toy")  # type: ignore[operator]
    said = refused(weft("train", recipe, "--run", tmp_path / "run", "model.embedding.tuned=true"))
    assert "expected contextual" in said
