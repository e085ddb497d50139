"""Models that were saved without their output layer, and so without a prefix in their tensors' names."""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

pytest.importorskip("transformers", reason="pip install --group import-tests")

from tests.importing.random_models import (
    GROUPED,
    OPT,
    PAIRS,
    READERS,
    SIZES,
    model_of,
    pair_model,
    transformers,
)
from tests.laws.members import close
from weft.errors import CheckpointError, ConfigError
from weft.importing.families import import_model

WRITERS = {
    "gpt2": ("GPT2", {"vocab_size": 37, "n_positions": 29, "n_embd": 24, "n_layer": 2, "n_head": 6}),
    "opt": ("OPT", OPT),
    "qwen2": ("Qwen2", GROUPED | {"tie_word_embeddings": True}),
    "llama": ("Llama", SIZES | {"tie_word_embeddings": True}),
}
SEVERAL = ("mbart", "pegasus", "m2m_100", "t5", "bart", "marian")


def same(complete: Path, bare: Path) -> None:
    """See that two checkpoints give the same model."""
    whole, found = import_model(complete).state_dict(), import_model(bare).state_dict()
    assert whole.keys() == found.keys()
    for name, tensor in whole.items():
        close(found[name], tensor, 0)


@pytest.mark.parametrize("name", SEVERAL)
def test_an_encoder_decoder_without_its_output_layer_is_the_same_model(name: str, tmp_path: Path) -> None:
    theirs = pair_model(name)
    if hasattr(theirs, "final_logits_bias"):
        theirs.final_logits_bias = torch.zeros_like(theirs.final_logits_bias)
    theirs.save_pretrained(tmp_path / "complete")
    family = PAIRS[name][0].removesuffix("Config")
    inner = getattr(transformers, f"{family}Model").from_pretrained(tmp_path / "complete")
    inner.save_pretrained(tmp_path / "bare")
    assert "model.shared.weight" not in load_file(tmp_path / "bare" / "model.safetensors")
    same(tmp_path / "complete", tmp_path / "bare")


@pytest.mark.parametrize("name", WRITERS)
def test_a_decoder_without_its_output_layer_uses_the_table(name: str, tmp_path: Path) -> None:
    family, settings = WRITERS[name]
    theirs = model_of(family, settings, "CausalLM")
    theirs.save_pretrained(tmp_path / "complete")
    inner = getattr(transformers, f"{family}Model").from_pretrained(tmp_path / "complete")
    inner.save_pretrained(tmp_path / "bare")
    same(tmp_path / "complete", tmp_path / "bare")


@pytest.mark.parametrize("name", ["bert", "roberta", "distilbert"])
def test_an_encoder_with_its_output_layer_needs_no_prefix(name: str, tmp_path: Path) -> None:
    model_of(*READERS[name], "MaskedLM").save_pretrained(tmp_path / "complete")
    (tmp_path / "bare").mkdir()
    tensors = load_file(tmp_path / "complete" / "model.safetensors")
    save_file(
        {one.removeprefix(f"{name}."): t for one, t in tensors.items()}, tmp_path / "bare/model.safetensors"
    )
    (tmp_path / "bare/config.json").write_bytes((tmp_path / "complete/config.json").read_bytes())
    same(tmp_path / "complete", tmp_path / "bare")


def test_an_output_layer_that_is_nowhere_is_missed(tmp_path: Path) -> None:
    torch.manual_seed(3)
    of_t5 = transformers.T5Config(**PAIRS["t5-v1.1"][2])
    every: dict[str, tuple[Any, type[Exception], str]] = {
        "bert": (
            transformers.BertModel(transformers.BertConfig(**SIZES)),
            ConfigError,
            "expected BertForMaskedLM",
        ),
        "llama": (
            transformers.LlamaModel(transformers.LlamaConfig(**SIZES)),
            CheckpointError,
            "lm_head.weight",
        ),
        "neox": (
            transformers.GPTNeoXModel(transformers.GPTNeoXConfig(**SIZES)),
            ConfigError,
            "expected GPTNeoXForCausalLM",
        ),
        "t5": (
            transformers.T5Model(of_t5),
            CheckpointError,
            "lm_head.weight, got a model without its output",
        ),
    }
    for name, (theirs, error, said) in every.items():
        theirs.save_pretrained(tmp_path / name)
        with pytest.raises(error, match=said):
            import_model(tmp_path / name)
