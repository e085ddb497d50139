"""Small random language models of `transformers`, and what tests do with them."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from weft import masks

transformers = pytest.importorskip(
    "transformers", reason="transformers is not installed: pip install --group import-tests"
)
transformers.utils.logging.disable_progress_bar()

TOKENS, LENGTHS, STEPS = 37, (11, 4, 1, 7), 11
SIZES = {
    "vocab_size": TOKENS,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "hidden_size": 24,
    "intermediate_size": 19,
    "max_position_embeddings": 29,
    "pad_token_id": 1,
    "bos_token_id": 0,
    "eos_token_id": 2,
}
GROUPED = SIZES | {"num_key_value_heads": 3}
OPT = {name: value for name, value in SIZES.items() if name != "intermediate_size"} | {"ffn_dim": 19}
ROPE = {"rope_type": "default", "rope_theta": 500.0}
LLAMA_3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 7, "rope_theta": 50.0}
WIDE = {"head_dim": 14}  # enough pairs of features for speeds of all kinds
GPT2 = {"vocab_size": TOKENS, "n_positions": 23, "n_embd": 12, "n_layer": 2, "n_head": 3}
WRITERS: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt2": ("GPT2", GPT2 | {"bos_token_id": 0, "eos_token_id": 2}),
    "gpt2-inner": ("GPT2", GPT2 | {"n_inner": 19, "bos_token_id": 0, "eos_token_id": 2}),
    "llama": ("Llama", GROUPED | {"rope_parameters": ROPE}),
    "llama-tied-biases": (
        "Llama",
        SIZES | {"tie_word_embeddings": True, "attention_bias": True, "head_dim": 10},
    ),
    "llama-network-biases": ("Llama", GROUPED | {"mlp_bias": True, "rms_norm_eps": 1e-2}),
    "mistral": ("Mistral", GROUPED | {"sliding_window": None, "num_key_value_heads": 1}),
    "mistral-wide-window": ("Mistral", GROUPED | {"sliding_window": 29}),
    "qwen2": ("Qwen2", GROUPED | {"tie_word_embeddings": True}),
    "qwen3": ("Qwen3", GROUPED | {"head_dim": 14}),
    "qwen3-biases": ("Qwen3", GROUPED | {"head_dim": 2, "attention_bias": True}),
    "llama-linear": ("Llama", GROUPED | {"rope_parameters": ROPE | {"rope_type": "linear", "factor": 3.0}}),
    "llama-3.1": (
        "Llama",
        GROUPED | WIDE | {"rope_parameters": ROPE | LLAMA_3 | {"original_max_position_embeddings": 23}},
    ),
    "llama-yarn": ("Llama", GROUPED | WIDE | {"rope_parameters": YARN}),
    "qwen2-yarn": (
        "Qwen2",
        SIZES
        | {"num_attention_heads": 3, "num_key_value_heads": 1}
        | {"rope_parameters": YARN | {"truncate": False, "beta_fast": 5.0, "beta_slow": 0.5}},
    ),
    "mistral-yarn": (
        "Mistral",
        GROUPED | WIDE | {"rope_parameters": YARN | {"mscale": 0.7, "mscale_all_dim": 1.3}},
    ),
    "gemma": ("Gemma", GROUPED | {"head_dim": 10, "pad_token_id": 1}),
    "gemma-untied": ("Gemma", GROUPED | {"head_dim": 4, "tie_word_embeddings": False}),
    "opt": ("OPT", OPT),
    "opt-after": ("OPT", OPT | {"word_embed_proj_dim": 13, "do_layer_norm_before": False}),
    "gpt_neox": (
        "GPTNeoX",
        SIZES | {"num_attention_heads": 3, "rope_parameters": ROPE | {"partial_rotary_factor": 0.25}},
    ),
    "gpt_neox-linear": (
        "GPTNeoX",
        SIZES
        | {"num_attention_heads": 3}
        | {"rope_parameters": {"rope_type": "linear", "rope_theta": 90.0, "factor": 2.5}},
    ),
    "gpt_neox-not-parallel": (
        "GPTNeoX",
        SIZES | {"num_attention_heads": 3, "use_parallel_residual": False, "hidden_act": "gelu_new"},
    ),
    "gpt_neox-tied": (
        "GPTNeoX",
        SIZES | {"tie_word_embeddings": True, "rope_parameters": ROPE | {"partial_rotary_factor": 1.0}},
    ),
}
DISTIL = {
    "dim": 24,
    "n_layers": 2,
    "n_heads": 6,
    "hidden_dim": 19,
    "vocab_size": TOKENS,
    "max_position_embeddings": 29,
}
MODERN = SIZES | {"local_attention": 4, "num_hidden_layers": 4, "cls_token_id": 0, "sep_token_id": 2}
BIASES = {f"{name}_bias": True for name in ("norm", "attention", "mlp", "classifier")}
READERS: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": ("Bert", SIZES),
    "roberta": ("Roberta", SIZES | {"type_vocab_size": 1, "layer_norm_eps": 1e-5}),
    "xlm-roberta": ("XLMRoberta", SIZES | {"type_vocab_size": 1, "layer_norm_eps": 1e-5}),
    "modernbert": ("ModernBert", MODERN),
    "modernbert-biases": ("ModernBert", MODERN | BIASES | {"local_attention": 2, "num_hidden_layers": 5}),
    "distilbert": ("DistilBert", DISTIL),
    "distilbert-sinusoidal": ("DistilBert", DISTIL | {"sinusoidal_pos_embds": True}),
}


def model_of(family: str, settings: dict[str, Any], head: str) -> Any:
    """A small model of the library, with no parameter at zero or one."""
    torch.manual_seed(3)
    config = getattr(transformers, f"{family}Config")(**settings)
    name = f"{family}LMHeadModel" if family == "GPT2" else f"{family}For{head}"
    model = getattr(transformers, name)(config)
    generator = torch.Generator().manual_seed(5)
    for parameter in model.parameters():
        parameter.data += 0.2 * torch.randn(parameter.shape, generator=generator)
    return model.eval()


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
T5: dict[str, Any] = {
    "vocab_size": TOKENS,
    "d_model": 12,
    "d_kv": 5,  # not d_model / num_heads, as in v1.1
    "d_ff": 19,
    "num_layers": 2,
    "num_decoder_layers": 3,
    "num_heads": 3,
    "pad_token_id": 0,
    "eos_token_id": 1,
    "decoder_start_token_id": 0,
}
SCALED = PAIR | {"scale_embedding": True}
PAIRS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "bart": ("BartConfig", "BartForConditionalGeneration", PAIR),
    "marian": (
        "MarianConfig",
        "MarianMTModel",
        PAIR | {"scale_embedding": True, "activation_function": "swish"},
    ),
    "mbart": ("MBartConfig", "MBartForConditionalGeneration", SCALED),
    "pegasus": ("PegasusConfig", "PegasusForConditionalGeneration", SCALED),
    "m2m_100": ("M2M100Config", "M2M100ForConditionalGeneration", SCALED),
    "t5": ("T5Config", "T5ForConditionalGeneration", T5),
    "t5-v1.1": (
        "T5Config",
        "T5ForConditionalGeneration",
        T5 | {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False},
    ),
    "mt5": ("MT5Config", "MT5ForConditionalGeneration", T5 | {"feed_forward_proj": "gated-gelu"}),
}


def pair_model(name: str, noise: float = 0.2, **changes: Any) -> Any:
    """A small encoder-decoder of the library, with no parameter at zero or one."""
    torch.manual_seed(3)
    config, model, settings = PAIRS[name]
    theirs = getattr(transformers, model)(getattr(transformers, config)(**settings | changes))
    for key, parameter in theirs.named_parameters():
        if name == "mbart" or "embed_positions" not in key:
            parameter.data += noise * torch.randn(parameter.shape)
    if hasattr(theirs, "final_logits_bias"):
        theirs.final_logits_bias = 0.1 * torch.randn(theirs.final_logits_bias.shape)
    return theirs.eval()


def saved_in(folder: Path) -> dict[str, tuple[nn.Module, Path]]:
    """Every model and the checkpoint that it wrote."""
    found = {}
    for head, every in (("CausalLM", WRITERS), ("MaskedLM", READERS)):
        for name, (family, settings) in every.items():
            model = model_of(family, settings, head)
            model.save_pretrained(folder / name)
            found[name] = model, folder / name
    return found


def tokens(seed: int) -> tuple[Tensor, Tensor]:
    """Texts and their mask."""
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randint(4, TOKENS, (len(LENGTHS), STEPS), generator=generator)
    return drawn, masks.from_lengths(torch.tensor(LENGTHS), STEPS)


def copied(path: Path, there: Path, **settings: Any) -> Path:
    """A copy of a checkpoint with other settings."""
    config = json.loads((path / "config.json").read_text("utf-8")) | settings
    (there / "config.json").write_text(json.dumps(config), "utf-8")
    (there / "model.safetensors").write_bytes((path / "model.safetensors").read_bytes())
    return there
