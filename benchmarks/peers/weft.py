"""Weft itself: `Generator`, its own update (weft.train.update) and its own greedy and beam search.

The Transformer normalises before its sublayers, the RNN is OpenNMT-py's: additive attention read by the
new state, tanh(W [h; context]) fed into the next step and read by the tied output layer, dropout on that
alone. The hybrid has the Transformer's encoder, two SSRUs that write (Kim et al. 2019), and scaled attention.
"""

import json
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors.torch import load_model, save_model
from torch import Tensor

from peers.engine import (
    BETAS,
    CLIP_NORM,
    EOS,
    EXPORTED,
    PAD,
    PEAK_RATE,
    SMOOTHING,
    SOS,
    Batch,
    Engine,
    Sizes,
    learning_rate,
    token_name,
)
from weft import native
from weft.machine import keep_memory
from weft.models import Generator
from weft.native import jobs
from weft.nn.cells.ssru import SSRU
from weft.nn.decoders.recurrent import RecurrentDecoder
from weft.nn.decoders.transformer import TransformerDecoder
from weft.nn.embed.tokens import Tokens
from weft.nn.encoders.recurrent import RecurrentEncoder
from weft.nn.encoders.transformer import TransformerEncoder
from weft.nn.heads.categorical import Categorical
from weft.nn.kernels import choice
from weft.nn.scores import Additive, ScaledScore
from weft.search.beam import beam_search
from weft.search.greedy import greedy_search
from weft.search.hypotheses import to_lists
from weft.tasks.seq2seq.batch_search import rounded
from weft.tasks.seq2seq.graphs import EXAMPLES, graphs, tokens
from weft.train.objectives.likelihood import OwnLoss
from weft.train.optimisers import Adam
from weft.train.position import BatchGroup, Position
from weft.train.settings import TrainingSettings
from weft.train.update import Updates


class Pairs(NamedTuple):
    """A batch as weft.models.SequencePair wants it."""

    source: Tensor
    source_mask: Tensor
    target_in: Tensor
    target_out: Tensor
    target_mask: Tensor
    target_tokens: int

    def to(self, device: torch.device) -> "Pairs":
        return self


class OneBatch:
    """As much of a training as `Updates` asks for: the batch at hand."""

    streams = False

    def __init__(self, batch: Batch) -> None:
        self.batch = batch

    def collate(self, numbers: np.ndarray) -> Pairs:
        source, target = torch.from_numpy(self.batch.source), torch.from_numpy(self.batch.target)
        out = target[:, 1:]
        return Pairs(source, source != PAD, target[:, :-1], out, out != PAD, self.batch.target_tokens)


DTYPES = ("float32", "bfloat16", "int8", "torch")
WEIGHTS = "weft.safetensors"


class Weft(Engine):
    """weft.models.Generator."""

    def __init__(self, sizes: Sizes, dtype: str) -> None:
        if dtype not in DTYPES:
            raise ValueError(f"weft: expected a dtype of {', '.join(DTYPES)}, got {dtype}")
        missing = [source for source in jobs.CALLS if source != "tiles" and not native.loaded(source).library]
        if missing and dtype != "torch":
            raise ValueError(
                f"weft: compiled code is missing ({', '.join(missing)}: {native.loaded(missing[0]).reason}); "
                "type `python weft/native/build.py`, or measure Weft without it by --dtype torch"
            )
        self.forced = ExitStack()
        if dtype == "torch":
            self.forced.enter_context(choice.use(cells="torch", fused="torch"))
        self.trains = dtype != "int8"  # takes over the weights of float32
        keep_memory()  # as the command line settles it
        self.model = {"transformer": _transformer, "rnn": _rnn, "hybrid": _hybrid}[sizes.model](sizes)
        adam = Adam(lr=PEAK_RATE, betas=BETAS)
        self.settings = TrainingSettings(
            optimiser=adam,
            clip_norm=CLIP_NORM,
            precision="bfloat16" if dtype == "bfloat16" else "float32",
            device="cpu",
            max_updates=1,
        )
        self.sizes, self.dtype = sizes, dtype
        self.optimiser = self.settings.optimiser.build(self.model)
        self.updates = 0
        self.rounded = (-1, self.model)

    def about(self) -> str:
        compiled = "no compiled code" if self.dtype == "torch" else native.loaded("decoding").reason
        return f"Weft: {compiled}"

    def save(self, folder: Path) -> None:
        """The weights, and the graphs that `weft export --to onnx` makes of them."""
        save_model(self.model, str(folder / WEIGHTS))
        if self.sizes.model != "hybrid":
            export(self.model, self.sizes.vocabulary, folder)

    def load(self, folder: Path) -> None:
        load_model(self.model, folder / WEIGHTS)
        self.updates += 1  # other weights than those that were rounded

    def update(self, batch: Batch) -> float:
        self.model.train()
        group = BatchGroup(0, self.updates, [np.arange(len(batch.source))], 1, 1, 0)
        position = Position(update=self.updates)
        self.updates += 1
        factor = learning_rate(self.updates) / PEAK_RATE
        updates = Updates(OneBatch(batch), OwnLoss(self.model), self.optimiser, self.settings)
        taken = updates.take(group, position, factor)
        return taken.total / taken.count

    def search(
        self, source: np.ndarray, lengths: np.ndarray, width: int, shortest: int, longest: int
    ) -> list[list[int]]:
        if self.model.training:  # setting it for 160 modules takes an eighth of a small search in int8
            self.model.eval()
        model = self.model
        if self.dtype in ("bfloat16", "int8"):
            # Once, as `decoding.precision` does. Weights made in inference mode have no version, so compiled
            # code would pack them at every step.
            if self.rounded[0] != self.updates:
                self.rounded = (self.updates, rounded(model, self.dtype))
            model = self.rounded[1]
        with torch.inference_mode():
            return self.searched(model, source, width, shortest, longest)

    def searched(
        self, model: Generator, source: np.ndarray, width: int, shortest: int, longest: int
    ) -> list[list[int]]:
        ids = torch.from_numpy(source)
        forced = shortest == longest
        limits = {"eos": EOS, "max_length": longest, "banned": (EOS,) if forced else ()}
        state, first = model.start(ids, ids != PAD), torch.full((len(ids),), SOS)
        if width == 1:
            found = greedy_search(model.step, state, first, **limits)
        else:
            found = beam_search(model.step, state, first, width=width, **limits)
        return [row[0] for row in to_lists(found, EOS)]


def export(model: Generator, vocabulary: int, folder: Path) -> None:
    """Write the graphs of onnxruntime and the model of CTranslate2, where these are installed."""
    with suppress(ImportError):
        write_ctranslate2(model, vocabulary, folder / EXPORTED)
    try:
        from weft.export.graphs import write_graph
    except ImportError:
        return
    inputs = tokens(*EXAMPLES[0], vocabulary), tokens(*EXAMPLES[1], vocabulary)
    found, state = graphs(model.eval(), inputs)
    for graph in found:
        write_graph(graph, folder / f"{graph.name}.onnx")
    (folder / "weft.json").write_text(json.dumps({"state": state}))


def write_ctranslate2(model: Generator, vocabulary: int, folder: Path) -> None:
    """Write a Transformer as `weft export --to ctranslate2` does, with numbers as tokens."""
    from weft.export.formats.ctranslate2 import save
    from weft.export.network import TransformerNetwork

    if not isinstance(model.encoder, TransformerEncoder):
        return
    unused: Any = None
    network = TransformerNetwork(model, model.encoder, model.decoder, *[unused] * 6)
    names = [token_name(number) for number in range(vocabulary)]
    folder.mkdir(exist_ok=True)
    save(network, folder, names, names, quantization=None)


def _transformer(sizes: Sizes) -> Generator:
    embed = Tokens(sizes.vocabulary, sizes.width)
    own = {
        "size": sizes.width,
        "num_layers": sizes.layers,
        "num_heads": sizes.heads,
        "inner": sizes.inner,
        "dropout": sizes.dropout,
    }
    encoder = TransformerEncoder(sizes.width, **own)
    decoder = TransformerDecoder(sizes.width, encoder, **own)
    head = Categorical(decoder.size, sizes.vocabulary, smoothing=SMOOTHING, tied=embed.table)
    return Generator(embed, decoder, head, encoder=encoder)


def _hybrid(sizes: Sizes) -> Generator:
    embed = Tokens(sizes.vocabulary, sizes.width)
    encoder = TransformerEncoder(
        sizes.width,
        size=sizes.width,
        num_layers=sizes.layers,
        num_heads=sizes.heads,
        inner=sizes.inner,
        dropout=sizes.dropout,
    )
    decoder = RecurrentDecoder(
        sizes.width,
        encoder,
        sizes=(sizes.width,) * 2,
        cell=SSRU,
        score=ScaledScore,
        enters="late",
        dropout=sizes.dropout,
    )
    head = Categorical(decoder.size, sizes.vocabulary, smoothing=SMOOTHING, tied=embed.table)
    return Generator(embed, decoder, head, encoder=encoder)


def _rnn(sizes: Sizes) -> Generator:
    width = sizes.recurrent
    embed = Tokens(sizes.vocabulary, width)
    encoder = RecurrentEncoder(width, sizes=(width // 2,), bidirectional=True)
    decoder = RecurrentDecoder(
        width,
        encoder,
        sizes=(width,),
        score=Additive,
        enters="late",
        input_feeding=True,
        dropout=sizes.dropout,
    )
    head = Categorical(decoder.size, sizes.vocabulary, smoothing=SMOOTHING, tied=embed.table)
    return Generator(embed, decoder, head, encoder=encoder)
