"""Classifiers and taggers on frozen words in context: of ELMo, and of a masked language model."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

import weft as package
from tests import toys
from tests.commands import labelled
from tests.commands.shell import refused, weft
from weft.nn.embed.contextual import InContext, Twice
from weft.nn.embed.pieces import Pieces, PiecesInContext
from weft.nn.embed.tokens import Tokens
from weft.nn.encoders.transformer import TransformerEncoder
from weft.store import weights


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run of each task, trained for a moment."""
    folder = tmp_path_factory.mktemp("contexts")
    for name, make in (("elmo", toys.contexts), ("masked", toys.gaps)):
        changes = ["training.max_updates=4", "training.validate_every=4"]
        if name == "masked":  # words in several pieces
            changes += ["data.vocabulary.kind=bpe", "data.vocabulary.size=30"]
        weft("train", make(folder / f"{name}-toy"), "--run", folder / name, *changes, code=0)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "name"),
    [
        ("classify", "elmo"),
        ("tag", "masked"),
        pytest.param("classify", "masked", marks=pytest.mark.slow),
        pytest.param("tag", "elmo", marks=pytest.mark.slow),
    ],
)
def test_a_task_stands_on_it_and_keeps_it_when_it_is_gone(
    runs: Path, name: str, task: str, tmp_path: Path
) -> None:
    shutil.copytree(runs / name, tmp_path / "other")
    make = labelled.make_texts if task == "classify" else labelled.make_sentences
    change = [f"model.embedding.contextual={tmp_path / 'other'}", "training.max_updates=25"]
    change += ["data.vocabulary.kind=word"] if task == "classify" else []
    weft("train", make(tmp_path / "toy"), "--run", tmp_path / "run", *change, code=0)
    stands, other = package.load(tmp_path / "run"), package.load(tmp_path / "other")
    kept = stands.model.embed.model.state_dict()
    theirs = other.model.state_dict()
    found = [key for key in kept if any(each.endswith(key) for each in theirs)]
    assert len(found) == len(kept) > 3
    for key, value in kept.items():
        same = next(each for each in theirs if each.endswith(key))
        assert np.array_equal(value.cpu().numpy(), theirs[same].cpu().numpy()), key
    belong_to_the_weights(tmp_path / "run")
    shutil.rmtree(tmp_path / "other")
    lines = b"this film was great\nwug\n" if task == "classify" else b"telo beding .\nwug\n"
    if task == "classify":
        texts = lines.decode().split("\n")[:2]
        together = list(stands.classify(texts))
        alone = [next(stands.classify([text])) for text in texts]
        for one, two in zip(together, alone, strict=True):
            np.testing.assert_allclose(one.probs, two.probs, atol=1e-5)
        answer = weft("predict", tmp_path / "run", "--pictures", tmp_path / "p", stdin=lines + b"\n")
        assert answer.code == 3 and len(answer.lines) == 3 and answer.lines[2] == ""  # an empty text
        assert weft("evaluate", tmp_path / "run").code == 0
    answer = weft("predict", tmp_path / "run", "--scores", stdin=lines)
    assert answer.code == 0 and "wug" in (answer.out if task == "tag" else "wug")
    more = ("train", tmp_path / "toy" / "toy.yaml", *change, "training.max_updates=26")
    answer = weft(*more, "--run", tmp_path / "run")
    assert answer.code == 0 and "resumes after update 25" in answer.err
    after = package.load(tmp_path / "run").model.embed.model.state_dict()
    assert all(torch.equal(after[key], value) for key, value in kept.items())
    assert "weft train RECIPE --run" in refused(weft(*more, "--run", tmp_path / "new"))


def belong_to_the_weights(run: Path) -> None:
    """The vocabulary of the other run, changed, is noticed; this run is then as it was."""
    for path in (*(run / "contextual").glob("tokenizer*"), run / "contextual" / "recipe.yaml"):
        before = path.read_bytes()
        path.write_bytes(before + b"\n")
        assert f"was not trained with {path}" in refused(weft("predict", run, stdin=b"a film\n"))
        path.write_bytes(before)


def test_a_resumed_training_keeps_the_context_that_it_began_with(runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs / "elmo", tmp_path / "other")
    recipe = labelled.make_sentences(tmp_path / "toy")
    train = ("train", recipe, f"model.embedding.contextual={tmp_path / 'other'}", "--run", tmp_path / "run")
    assert weft(*train, "training.max_updates=1", "training.validate_every=1").code == 0
    vocabulary = next((tmp_path / "other").glob("tokenizer*"))
    before = vocabulary.read_bytes()
    vocabulary.write_bytes(vocabulary.read_bytes() + b"\n")  # trained anew
    answer = weft(*train, "training.max_updates=2", "training.validate_every=1")
    assert answer.code == 0 and "resumes after update 1" in answer.err, answer.err
    assert (tmp_path / "run" / "contextual" / vocabulary.name).read_bytes() == before


def test_what_has_no_words_in_context_is_refused(runs: Path, tmp_path: Path) -> None:
    recipe = labelled.make_texts(tmp_path / "toy")
    train = (
        "train",
        recipe,
        "--run",
        tmp_path / "run",
        "training.max_updates=1",
        "training.validate_every=1",
    )
    assert weft(*train, "data.vocabulary.kind=word").code == 0
    again = ("train", recipe, "--run", tmp_path / "other")
    other = f"model.embedding.contextual={tmp_path / 'run'}"
    assert "words in context" in refused(weft(*again, other, "data.vocabulary.kind=word"))
    other = f"model.embedding.contextual={runs / 'elmo'}"
    assert "set it to word, or to space" in refused(weft(*again, other, "data.vocabulary.kind=character"))
    assert "leave one out" in refused(weft(*again, other, "model.bag={}"))
    assert not (tmp_path / "other").exists()


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
