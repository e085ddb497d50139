"""Randomly initialised models of the `transformers` library, saved by it and imported, give the same outputs.

Skipped with a message if the library is missing: pip install --group import-tests -c constraints.txt
"""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from tests.laws.members import close
from weft.errors import CheckpointError, ConfigError, ShapeError
from weft.importing.families import import_model
from weft.models import Labeller
from weft.nn.distances import Relative

pytest.importorskip("transformers", reason="pip install --group import-tests")

from tests.importing.random_models import WRITERS, copied, model_of, pair_model, transformers


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[nn.Module, Path]]:
    models = {"gpt2": model_of(*WRITERS["gpt2"], "CausalLM"), "marian": pair_model("marian")}
    there = tmp_path_factory.mktemp("checkpoint")
    for name, model in models.items():
        model.save_pretrained(there / name)
    return {name: (model, there / name) for name, model in models.items()}


@torch.no_grad()
def test_vit_says_the_same(tmp_path: Path) -> None:
    settings = {
        "hidden_size": 12,
        "num_hidden_layers": 2,
        "num_attention_heads": 3,
        "intermediate_size": 19,
        "image_size": 12,
        "patch_size": 4,
        "num_channels": 3,
        "num_labels": 5,
    }
    theirs = model_of("ViT", settings, "ImageClassification")
    theirs.save_pretrained(tmp_path)
    ours = import_model(tmp_path)
    assert isinstance(ours, Labeller)
    pictures = torch.randn(3, 12, 12, 3, generator=torch.Generator().manual_seed(1))
    want = theirs(pictures.permute(0, 3, 1, 2)).logits.log_softmax(-1)
    got = ours(pictures, torch.ones(3, 10, dtype=torch.bool))
    close(got[:, 0], want, 1e-5)


@pytest.mark.parametrize("both_ways", [True, False])
def test_relative_buckets_are_those_of_t5(both_ways: bool) -> None:
    bucket = transformers.models.t5.modeling_t5.T5Attention._relative_position_bucket
    apart = torch.arange(-300, 301)
    for buckets, farthest in ((32, 128), (16, 64), (8, 20)):
        want = bucket(apart, bidirectional=both_ways, num_buckets=buckets, max_distance=farthest)
        ours = Relative(3, both_ways=both_ways, buckets=buckets, farthest=farthest)
        assert torch.equal(ours.bucket(apart), want)


@pytest.mark.parametrize("name", ["gpt2", "marian"])
def test_weights_of_torch_save_give_the_same_model(name: str, saved: Any, tmp_path: Path) -> None:
    path = copied(saved[name][1], tmp_path)
    (path / "model.safetensors").unlink()
    torch.save(saved[name][0].state_dict(), path / "pytorch_model.bin")
    found, expected = import_model(path).state_dict(), import_model(saved[name][1]).state_dict()
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[each], expected[each]) for each in expected)


def test_missing_and_extra_tensors_are_counted(saved: Any, tmp_path: Path) -> None:
    path = copied(saved["gpt2"][1], tmp_path)
    tensors = load_file(path / "model.safetensors")
    for name in ("transformer.ln_f.bias", "transformer.h.1.ln_1.bias"):
        del tensors[name]
    tensors["adapter.weight"] = torch.zeros(2)
    save_file(tensors, path / "model.safetensors")
    sentence = (
        r"model.safetensors: 2 tensors are missing \(transformer.h.1.ln_1.bias, transformer.ln_f.bias\) and "
        r"1 tensor is not part of the model \(adapter.weight\); is config.json the one that belongs to it"
    )
    with pytest.raises(CheckpointError, match=sentence):
        import_model(path)


@pytest.mark.parametrize(
    ("settings", "error", "sentence"),
    [
        (
            {"vocab_size": 41},
            CheckpointError,
            r"wte.weight gives \[37, 12\] for .*, config.json asks for",
        ),
        (
            {"n_layer": 1},
            CheckpointError,
            r"12 tensors are not part of the model .* and 9 more\)",
        ),
        ({"n_head": 5}, ShapeError, "5 heads do not divide the width 12; take a divisor of 12"),
        ({"model_type": "mamba"}, ConfigError, "model_type: .*mamba"),
        ({"activation_function": "selu"}, ConfigError, "activation_function: .*selu"),
        ({"scale_attn_by_inverse_layer_idx": True}, ConfigError, "layer_idx: .*True"),
        ({"n_embd": None}, CheckpointError, "config.json: has no 'n_embd'; does it belong"),
    ],
)
def test_a_checkpoint_that_does_not_fit_is_refused(
    settings: dict[str, Any], error: type[ValueError], sentence: str, saved: Any, tmp_path: Path
) -> None:
    path = copied(saved["gpt2"][1], tmp_path, **settings)
    with pytest.raises(error, match=sentence):
        import_model(path)


def test_damaged_files_are_refused(saved: Any, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"config.json: no such file"):
        import_model(tmp_path)
    path = copied(saved["gpt2"][1], tmp_path)
    (path / "config.json").write_text("[1]", "utf-8")
    with pytest.raises(CheckpointError, match=r"config.json: cannot be read"):
        import_model(path)
    copied(saved["gpt2"][1], tmp_path)
    (path / "model.safetensors").write_bytes(b"\x10\0\0\0\0\0\0\0 no")
    with pytest.raises(CheckpointError, match=r"model.safetensors: cannot be read"):
        import_model(path)
