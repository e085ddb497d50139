"""Randomly initialised models of the `transformers` library, saved by it and imported, give the same outputs.

Skipped with a message if the library is missing: pip install --group import-tests -c constraints.txt
"""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from tests.laws.members import close
from weft import masks
from weft.errors import CheckpointError, ConfigError, ShapeError
from weft.importing.families import import_model
from weft.models import Generator, Labeller
from weft.nn.distances import Relative

transformers = pytest.importorskip(
    "transformers", reason="transformers is not installed: pip install --group import-tests"
)
transformers.utils.logging.disable_progress_bar()

TOKENS, LENGTHS, STEPS = 37, (11, 4, 1, 7), 11
ENDS = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 2}
PAIR: dict[str, Any] = {
    "vocab_size": TOKENS,
    "d_model": 12,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 3,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 19,
    "decoder_ffn_dim": 17,
    "max_position_embeddings": 23,
    **ENDS,
}


def theirs_of(name: str) -> nn.Module:
    """A small model of the library, with no parameter at zero or one."""
    torch.manual_seed(3)
    if name.startswith("gpt2"):
        inner = {"n_inner": 19} if name == "gpt2-inner" else {}
        ends = {"bos_token_id": 0, "eos_token_id": 0}
        config = transformers.GPT2Config(
            vocab_size=TOKENS, n_positions=23, n_embd=12, n_layer=2, n_head=3, **inner, **ends
        )
        model = transformers.GPT2LMHeadModel(config)
    elif name == "bert":
        config = transformers.BertConfig(
            vocab_size=TOKENS,
            hidden_size=12,
            num_hidden_layers=2,
            num_attention_heads=3,
            intermediate_size=19,
            max_position_embeddings=23,
        )
        model = transformers.BertForMaskedLM(config)
    elif name == "marian":
        ends = {"scale_embedding": True, "activation_function": "swish", "forced_eos_token_id": None}
        model = transformers.MarianMTModel(transformers.MarianConfig(**PAIR | ends))
    elif name == "bart":
        model = transformers.BartForConditionalGeneration(transformers.BartConfig(**PAIR))
    else:
        config = transformers.ViTConfig(
            hidden_size=12,
            num_hidden_layers=2,
            num_attention_heads=3,
            intermediate_size=19,
            image_size=12,
            patch_size=4,
            num_channels=3,
            num_labels=5,
        )
        model = transformers.ViTForImageClassification(config)
    generator = torch.Generator().manual_seed(5)
    sinusoids = [] if name != "marian" else ["embed_positions"]
    for key, parameter in model.named_parameters():
        if not any(part in key for part in sinusoids):
            parameter.data += 0.2 * torch.randn(parameter.shape, generator=generator)
    return model.eval()


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[nn.Module, Path]]:
    found = {}
    for name in ("gpt2", "gpt2-inner", "bert", "marian", "bart", "vit"):
        model, path = theirs_of(name), tmp_path_factory.mktemp("checkpoint") / name
        model.save_pretrained(path)
        found[name] = model, path
    return found


def tokens(seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randint(4, TOKENS, (len(LENGTHS), STEPS), generator=generator)
    return drawn, masks.from_lengths(torch.tensor(LENGTHS), STEPS)


@pytest.mark.parametrize("name", ["gpt2", "gpt2-inner"])
@torch.no_grad()
def test_gpt2_says_the_same(name: str, saved: Any) -> None:
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


@torch.no_grad()
def test_bert_says_the_same(saved: Any) -> None:
    theirs, path = saved["bert"]
    ours = import_model(path)
    assert isinstance(ours, Labeller)
    text, mask = tokens(1)
    want = theirs(text, attention_mask=mask.long()).logits.log_softmax(-1)
    close(ours(text, mask)[mask], want[mask], 1e-5)


@pytest.mark.parametrize("name", ["marian", "bart"])
@torch.no_grad()
def test_translators_say_the_same(name: str, saved: Any) -> None:
    theirs, path = saved[name]
    ours = import_model(path)
    assert isinstance(ours, Generator) and ours.encoder is not None
    (source, mask), (target, target_mask) = tokens(1), tokens(2)
    got = theirs(
        input_ids=source,
        attention_mask=mask.long(),
        decoder_input_ids=target,
        decoder_attention_mask=target_mask.long(),
    ).logits.log_softmax(-1)
    h, _ = ours.decoder(ours.embed(target), ours.start(source, mask))
    close(ours.head(h)[target_mask], got[target_mask], 1e-5)


@torch.no_grad()
def test_vit_says_the_same(saved: Any) -> None:
    theirs, path = saved["vit"]
    ours = import_model(path)
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


def copied(path: Path, there: Path) -> Path:
    for name in ("config.json", "model.safetensors"):
        (there / name).write_bytes((path / name).read_bytes())
    return there


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


def test_a_tied_head_that_differs_is_refused(saved: Any, tmp_path: Path) -> None:
    path = copied(saved["gpt2"][1], tmp_path)
    tensors = load_file(path / "model.safetensors")
    tensors["lm_head.weight"] = tensors["transformer.wte.weight"] + 1
    save_file(tensors, path / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"transformer.wte.weight and lm_head.weight differ"):
        import_model(path)


def changed(path: Path, **settings: Any) -> Path:
    config = json.loads((path / "config.json").read_text("utf-8"))
    (path / "config.json").write_text(json.dumps(config | settings), "utf-8")
    return path


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
    path = changed(copied(saved["gpt2"][1], tmp_path), **settings)
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
