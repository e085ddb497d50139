"""A small tokenizer for imported models. Read next: test_translator_runs.py."""

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from weft.data.corpora import corpus

SPECIALS = ["<s>", "<pad>", "</s>", "<unk>"]


def tokenizer(*symbols: str) -> Tokenizer:
    """A byte-level tokenizer like BART's, trained on a few sentences, with more special symbols."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=311, special_tokens=[*SPECIALS, *symbols], initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator(
        [source for _, source, _ in corpus("libreoffice-help", "en", "es", "test")], trainer
    )
    return made
