"""Sharded parameters (FSDP2) train what one process trains, and their checkpoints load anywhere."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

from tests.train.test_processes import furthest, trained
from weft.errors import CheckpointError
from weft.train import sharding
from weft.train.checkpoints import Checkpoints
from weft.train.sharding import Shard, joined


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> dict[str, torch.Tensor]:
    """What one process trains."""
    return trained(tmp_path_factory.mktemp("one") / "run", 1)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two processes, each with its rows of the parameters."""
    path = tmp_path_factory.mktemp("two") / "run"
    trained(path, 2, sharding="full")
    return path


@pytest.mark.slow
def test_two_processes_with_half_of_each_parameter_train_what_one_trains(
    run: Path, one: dict[str, torch.Tensor]
) -> None:
    """Three batches an update, so that the second process has one of its own and one for company."""
    assert furthest(one, load_file(run / "model.safetensors")) < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("model", ["transformer", "lookback"])
def test_so_do_transformers_and_recurrent_networks(model: str, tmp_path: Path) -> None:
    """Also one batch an update, dealt out by rows, with checkpointed activations."""
    asked = {"model": model, "max_updates": 12, "accumulate": 1}
    one = trained(tmp_path / "one", 1, **asked)
    two = trained(tmp_path / "two", 2, sharding="full", checkpoint_activations=True, **asked)
    assert furthest(one, two) < 1e-6


@pytest.mark.slow
def test_and_in_float32(tmp_path: Path) -> None:
    """Of the recurrent toy: key biases of a Transformer get only rounding, which Adam makes large."""
    one = trained(tmp_path / "one", 1, double=False, max_updates=20)
    assert furthest(one, trained(tmp_path / "two", 2, double=False, max_updates=20, sharding="full")) < 1e-5


@pytest.mark.slow
def test_a_run_goes_from_one_process_to_two_that_shard_and_back(
    tmp_path: Path, one: dict[str, torch.Tensor]
) -> None:
    run = tmp_path / "parts"
    trained(run, 1, max_updates=20)
    trained(run, 2, max_updates=35, sharding="full")
    path = Checkpoints(run, print).path(35)
    names = {f"{stem}-0000{n}-of-00002.safetensors" for stem in ("model", "optimiser") for n in (1, 2)}
    assert {file.name for file in path.iterdir()} == {*names, "state.json", "manifest.json"}
    rows = []
    for n in (1, 2):
        with safe_open(path / f"model-0000{n}-of-00002.safetensors", "pt") as file:
            rows.append(file.get_slice("embed.weight").get_shape()[0])
    assert rows == [6, 5]  # 11 words
    assert furthest(one, trained(run, 1)) < 1e-6


@pytest.mark.slow
def test_a_part_that_is_missing_or_changed_is_told(run: Path, tmp_path: Path) -> None:
    checkpoints = Checkpoints(Path(shutil.copytree(run, tmp_path / "copy")), print)
    assert checkpoints.load(50).weights.keys() >= {"embed.weight", "cell.weight_ih_l0"}
    file = checkpoints.path(50) / "optimiser-00002-of-00002.safetensors"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    with pytest.raises(
        CheckpointError, match=r"optimiser-00002-of-00002\.safetensors does not have the content"
    ):
        checkpoints.load(50)
    file.unlink()
    with pytest.raises(CheckpointError, match=r"optimiser-00002-of-00002\.safetensors: No such file"):
        checkpoints.load(50)


@pytest.mark.slow
def test_an_index_takes_the_best_model_from_its_parts(run: Path) -> None:
    published = load_file(run / "model.safetensors")
    best = Checkpoints(run, print).load(json.loads((run / "checkpoints.json").read_text())["best"])
    assert all(torch.equal(published[name], best.weights[name]) for name in published)


def test_a_checkpoint_is_there_only_when_all_parts_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "step-00000001"
    monkeypatch.setattr(sharding, "PATIENCE_SECONDS", 0.05)
    with pytest.raises(CheckpointError, match="process 1 did not write its part"):
        sharding.write_part(path, {"a": b"1"}, Shard(0, 2))
    assert not path.exists()
    sharding.write_part(path, {"b": b"2"}, Shard(1, 2))
    assert not path.exists()
    sharding.write_part(path, {"a": b"1"}, Shard(0, 2))
    seals = json.loads((path / "manifest.json").read_text())
    assert seals == sharding.sealed({"a": b"1", "b": b"2"})
    assert sorted(file.name for file in path.iterdir()) == ["a", "b", "manifest.json"]


def test_rows_are_joined_in_the_order_of_the_processes() -> None:
    found = [{"w": torch.tensor([[1], [2]]), "n": torch.tensor(5)}, {"w": torch.tensor([[3]])}]
    whole = joined(found, ["w"])
    assert whole["w"].tolist() == [[1], [2], [3]] and whole["n"].item() == 5
