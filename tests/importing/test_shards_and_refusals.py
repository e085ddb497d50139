"""Language models that cannot be expressed are refused by name; checkpoints in several files are read.

Skipped with a message if the library is missing: pip install --group import-tests -c constraints.txt
"""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

pytest.importorskip("transformers", reason="pip install --group import-tests")

from tests.commands.shell import refused, weft
from tests.importing.random_models import ROPE, YARN, copied, saved_in, tokens, transformers
from tests.laws.members import close
from weft.errors import CheckpointError, ConfigError, ShapeError
from weft.importing.families import import_model
from weft.models import Generator


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[nn.Module, Path]]:
    return saved_in(tmp_path_factory.mktemp("checkpoints"))


@pytest.mark.parametrize(
    ("name", "settings", "sentence"),
    [
        (
            "llama",
            {"rope_parameters": ROPE | {"rope_type": "llama3"}},
            "low_freq_factor: expected a positive number, got None",
        ),
        ("llama", {"rope_parameters": None, "rope_scaling": {"type": "linear"}}, "factor: .*got None"),
        ("llama", {"rope_parameters": None, "rope_scaling": "linear"}, "rope_type: .*got linear"),
        (
            "gpt_neox",
            {"rope_parameters": ROPE | {"rope_type": "dynamic", "factor": 2.0}},
            "rope_type: expected default or linear or llama3 or yarn, got dynamic",
        ),
        ("llama", {"rope_parameters": YARN | {"rope_theta": 1.0}}, "rope_theta: expected a number above 1"),
        (
            "llama",
            {"rope_parameters": YARN | {"beta_fast": 0.5}},
            r"config\.json: position_scaling: expected low",
        ),
        ("gemma", {"hidden_activation": "gelu"}, "hidden_activation: expected one of gelu_pytorch_tanh"),
        ("llama", {"num_attention_heads": 7}, r"config\.json: heads\.key_value: expected a divisor"),
        (
            "llama",
            {"rope_parameters": ROPE | {"rope_theta": "x"}},
            "rope_theta: expected a positive number, got x",
        ),
        (
            "llama",
            {"rope_parameters": {"partial_rotary_factor": 0.5}},
            "partial_rotary_factor: expected 1, got 0.5",
        ),
        ("llama", {"hidden_act": "gelu"}, "hidden_act: expected one of silu, swish, got gelu"),
        (
            "llama",
            {"quantization_config": {"bits": 4}},
            "quantization_config: expected none, quantised weights",
        ),
        (
            "llama",
            {"architectures": ["LlamaForSequenceClassification"]},
            "expected LlamaForCausalLM or LlamaModel, .*Sequence",
        ),
        (
            "mistral",
            {"sliding_window": 28},
            "sliding_window: expected none, .*max_position_embeddings, got 28",
        ),
        ("qwen2", {"use_sliding_window": True, "sliding_window": 7}, "sliding_window: .*got 7"),
        ("qwen2", {"model_type": "mixtral"}, "model_type: expected one of .*qwen2, .*got mixtral"),
        ("gpt_neox", {"attention_bias": False}, "attention_bias: expected one of True, got False"),
        ("opt", {"enable_bias": False}, "enable_bias: expected one of True, got False"),
        (
            "opt",
            {"_remove_final_layer_norm": True},
            "_remove_final_layer_norm: expected one of False, got True",
        ),
        ("bert", {"architectures": ["BertForTokenClassification"]}, "BertForSequenceClassification, .*Token"),
        ("bert", {"hidden_act": "relu"}, "hidden_act: expected one of gelu, got relu"),
        ("roberta", {"is_decoder": True}, "is_decoder: expected one of False, got True"),
        ("distilbert", {"activation": "relu"}, "activation: expected one of gelu, got relu"),
    ],
)
def test_what_cannot_be_expressed_is_refused(
    name: str, settings: dict[str, Any], sentence: str, saved: Any, tmp_path: Path
) -> None:
    with pytest.raises((ConfigError, ShapeError), match=sentence):
        import_model(copied(saved[name][1], tmp_path, **settings))


@pytest.mark.parametrize(
    ("name", "table", "head"),
    [
        ("qwen2", "model.embed_tokens.weight", "lm_head.weight"),
        ("opt", "model.decoder.embed_tokens.weight", "lm_head.weight"),
        ("roberta", "roberta.embeddings.word_embeddings.weight", "lm_head.decoder.weight"),
    ],
)
def test_a_tied_head_may_be_there_but_must_not_differ(
    name: str, table: str, head: str, saved: Any, tmp_path: Path
) -> None:
    path = copied(saved[name][1], tmp_path)
    tensors = load_file(path / "model.safetensors")
    save_file(tensors | {head: tensors[table].clone()}, path / "model.safetensors")
    assert import_model(path).state_dict().keys() == import_model(saved[name][1]).state_dict().keys()
    save_file(tensors | {head: tensors[table] + 1}, path / "model.safetensors")
    with pytest.raises(CheckpointError, match=f"{table} and {head} differ"):
        import_model(path)


def shards(path: Path, there: Path, ending: str) -> Path:
    """The checkpoint in several files with an index, like those of large models; in half precision."""
    (there / "config.json").write_bytes((path / "config.json").read_bytes())
    tensors = {name: one.bfloat16() for name, one in load_file(path / "model.safetensors").items()}
    stem = "model" if ending == "safetensors" else "pytorch_model"
    places = {name: f"{stem}-{1 + number % 3:05}-of-00003.{ending}" for number, name in enumerate(tensors)}
    for file in set(places.values()):
        part = {name: tensors[name] for name in tensors if places[name] == file}
        save_file(part, there / file) if ending == "safetensors" else torch.save(part, there / file)
    index = {"metadata": {"total_size": 1}, "weight_map": places}
    (there / f"{stem}.{ending}.index.json").write_text(json.dumps(index), "utf-8")
    return there / f"{stem}.{ending}.index.json"


@pytest.mark.parametrize("ending", ["safetensors", "bin"])
@torch.no_grad()
def test_several_files_in_half_precision_are_one_model(ending: str, saved: Any, tmp_path: Path) -> None:
    theirs = saved["qwen3"][0]
    shards(saved["qwen3"][1], tmp_path, ending)
    ours = import_model(tmp_path)
    assert isinstance(ours, Generator)
    assert {one.dtype for one in ours.state_dict().values()} == {torch.float32}
    if ending == "safetensors":
        theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32)
    else:
        theirs = type(theirs)(theirs.config)
        theirs.load_state_dict({name: one.bfloat16() for name, one in saved["qwen3"][0].state_dict().items()})
    text, _ = tokens(1)
    h, _ = ours.decoder(ours.embed(text), ours.decoder.start(None, len(text)))
    close(ours.head(h), theirs.eval()(text).logits.log_softmax(-1), 1e-5)


def test_damaged_indexes_are_refused(saved: Any, tmp_path: Path) -> None:
    index = shards(saved["llama"][1], tmp_path, "safetensors")
    content = json.loads(index.read_text("utf-8"))
    file = tmp_path / content["weight_map"]["model.norm.weight"]
    cases: list[tuple[Any, str]] = [
        ([1], "cannot be read"),
        ({"weight_map": {"model.norm.weight": 7}}, "cannot be read"),
        ({"weight_map": {"model.norm.weight": "../model.safetensors"}}, "names of weight files in the same"),
        ({"weight_map": {"model.norm.weight": "model.pkl"}}, "names of weight files in the same"),
        ({"weight_map": content["weight_map"] | {"extra": file.name}}, r"1 tensor is not in .* \(extra\)"),
        (
            {"weight_map": content["weight_map"] | {"extra": "other.safetensors"}},
            "other.safetensors: no such file",
        ),
    ]
    for damaged, sentence in cases:
        index.write_text(json.dumps(damaged), "utf-8")
        with pytest.raises(CheckpointError, match=sentence):
            import_model(tmp_path)


def test_several_ends_of_a_text_are_refused(saved: Any, tmp_path: Path) -> None:
    copied(saved["llama"][1], tmp_path, eos_token_id=[2, 3])
    said = refused(weft("import", tmp_path, "--run", tmp_path / "run"))
    assert "eos_token_id: expected one number, got [2, 3]; keep only the one that ends a text" in said
    assert not (tmp_path / "run").exists()
