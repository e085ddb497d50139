"""Sockeye 3.1: Transformer, traced for training as its own trainer does, and its BeamSearch.

The inference model is a copy of the weights in its fused layout, made anew after training. Its search
has no minimal length: where outputs are forced, the output bias of eos is lowered instead, and its
search closes every hypothesis at the limit.
"""

import tempfile
from pathlib import Path

import numpy as np
import torch
from sockeye import constants, data_io, encoder, transformer
from sockeye.beam_search import CandidateScorer, get_search_algorithm
from sockeye.inference import Translator
from sockeye.loss import CrossEntropyLoss
from sockeye.model import ModelConfig, SockeyeModel, initialize_parameters

from peers.engine import BETAS, EOS, PAD, PEAK_RATE, SMOOTHING, Batch, Engine, Sizes, step, until_eos

NEVER = -1e4


class Sockeye(Engine):
    """sockeye.model.SockeyeModel."""

    def __init__(self, sizes: Sizes, dtype: str) -> None:
        if sizes.model != "transformer" or dtype != "float32":
            raise ValueError(f"sockeye: no {sizes.model} in {dtype} here; float32 Transformer only")
        self.model = SockeyeModel(_config(sizes))
        self.model.apply(initialize_parameters)
        self.optimiser = torch.optim.Adam(self.model.parameters(), lr=PEAK_RATE, betas=BETAS)
        self.loss = CrossEntropyLoss(label_smoothing=SMOOTHING, label_smoothing_impl="torch")
        self.traced = None
        self.searches: dict[int, torch.nn.Module] = {}
        self.updates = 0

    def update(self, batch: Batch) -> float:
        self.model.train()
        self.updates += 1
        self.searches = {}
        source, target = torch.from_numpy(batch.source)[..., None].int(), torch.from_numpy(batch.target)
        given = target[:, :-1, None].int()
        lengths = (target[:, 1:] != PAD).sum(1)
        inputs = (source, _lengths(batch.source_lengths), given, lengths)
        if self.traced is None:
            self.traced = torch.jit.trace(self.model, inputs, strict=False)
        logits = self.traced(*inputs)
        loss, _ = self.loss(logits, {constants.TARGET_LABEL_NAME: target[:, 1:]})
        step(self.model, self.optimiser, loss, self.updates)
        return loss.item()

    @torch.inference_mode()
    def search(
        self, source: np.ndarray, lengths: np.ndarray, width: int, shortest: int, longest: int
    ) -> list[list[int]]:
        if width not in self.searches:
            self.searches[width] = self._search(width)
        search, bias = self.searches[width], self.writer.output_layer.bias
        forced = shortest == longest
        usual = bias[EOS].item()
        if forced:
            bias[EOS] = NEVER
        limits = torch.full((len(source),), longest + 1 if forced else longest, dtype=torch.int32)
        found = search(torch.from_numpy(source)[..., None].int(), _lengths(lengths), None, limits, None, None)
        bias[EOS] = usual
        hypotheses, words = found.best_hyp_indices.numpy(), found.best_word_indices.numpy()
        first = np.arange(0, len(source) * width, width, dtype="int32")
        path = Translator._get_best_word_indices_for_kth_hypotheses(first, hypotheses)
        rows = words[path, 0, np.arange(path.shape[1])].tolist()
        return [until_eos(row) for row in rows]

    def _search(self, width: int) -> torch.nn.Module:
        self.writer = SockeyeModel(self.model.config, inference_only=True).eval()
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "parameters")
            self.model.save_parameters(path)
            self.writer.load_parameters(path)
        scorer = CandidateScorer(1.0, 0.0)
        return get_search_algorithm(
            [self.writer], width, torch.device("cpu"), output_scores=width > 1, scorer=scorer
        )


def _lengths(lengths: np.ndarray) -> torch.Tensor:
    """Sockeye counts a second, prepended source; there is none."""
    return torch.from_numpy(np.stack([lengths, np.zeros_like(lengths)], 1)).int()


def _config(sizes: Sizes) -> ModelConfig:
    side = transformer.TransformerConfig(
        model_size=sizes.width,
        attention_heads=sizes.heads,
        feed_forward_num_hidden=sizes.inner,
        act_type="relu",
        num_layers=sizes.layers,
        dropout_attention=0.0,
        dropout_act=sizes.dropout,
        dropout_prepost=sizes.dropout,
        positional_embedding_type="fixed",
        preprocess_sequence="n",
        postprocess_sequence="dr",
        max_seq_len_source=sizes.longest,
        max_seq_len_target=sizes.longest,
        depth_key_value=sizes.width,
    )
    embed = encoder.EmbeddingConfig(sizes.vocabulary, sizes.width, dropout=0.0)
    return ModelConfig(
        config_data=data_io.DataConfig(None, sizes.longest, sizes.longest, 1, 1),
        vocab_source_size=sizes.vocabulary,
        vocab_target_size=sizes.vocabulary,
        config_embed_source=embed,
        config_embed_target=embed,
        config_encoder=side,
        config_decoder=side,
    )
