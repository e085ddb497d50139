"""Hugging Face transformers: MarianMTModel in a plain PyTorch loop, and its own `generate` with cache.

Optimiser as its Trainer's default (fused AdamW). Read next: ctranslate2.py, which decodes these weights.
"""

from pathlib import Path

import numpy as np
import torch
from transformers import MarianConfig, MarianMTModel

from peers.engine import BETAS, EOS, PAD, SOS, TRAINED, Batch, Engine, Sizes, smoothed_loss, step, until_eos


class Transformers(Engine):
    """MarianMTModel."""

    def __init__(self, sizes: Sizes, dtype: str) -> None:
        if sizes.model != "transformer" or dtype != "float32":
            raise ValueError(f"transformers: no {sizes.model} in {dtype} here; float32 Transformer only")
        self.model = marian(sizes)
        self.optimiser = torch.optim.AdamW(self.model.parameters(), betas=BETAS, weight_decay=0.0, fused=True)
        self.updates = 0

    def update(self, batch: Batch) -> float:
        self.model.train()
        self.updates += 1
        source, target = torch.from_numpy(batch.source), torch.from_numpy(batch.target)
        logits = self.model(
            input_ids=source,
            attention_mask=(source != PAD).long(),
            decoder_input_ids=target[:, :-1],
            use_cache=False,
        ).logits
        loss = smoothed_loss(logits, target[:, 1:])
        step(self.model, self.optimiser, loss, self.updates)
        return loss.item()

    @torch.inference_mode()
    def search(
        self, source: np.ndarray, lengths: np.ndarray, width: int, shortest: int, longest: int
    ) -> list[list[int]]:
        if self.model.training:
            self.model.eval()
        ids = torch.from_numpy(source)
        found = self.model.generate(
            input_ids=ids,
            attention_mask=(ids != PAD).long(),
            num_beams=width,
            do_sample=False,
            length_penalty=1.0,
            min_new_tokens=shortest,
            max_new_tokens=longest,
        )
        return [until_eos(row) for row in found[:, 1:].tolist()]

    def save(self, folder: Path) -> None:
        self.model.save_pretrained(folder / TRAINED)


def marian(sizes: Sizes) -> MarianMTModel:
    """The Transformer as this library has it."""
    config = MarianConfig(
        vocab_size=sizes.vocabulary,
        d_model=sizes.width,
        encoder_layers=sizes.layers,
        decoder_layers=sizes.layers,
        encoder_ffn_dim=sizes.inner,
        decoder_ffn_dim=sizes.inner,
        encoder_attention_heads=sizes.heads,
        decoder_attention_heads=sizes.heads,
        activation_function="relu",
        dropout=sizes.dropout,
        attention_dropout=0.0,
        scale_embedding=True,
        max_position_embeddings=sizes.longest,
        pad_token_id=PAD,
        bos_token_id=SOS,
        eos_token_id=EOS,
        decoder_start_token_id=SOS,
        forced_eos_token_id=None,
        # the default, 0.02, is made for unscaled embeddings: with sqrt(D) this is width 1, as the paper's
        init_std=sizes.width**-0.5,
    )
    return MarianMTModel(config)
