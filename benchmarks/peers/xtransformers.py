"""x-transformers: XTransformer in a plain PyTorch loop, greedy through its own `generate` with cache.

Its beam search knows no end of sentence, so there is no beam row. It ties neither the output layer by
itself: done here, so that the model is the size of the others'.
"""

import numpy as np
import torch
from x_transformers import XTransformer

from peers.engine import BETAS, EOS, PAD, SOS, Batch, Engine, Sizes, smoothed_loss, step, until_eos


class XTransformers(Engine):
    """XTransformer."""

    widths = (1,)

    def __init__(self, sizes: Sizes, dtype: str) -> None:
        if sizes.model != "transformer" or dtype != "float32":
            raise ValueError(f"xtransformers: no {sizes.model} in {dtype} here; float32 Transformer only")
        self.model = x_transformer(sizes)
        self.optimiser = torch.optim.AdamW(self.model.parameters(), betas=BETAS, weight_decay=0.0, fused=True)
        self.updates = 0

    def update(self, batch: Batch) -> float:
        self.model.train()
        self.updates += 1
        source, target = torch.from_numpy(batch.source), torch.from_numpy(batch.target)
        mask = source != PAD
        memory = self.model.encoder(source, mask=mask, return_embeddings=True)
        logits = self.model.decoder.net(target[:, :-1], context=memory, context_mask=mask)
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
            ids,
            torch.full((len(ids), 1), SOS),
            longest,
            mask=ids != PAD,
            temperature=0.0,
            eos_token=None if shortest == longest else EOS,  # it has no minimal length
        )
        rows = found.tolist()
        return rows if shortest == longest else [until_eos(row) for row in rows]


def x_transformer(sizes: Sizes, *, flash: bool = False) -> XTransformer:
    """The Transformer as this library has it, its output layer tied."""
    side = {
        "num_tokens": sizes.vocabulary,
        "max_seq_len": sizes.longest,
        "depth": sizes.layers,
        "heads": sizes.heads,
        "attn_dim_head": sizes.width // sizes.heads,
        "ff_mult": sizes.inner // sizes.width,
        "attn_flash": flash,
        "attn_dropout": 0.0,
        "ff_dropout": sizes.dropout,
        "emb_dropout": sizes.dropout,
    }
    own = {f"{which}_{name}": value for which in ("enc", "dec") for name, value in side.items()}
    model = XTransformer(dim=sizes.width, tie_token_emb=True, ignore_index=PAD, pad_value=PAD, **own)
    writer = model.decoder.net
    writer.to_logits.weight = writer.token_emb.emb.weight
    return model
