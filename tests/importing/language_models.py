"""Small random language models of `transformers` with the tokenizers of well-known ones, as checkpoints.

Read next: random_models.py; test_language_runs.py.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from tests.importing.random_models import LLAMA_3 as LLAMA_3_1
from tests.importing.random_models import model_of
from weft.data.corpora import corpus

LLAMA_3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def learnt(made: Tokenizer, specials: list[str], **settings: Any) -> Tokenizer:
    trainer = trainers.BpeTrainer(vocab_size=411, special_tokens=specials, show_progress=False, **settings)
    every = [source for _, source, _ in corpus("libreoffice-help", "en", "es", "test")]
    made.train_from_iterator(every, trainer)
    return made


def byte_level(pattern: str, specials: list[str], first: str | None) -> Tokenizer:
    """Like Llama 3's, or Qwen's, which puts nothing before a text and splits digits."""
    made = Tokenizer(models.BPE())
    cut = pre_tokenizers.Split(Regex(pattern), "isolated")
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [cut, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    made.decoder = decoders.ByteLevel()
    learnt(made, specials, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    if first is None:
        made.normalizer = normalizers.NFC()
        made.post_processor = processors.ByteLevel(trim_offsets=False)
    else:
        template = processors.TemplateProcessing(
            single=f"{first} $A", special_tokens=[(first, specials.index(first))]
        )
        made.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), template])
    return made


def llama_3() -> Tokenizer:
    return byte_level(LLAMA_3, ["<|begin_of_text|>", "<|end_of_text|>"], "<|begin_of_text|>")


def qwen() -> Tokenizer:
    return byte_level(LLAMA_3.replace("{1,3}", ""), ["<|endoftext|>", "<|im_end|>"], None)


def with_bytes(made: Tokenizer) -> Tokenizer:
    """Like Llama 2's: pieces of SentencePiece, and bytes for what they do not have."""
    specials = ["<unk>", "<s>", "</s>"]
    learnt(made, [*specials, *(f"<0x{byte:02X}>" for byte in range(256))])
    content = json.loads(made.to_str())
    content["added_tokens"] = [one for one in content["added_tokens"] if one["content"] in specials]
    content["model"] |= {"byte_fallback": True, "unk_token": "<unk>", "fuse_unk": True}
    made = Tokenizer.from_str(json.dumps(content))
    made.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    made.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return made


def llama_2() -> Tokenizer:
    made = Tokenizer(models.BPE())
    made.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    return with_bytes(made)


def metaspace() -> Tokenizer:
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="first", split=False)
    return with_bytes(made)


def gpt_2() -> Tokenizer:
    """Bytes, cut by its own pattern; nothing before a text."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    return learnt(made, ["<|endoftext|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet())


SIZES = {
    "vocab_size": 419,  # more rows than pieces, as in real checkpoints
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "hidden_size": 24,
    "intermediate_size": 19,
    "max_position_embeddings": 97,
    "pad_token_id": None,
}
GROUPED = SIZES | {"num_key_value_heads": 2, "bos_token_id": 1, "eos_token_id": 2}
RUNS: dict[str, tuple[str, dict[str, Any], Callable[[], Tokenizer]]] = {
    "llama-3": (
        "Llama",
        GROUPED
        | {"bos_token_id": 0, "eos_token_id": 1, "tie_word_embeddings": True}
        | {"rope_parameters": LLAMA_3_1 | {"rope_theta": 500.0, "original_max_position_embeddings": 23}},
        llama_3,
    ),
    "llama-2": ("Llama", GROUPED, llama_2),
    "mistral": ("Mistral", GROUPED | {"sliding_window": None}, metaspace),
    "qwen3": ("Qwen3", GROUPED | {"bos_token_id": None, "eos_token_id": 0, "head_dim": 6}, qwen),
    "qwen2": (
        "Qwen2",
        GROUPED | {"bos_token_id": None, "eos_token_id": 0, "tie_word_embeddings": True},
        qwen,
    ),
    "gpt_neox": (
        "GPTNeoX",
        SIZES | {"num_attention_heads": 3, "bos_token_id": 0, "eos_token_id": 0},
        qwen,
    ),
    "opt": (
        "OPT",
        {name: value for name, value in SIZES.items() if name != "intermediate_size"}
        | {"ffn_dim": 19, "word_embed_proj_dim": 13, "do_layer_norm_before": False}
        | {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 0},
        qwen,
    ),
    "gemma": ("Gemma", GROUPED | {"bos_token_id": None, "eos_token_id": 0, "head_dim": 6}, qwen),
    "gpt2": (
        "GPT2",
        {"vocab_size": 419, "n_layer": 2, "n_head": 3, "n_embd": 24, "n_inner": 19, "n_positions": 97}
        | {"bos_token_id": 0, "eos_token_id": 0},
        gpt_2,
    ),
}


def write_checkpoint(name: str, folder: Path) -> Any:
    """Save one of RUNS in a folder; returns the library's model."""
    family, settings, tokenizer = RUNS[name]
    model = model_of(family, settings, "CausalLM")
    model.save_pretrained(folder)
    tokenizer().save(str(folder / "tokenizer.json"))
    return model
