"""Small random masked language models of `transformers` with their tokenizers, as checkpoints.

Read next: random_models.py; test_masked_runs.py.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tokenizers import (
    AddedToken,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

from tests.importing.random_models import READERS, model_of
from weft.data.corpora import corpus


def sentences(split: Any = "test") -> list[str]:
    return [source for _, source, _ in corpus("libreoffice-help", "en", "es", split)]


def word_pieces() -> Tokenizer:
    """Like BERT's."""
    made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.normalizer, made.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    made.train_from_iterator(
        sentences(), trainers.WordPieceTrainer(vocab_size=311, special_tokens=specials, show_progress=False)
    )
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return made


def byte_level() -> Tokenizer:
    """Like RoBERTa's, whose mask takes the space before it."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    specials = ["<s>", "<pad>", "</s>", "<unk>", AddedToken("<mask>", lstrip=True, special=True)]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(
        sentences(),
        trainers.BpeTrainer(
            vocab_size=311, special_tokens=specials, initial_alphabet=alphabet, show_progress=False
        ),
    )
    made.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    return made


SPELLING: dict[str, tuple[Callable[[], Tokenizer], str, dict[str, int]]] = {
    "bert": (word_pieces, "[MASK]", {"pad_token_id": 0}),
    "roberta": (byte_level, "<mask>", {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}),
    "xlm-roberta": (byte_level, "<mask>", {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}),
    "modernbert": (byte_level, "<mask>", {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}),
    "distilbert": (word_pieces, "[MASK]", {"pad_token_id": 0}),
}


def write_checkpoint(name: str, folder: Path, head: str = "MaskedLM", **more: Any) -> Any:
    """Save one of SPELLING in a folder, with another head and more settings if given; returns the model."""
    tokenizer, _, symbols = SPELLING[name]
    family, settings = READERS[name]
    sizes = {"vocab_size": 317, "max_position_embeddings": 67}
    model = model_of(family, settings | symbols | sizes | more, head)
    model.save_pretrained(folder)
    spelling = tokenizer()
    spelling.enable_padding(length=23)  # some files say so; it is no part of a text
    spelling.enable_truncation(3)
    spelling.save(str(folder / "tokenizer.json"))
    return model
