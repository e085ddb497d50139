"""onnxruntime: runs the graphs that `weft export --to onnx` makes of the weights that Weft trained.

Greedy search calls its sessions for a whole batch at a time; beam search is that of the exported program,
sentence by sentence. Runs in Weft's own environment, with the extra `export`. Read next:
../../weft/export/programs/writers.py.
"""

import json
from pathlib import Path

import numpy as np
import torch

from peers.engine import EOS, PAD, SOS, UNK, Engine, Sizes, until_eos
from weft.export.programs.common import OnnxGraph
from weft.export.programs.writers import Writer


class OnnxRuntime(Engine):
    """onnxruntime.InferenceSession."""

    trains = False

    def __init__(self, sizes: Sizes, dtype: str) -> None:
        if dtype != "float32" or sizes.model == "hybrid":
            raise ValueError(f"onnxruntime: no {sizes.model} in {dtype}; Transformer and RNN in float32")

    def load(self, folder: Path) -> None:
        if not (folder / "weft.json").exists():
            raise ValueError("onnxruntime: no graphs were exported; pip install weft-seq[export]")
        about = json.loads((folder / "weft.json").read_text())
        self.writer = Writer(folder, about | {"banned": [PAD, UNK, SOS], "decoding": {}})
        threads = torch.get_num_threads()
        names = ("start", "step")
        self.start, self.writer.step = (OnnxGraph(folder / f"{name}.onnx", threads) for name in names)

    def search(
        self, source: np.ndarray, lengths: np.ndarray, width: int, shortest: int, longest: int
    ) -> list[list[int]]:
        banned = [PAD, UNK, SOS, *([EOS] if shortest == longest else [])]
        if width == 1:
            return self.greedy(source, banned, longest)
        self.writer.about["banned"] = banned
        found = []
        for row, length in zip(source, lengths, strict=True):
            given = row[None, :length]
            state = self.start({"source": given, "mask": np.ones(given.shape, bool)})
            found.append(self.writer.beam(SOS, state, width, longest, end=EOS)[0])
        return found

    def greedy(self, source: np.ndarray, banned: list[int], longest: int) -> list[list[int]]:
        """The likeliest token at each step, for all rows together."""
        state = self.start({"source": source, "mask": source != PAD})
        token, written = np.full(len(source), SOS), []
        ended = np.zeros(len(source), bool)
        for _ in range(longest):
            out = self.writer.step({"token": token, **state})
            out["logp"][:, banned] = -np.inf
            token = out["logp"].argmax(1)
            written.append(np.where(ended, EOS, token))
            ended |= token == EOS
            if ended.all():
                break
            state |= {name: out[f"{name}_out"] for name in self.writer.changing}
        return [until_eos(row) for row in np.stack(written, 1).tolist()]
