"""JoeyNMT 2.3: Transformer and RNN, through its own Batch, loss, optimiser and search.

It keeps no cache of keys and values: every step of its Transformer runs the whole prefix again. Its
vocabulary insists on unk 0 and pad 1, so these two ids change places at the border.
"""

import math
from types import SimpleNamespace

import numpy as np
import torch
from joeynmt.batch import Batch as Rows
from joeynmt.builders import build_optimizer
from joeynmt.model import build_model
from joeynmt.search import search
from joeynmt.vocabulary import Vocabulary

from peers.engine import (
    BETAS,
    CLIP_NORM,
    EOS,
    PEAK_RATE,
    SMOOTHING,
    SOS,
    Batch,
    Engine,
    Sizes,
    learning_rate,
    until_eos,
)

OUR_PAD_THEIR_UNK, OUR_UNK_THEIR_PAD = 0, 1


class JoeyNMT(Engine):
    """joeynmt Model."""

    def __init__(self, sizes: Sizes, dtype: str) -> None:
        if dtype != "float32":
            raise ValueError(f"joeynmt: {dtype} is not measured here; float32 only")
        vocabulary = _vocabulary(sizes.vocabulary)
        self.model = build_model(_recipe(sizes), vocabulary, vocabulary)
        self.model.loss_function = ("crossentropy", SMOOTHING)
        settings = {"optimizer": "adam", "adam_betas": BETAS, "learning_rate": PEAK_RATE}
        self.optimiser = build_optimizer(settings, self.model.parameters())
        self.updates = 0
        # its loss is the divergence from the smoothed targets; with their entropy it is the cross entropy
        others = SMOOTHING / (sizes.vocabulary - 2)
        self.entropy = -(1 - SMOOTHING) * math.log(1 - SMOOTHING) - SMOOTHING * math.log(others)

    def update(self, batch: Batch) -> float:
        self.model.train()
        self.updates += 1
        rows = _rows(batch.source, batch.source_lengths, batch.target)
        rows.sort_by_src_length()
        total, _, _, _ = self.model(return_type="loss", **vars(rows))
        loss = rows.normalize(total, normalization="tokens")
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), CLIP_NORM)
        for group in self.optimiser.param_groups:
            group["lr"] = learning_rate(self.updates)
        self.optimiser.step()
        self.optimiser.zero_grad()
        return loss.item() + self.entropy

    def search(
        self, source: np.ndarray, lengths: np.ndarray, width: int, shortest: int, longest: int
    ) -> list[list[int]]:
        self.model.eval()
        rows = _rows(source, lengths, None)
        order = rows.sort_by_src_length()
        found, _, _ = search(
            model=self.model,
            batch=rows,
            max_output_length=longest,
            min_output_length=shortest,
            beam_size=width,
            beam_alpha=1.0,
        )
        found = _swapped(np.asarray(found, dtype=np.int64)[np.asarray(order)])
        return [[i for i in until_eos(row) if i != OUR_PAD_THEIR_UNK] for row in found.tolist()]


def _rows(source: np.ndarray, lengths: np.ndarray, target: np.ndarray | None) -> Rows:
    return Rows(
        src=torch.from_numpy(_swapped(source)),
        src_length=torch.from_numpy(lengths),
        src_prompt_mask=None,
        trg=None if target is None else torch.from_numpy(_swapped(target)),
        trg_prompt_mask=None,
        indices=torch.arange(len(source)),
        device=torch.device("cpu"),
        pad_index=OUR_UNK_THEIR_PAD,
        eos_index=EOS,
        is_train=target is not None,
    )


def _swapped(ids: np.ndarray) -> np.ndarray:
    return np.where(ids < 2, 1 - ids, ids)


def _vocabulary(size: int) -> Vocabulary:
    special = SimpleNamespace(
        unk_token="<unk>", unk_id=0, pad_token="<pad>", pad_id=1, bos_token="<s>", bos_id=SOS,
        eos_token="</s>", eos_id=EOS, sep_token=None, sep_id=None, lang_tags=[],
    )  # fmt: skip
    return Vocabulary([str(i) for i in range(4, size)], special)


def _recipe(sizes: Sizes) -> dict:
    if sizes.model == "transformer":
        side = {
            "type": "transformer",
            "num_layers": sizes.layers,
            "num_heads": sizes.heads,
            "embeddings": {"embedding_dim": sizes.width, "scale": True},
            "hidden_size": sizes.width,
            "ff_size": sizes.inner,
            "dropout": sizes.dropout,
        }
        encoder, decoder = side, side
    else:
        common = {
            "type": "recurrent",
            "rnn_type": "lstm",
            "num_layers": 1,
            "embeddings": {"embedding_dim": sizes.recurrent, "scale": False},
            "dropout": sizes.dropout,
        }
        encoder = common | {"hidden_size": sizes.recurrent // 2, "bidirectional": True}
        decoder = common | {
            "hidden_size": sizes.recurrent,
            "hidden_dropout": sizes.dropout,
            "attention": "bahdanau",
            "init_hidden": "bridge",
            "input_feeding": True,
        }
    return {
        "initializer": "xavier_uniform",
        "embed_initializer": "xavier_uniform",
        "tied_embeddings": True,
        "tied_softmax": True,
        "encoder": encoder,
        "decoder": decoder,
    }
