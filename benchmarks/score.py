"""BLEU of token ids: detokenised, by sacrebleu, with its signature."""

from pathlib import Path

import numpy as np


class Scorer:
    """Turns outputs into text and compares them with the references.

    Args:
        vocabulary: the tokenizer's file.
        references: text of the whole test set.
        batches: numbers of the sentences of each test batch.
    """

    def __init__(self, vocabulary: Path, references: list[str], batches: list[np.ndarray]) -> None:
        from sacrebleu.metrics import BLEU
        from tokenizers import Tokenizer

        self.coder = Tokenizer.from_file(str(vocabulary))
        self.references = references
        self.batches = batches
        self.bleu = BLEU()

    def score(self, outputs: list[list[int]], batches: list[int]) -> float:
        """BLEU of the outputs for these batches."""
        texts = [text.strip() for text in self.coder.decode_batch(outputs)]
        wanted = [self.references[row] for batch in batches for row in self.batches[batch]]
        return self.bleu.corpus_score(texts, [wanted]).score

    @property
    def signature(self) -> str:
        """How the last score was computed."""
        return f"BLEU {self.bleu.get_signature()}"
