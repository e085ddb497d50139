"""Marian's Transformer in NumPy, one sentence and one position at a time, from its source.

Written from marian-dev's src/models/transformer.h (LayerAttention, LayerFFN, DecoderLayerRNN, preProcess,
postProcess, addPositionalEmbeddings), src/rnn/cells.h (SSRU), src/layers/generic.h (layerNorm, denseInline,
Output) and src/graph/node_initializers.cpp (sinusoidalPositionEmbeddings), by the names of model.npz. Marian
itself is not run: no package of it can be installed here.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

Array = np.ndarray


class Marian:
    """A model.npz with its settings."""

    def __init__(self, tensors: Mapping[str, Array], settings: Mapping[str, Any]) -> None:
        self.of = {name: array.astype(np.float64) for name, array in tensors.items()}
        self.settings = settings
        self.size, self.heads = settings["dim-emb"], settings["transformer-heads"]

    def logp(self, source: list[int], target: list[int]) -> Array:
        """log p of every token at every position of the target, [T, V]; both end with </s>."""
        memory = self.encoded(source)
        shared = self.settings["tied-embeddings-all"] or self.settings["tied-embeddings-src"]
        table = self.of["Wemb" if shared else "decoder_Wemb"]
        x = np.vstack(
            [np.zeros(self.size), *(table[token] for token in target[:-1])]
        )  # shifted by a zero vector
        x = self.begun(x)
        tied = self.settings["transformer-tied-layers"] or range(1, self.settings["dec-depth"] + 1)
        for layer in tied:
            name = f"decoder_l{layer}"
            if self.settings["transformer-decoder-autoreg"] == "rnn":
                y = self.ssru(f"{name}_rnn", self.pre(f"{name}_rnn", x))
                x = self.post(f"{name}_rnn_ffn", y, x)
            else:
                x = self.attended(f"{name}_self", x, None, causal=True)
            x = self.attended(f"{name}_context", x, memory)
            x = self.network(f"{name}_ffn", x, decodes=True)
        x = self.topped("decoder", x)
        tied_output = self.settings["tied-embeddings"] or self.settings["tied-embeddings-all"]
        weights = table if tied_output else self.of["decoder_ff_logit_out_Wt"]
        logits = x @ weights.T
        if not self.settings["output-omit-bias"]:
            logits = logits + self.of["decoder_ff_logit_out_b"]
        logits = logits - logits.max(1, keepdims=True)
        return logits - np.log(np.exp(logits).sum(1, keepdims=True))

    def encoded(self, source: list[int]) -> Array:
        shared = self.settings["tied-embeddings-all"] or self.settings["tied-embeddings-src"]
        x = self.begun(self.of["Wemb" if shared else "encoder_Wemb"][source])
        for layer in range(1, self.settings["enc-depth"] + 1):
            x = self.attended(f"encoder_l{layer}_self", x, None)
            x = self.network(f"encoder_l{layer}_ffn", x)
        return self.topped("encoder", x)

    def begun(self, x: Array) -> Array:
        """Embeddings times sqrt(D), plus sinusoids with D/2 time scales."""
        scales = self.size / 2
        signal = np.zeros((len(x), self.size))
        for position in range(len(x)):
            for i in range(int(scales)):
                v = position * np.exp(i * -np.log(10000.0) / (scales - 1))
                signal[position, i], signal[position, int(scales) + i] = np.sin(v), np.cos(v)
        return np.sqrt(self.size) * x + signal

    def attended(self, name: str, x: Array, memory: Array | None, *, causal: bool = False) -> Array:
        y = self.pre(f"{name}_Wo", x)
        keys = y if memory is None else memory
        q, k, v = (
            rows @ self.of[f"{name}_W{part}"] + self.of[f"{name}_b{part}"]
            for rows, part in ((y, "q"), (keys, "k"), (keys, "v"))
        )
        width, found = self.size // self.heads, np.zeros_like(x)
        for head in range(self.heads):
            part = slice(head * width, (head + 1) * width)
            for t in range(len(x)):
                seen = t + 1 if causal else len(keys)
                energy = k[:seen, part] @ q[t, part] / np.sqrt(width)
                weights = np.exp(energy - energy.max())
                found[t, part] = (weights / weights.sum()) @ v[:seen, part]
        return self.post(f"{name}_Wo", found @ self.of[f"{name}_Wo"] + self.of[f"{name}_bo"], x)

    def network(self, name: str, x: Array, *, decodes: bool = False) -> Array:
        h = self.pre(f"{name}_ffn", x) @ self.of[f"{name}_W1"] + self.of[f"{name}_b1"]
        if self.settings["transformer-ffn-activation"] == "relu":
            h = np.maximum(h, 0)
        else:
            h = h / (1 + np.exp(-h))
        return self.post(f"{name}_ffn", h @ self.of[f"{name}_W2"] + self.of[f"{name}_b2"], x)

    def ssru(self, name: str, x: Array) -> Array:
        """c = sigmoid(f) c + (1 - sigmoid(f)) x W, relu(c)."""
        cell, found = np.zeros(self.size), []
        for row in x:
            f = 1 / (1 + np.exp(-(row @ self.of[f"{name}_Wf"] + self.of[f"{name}_bf"][0])))
            cell = f * cell + (1 - f) * (row @ self.of[f"{name}_W"])
            found.append(np.maximum(cell, 0))
        return np.stack(found)

    def pre(self, name: str, x: Array) -> Array:
        for step in self.settings["transformer-preprocess"]:
            x = {"n": self.layer_norm, "r": self.rms_norm, "d": lambda y, *_: y}[step](x, name, "_pre")
        return x

    def post(self, name: str, y: Array, x: Array) -> Array:
        for step in self.settings["transformer-postprocess"]:
            if step == "a":
                y = y + x
            elif step != "d":
                y = {"n": self.layer_norm, "r": self.rms_norm}[step](y, name, "")
        return y

    def topped(self, side: str, x: Array) -> Array:
        for step in self.settings["transformer-postprocess-top"]:
            x = {"n": self.layer_norm, "r": self.rms_norm}[step](x, f"{side}_top", "")
        return x

    def layer_norm(self, x: Array, name: str, end: str) -> Array:
        centred = x - x.mean(1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-6)
        return scaled * self.of[f"{name}_ln_scale{end}"] + self.of[f"{name}_ln_bias{end}"]

    def rms_norm(self, x: Array, name: str, end: str) -> Array:
        return x / np.sqrt((x**2).mean(1, keepdims=True) + 1e-6) * self.of[f"{name}_rms_scale{end}"]
