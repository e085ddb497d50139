"""Weft on one GPU beside what a user would write himself; a JSON line per result.

    python benchmarks/gpu_aims.py               records everything, and compares it with the aims
    python benchmarks/gpu.py SECTION ...        train rnn search lm layers cells mixers profile
    WEFT_BENCH_DEVICE=cpu python benchmarks/gpu.py SECTION ...      a dry run with tiny sizes

train     an update of a Transformer translator, with and without training.cuda_graphs, beside the model in
          a plain loop, transformers (eager, compiled) and x-transformers
rnn       attention with input feeding, beside a tutorial's loop over an LSTMCell
search    greedy and beam 5, beside transformers' generate
lm        GPT-2 small, beside transformers, eager and compiled
layers    LSTM, GRU and RNN beside torch.nn's
cells     every cell, as a multiple of cuDNN's LSTM of the same size
mixers    cells with a matrix state beside flash-linear-attention's layers
profile   kernels of one update, and how long the card is busy with them

A line is repeated with every further figure; the last one counts. What an aim needs comes first.
Each figure is the median of 5 to 20 runs after a warm-up; updates are timed five at a time, as a training
takes them without waiting. Each section is run in a process of its own, with a time limit. Peers that are not
installed are named. Read next: gpu_aims.py; ../docs/guides/gpu.md.
"""

import importlib
import inspect
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import weft.nn as layers_of_weft
from peers.engine import Sizes
from weft.masks import to_device
from weft.models import Generator
from weft.nn import devices
from weft.nn.cells.cell import Cell
from weft.nn.decoders.recurrent import RecurrentDecoder
from weft.nn.decoders.transformer import TransformerDecoder
from weft.nn.devices import compile_regions
from weft.nn.embed.tokens import Tokens
from weft.nn.encoders.recurrent import RecurrentEncoder
from weft.nn.encoders.transformer import TransformerEncoder
from weft.nn.heads.categorical import Categorical
from weft.nn.recurrent import Stack
from weft.nn.scores import Additive
from weft.search.beam import beam_search
from weft.search.greedy import greedy_search
from weft.tasks.seq2seq.batch_search import rounded
from weft.tasks.seq2seq.encoding import PairBatch, collate_pairs
from weft.train.captured import CapturedUpdates
from weft.train.objectives.likelihood import OwnLoss
from weft.train.optimisers import AdamW
from weft.train.position import BatchGroup, Position
from weft.train.settings import TrainingSettings
from weft.train.update import Updates

DEVICE = torch.device(os.environ.get("WEFT_BENCH_DEVICE", "cuda"))
DRY = DEVICE.type == "cpu"
SIZES = {
    "tiny": {"size": 128, "num_layers": 4, "num_heads": 4, "inner": 512},
    "base": {"size": 512, "num_layers": 6, "num_heads": 8, "inner": 2048},
}
VOCABULARY = 8000
LENGTH = 27
"""Tokens of the longest sentence of a batch; the others have at least half as many."""
CELLS = (
    "lstm gru elman peephole coupled sru ssru mingru minlstm orthogonal lru s4d rglru mamba slstm mlstm gla "
    "hgrn2 retention ssd delta gated_delta rwkv7"
)
BEGUN = time.time()


def main() -> None:
    for name in sys.argv[1:]:
        attempt(name, globals()[name])


def say(**found: Any) -> None:
    print(json.dumps({"t": round(time.time() - BEGUN), **found}), flush=True)


def attempt(name: str, run: Callable[[], Any]) -> Any:
    """Run something; an error is a result too."""
    try:
        return run()
    except Exception as error:  # noqa: BLE001  a peer may raise anything
        say(fail=name, error=f"{type(error).__name__}: {str(error)[:200]}")
        return None
    finally:
        if DEVICE.type == "cuda":
            torch.cuda.empty_cache()


def milliseconds(run: Callable[[], Any], times: int = 10, warm: int = 3, block: int = 1) -> float:
    """The median time of a call, in milliseconds, of so many between two waits for the GPU."""
    times, warm, block = (1, 1, 1) if DRY else (times, warm, block)
    for _ in range(warm):
        run()
    found = []
    for _ in range(times):
        synchronise()
        begun = time.perf_counter()
        for _ in range(block):
            run()
        synchronise()
        found.append(1e3 * (time.perf_counter() - begun) / block)
    return round(statistics.median(found), 3)


def synchronise() -> None:
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()


def recorded(run: Callable[[], Any]) -> Callable[[], Any]:
    """A call as a CUDA graph; the call itself on a CPU."""
    if DRY:
        return run
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(stream)
    with torch.cuda.graph(graph, stream=stream):
        run()
    return graph.replay


def half(on: bool = True) -> AbstractContextManager[Any]:
    return torch.autocast(DEVICE.type, torch.bfloat16, enabled=on)


def pairs(tokens: int, seed: int = 0) -> PairBatch:
    """A batch of random pairs with about so many target tokens, on the CPU, as a collated batch is."""
    chance = np.random.default_rng(seed)
    lengths = chance.integers(LENGTH // 2, LENGTH + 1, size=max(2, tokens // LENGTH))
    lengths[0] = LENGTH
    rows = [chance.integers(4, VOCABULARY, length) for length in lengths]
    return collate_pairs(rows, [row[::-1].copy() for row in rows])


def tokens_of(batches: list[PairBatch]) -> float:
    return sum(batch.target_tokens for batch in batches) / len(batches)


def transformer(name: str) -> Generator:
    sizes, width = SIZES[name], SIZES[name]["size"]
    embed = Tokens(VOCABULARY, width)
    encoder = TransformerEncoder(width, **sizes, dropout=0.1)
    decoder = TransformerDecoder(width, encoder, **sizes, dropout=0.1)
    head = Categorical(decoder.size, VOCABULARY, smoothing=0.1, tied=embed.table)
    return Generator(embed, decoder, head, encoder=encoder).to(DEVICE)


def recurrent(width: int) -> Generator:
    embed = Tokens(VOCABULARY, width)
    encoder = RecurrentEncoder(width, sizes=(width // 2,), bidirectional=True)
    decoder = RecurrentDecoder(
        width, encoder, sizes=(width,), score=Additive, enters="late", input_feeding=True, dropout=0.1
    )
    head = Categorical(decoder.size, VOCABULARY, smoothing=0.1, tied=embed.table)
    return Generator(embed, decoder, head, encoder=encoder).to(DEVICE)


class Batches:
    """Training data for `update`: the batch whose number is asked for."""

    streams = False

    def __init__(self, batches: list[Any]) -> None:
        self.batches = batches

    def collate(self, numbers: np.ndarray) -> Any:
        return self.batches[int(numbers[0]) % len(self.batches)]


def weft_update(
    model: nn.Module, batches: list[Any], *, graphs: bool, compiled: bool = False
) -> Callable[[], None]:
    """One whole update of Weft, as its training loop takes it."""
    devices.with_settings(DEVICE)
    if compiled:
        compile_regions(model)
    settings = TrainingSettings(
        optimiser=AdamW(lr=1e-3), precision="bfloat16", device=str(DEVICE), max_updates=1, cuda_graphs=graphs
    )
    training: Any = Batches(batches)
    optimiser = settings.optimiser.build(model.train())
    updates, position = Updates(training, OwnLoss(model), optimiser, settings), Position()

    def plain() -> None:
        nonlocal position
        rows = np.full(len(batches[0].target_in), position.update)
        group = BatchGroup(0, position.update, [rows], 1, 1, 0)
        updates.take(group, position, 1.0)
        position = replace(position, update=position.update + 1)

    if not graphs:
        return plain
    plain()  # makes the optimiser's state
    captured = CapturedUpdates(training, OwnLoss(model), optimiser, settings, DEVICE)

    def launch() -> None:
        nonlocal position
        rows = np.full(len(batches[0].target_in), position.update)
        captured.launch(BatchGroup(0, position.update, [rows], 1, 1, 0), position, 1.0)
        position = replace(position, update=position.update + 1)
        if len(captured.pending) == 50:
            captured.read()
            captured.pending.clear()

    for _ in batches:
        launch()
    return launch


def plain_loop(model: nn.Module, losses: list[Callable[[], Tensor]]) -> Callable[[], None]:
    """The loop that a tutorial has."""
    optimiser = torch.optim.AdamW(model.train().parameters(), lr=1e-3, fused=True)
    at = 0

    def step() -> None:
        nonlocal at
        with half():
            loss = losses[at % len(losses)]()
        at += 1
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)

    return step


def train() -> None:
    jobs = [("tiny", 300)] if DRY else [("tiny", 2000), ("tiny", 16000), ("base", 32000), ("base", 4000)]
    for size, tokens in jobs:
        batches = [pairs(tokens, seed) for seed in range(4)]
        there = [batch.to(DEVICE) for batch in batches]
        speed: dict[str, int] = {}

        def weft_plain() -> Callable[[], None]:
            model = transformer(size)

            def loss(batch: PairBatch) -> Tensor:
                found = model.loss(batch)
                return found.total / found.count

            return plain_loop(model, [lambda batch=batch: loss(batch) for batch in there])

        ways = {
            "weft": lambda: weft_update(transformer(size), batches, graphs=False),
            "weft_graphs": lambda: weft_update(transformer(size), batches, graphs=True),
            "weft_plain_loop": weft_plain,
            "transformers": lambda: marian_loop(size, there, compiled=False),
            "x_transformers": lambda: x_transformers_loop(size, there),
        }
        if (size, tokens) == ("base", 32000):
            ways["weft_graphs_compiled"] = lambda: weft_update(
                transformer(size), batches, graphs=True, compiled=True
            )
            ways["transformers_compiled"] = lambda: marian_loop("base", there[:1], compiled=True)
        for name, make in ways.items():
            time_of = attempt(f"train {name}", lambda: milliseconds(make(), 5, 8, 5))
            if time_of:
                speed[name] = round(1e3 * tokens_of(batches) / time_of)
            target = tokens_of(batches)
            say(section="train", size=size, tokens=tokens, target_tokens=target, tokens_per_s=speed)


def sizes_of(size: str) -> Sizes:
    """The same for the peers."""
    one = SIZES[size]
    layers, heads = one["num_layers"], one["num_heads"]
    return Sizes(VOCABULARY, "transformer", layers, width=one["size"], inner=one["inner"], heads=heads)


def marian(size: str) -> nn.Module:
    from peers.transformers import marian as build

    return build(sizes_of(size)).to(DEVICE)


def marian_loop(size: str, batches: list[PairBatch], *, compiled: bool) -> Callable[[], None]:
    model = marian(size)

    def loss(batch: PairBatch) -> Tensor:
        logits = model(
            input_ids=batch.source,
            attention_mask=batch.source_mask.long(),
            decoder_input_ids=batch.target_in,
            use_cache=False,
        ).logits
        target = batch.target_out.flatten()
        return F.cross_entropy(logits.flatten(0, 1).float(), target, ignore_index=0, label_smoothing=0.1)

    taken = torch.compile(loss, dynamic=False) if compiled else loss
    return plain_loop(model, [lambda batch=batch: taken(batch) for batch in batches])


def x_transformers_loop(size: str, batches: list[PairBatch]) -> Callable[[], None]:
    from peers.xtransformers import x_transformer

    model = x_transformer(sizes_of(size), flash=True).to(DEVICE)

    def loss(batch: PairBatch) -> Tensor:
        target = torch.cat([batch.target_in[:, :1], batch.target_out], 1)
        return model(batch.source, target, mask=batch.source_mask)

    return plain_loop(model, [lambda batch=batch: loss(batch) for batch in batches])


class Tutorial(nn.Module):
    """A tutorial's translator: an LSTM that reads, an LSTMCell with additive attention and input feeding."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, width)
        self.encoder = nn.LSTM(width, width // 2, bidirectional=True, batch_first=True)
        self.cell = nn.LSTMCell(2 * width, width)
        self.key, self.query = nn.Linear(width, width), nn.Linear(width, width)
        self.energy = nn.Linear(width, 1, bias=False)
        self.output, self.dropout = nn.Linear(2 * width, width), nn.Dropout(0.1)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        states, _ = self.encoder(self.embed(source))
        keys, padding, x = self.key(states), (source == 0)[..., None], self.embed(target)
        context = states.new_zeros(len(source), states.shape[2])
        h = c = context
        outputs = []
        for t in range(x.shape[1]):
            h, c = self.cell(torch.cat([x[:, t], context], 1), (h, c))
            energies = self.energy(torch.tanh(keys + self.query(h)[:, None])).masked_fill(padding, -1e4)
            read = (energies.softmax(1) * states).sum(1)
            context = torch.tanh(self.output(torch.cat([h, read], 1))).to(states.dtype)
            outputs.append(context)
        return self.dropout(torch.stack(outputs, 1)) @ self.embed.weight.T


def rnn() -> None:
    for width, tokens in [(64, 300)] if DRY else [(512, 8000), (256, 2000), (1024, 16000)]:
        batches = [pairs(tokens, seed) for seed in range(3)]

        def tutorial() -> Callable[[], None]:
            model = Tutorial(width).to(DEVICE)

            def loss(batch: PairBatch) -> Tensor:
                logits = model(batch.source, batch.target_in).flatten(0, 1).float()
                return F.cross_entropy(
                    logits, batch.target_out.flatten(), ignore_index=0, label_smoothing=0.1
                )

            there = [batch.to(DEVICE) for batch in batches]
            return plain_loop(model, [lambda batch=batch: loss(batch) for batch in there])

        ways = {
            "weft": lambda: weft_update(recurrent(width), batches, graphs=False),
            "weft_graphs": lambda: weft_update(recurrent(width), batches, graphs=True),
            "tutorial": tutorial,
        }
        speed = {}
        for name, make in ways.items():
            time_of = attempt(f"rnn {name}", lambda: milliseconds(make(), 5, 6, 5))
            if time_of:
                speed[name] = round(1e3 * tokens_of(batches) / time_of)
            say(section="rnn", width=width, tokens=tokens, tokens_per_s=speed)


@torch.inference_mode()
def search() -> None:
    for size, rows in [("tiny", 4)] if DRY else [("base", 64), ("base", 1), ("tiny", 32), ("base", 256)]:
        batch = pairs(rows * LENGTH).to(DEVICE)
        source, mask = batch.source[:rows], batch.source_mask[:rows]
        speed: dict[str, float] = {}

        def count(name: str, run: Callable[[], Any]) -> None:
            time_of = attempt(f"search {name}", lambda: milliseconds(run, 5, 2))
            if time_of:
                speed[name] = round(1e3 * rows / time_of, 1)
            say(section="search", size=size, rows=rows, length=LENGTH, sentences_per_s=speed)

        ours = transformer(size).eval()
        first = torch.full((rows,), 2, device=DEVICE)
        for wanted in (False, True):
            model = rounded(ours, "bfloat16") if wanted else ours

            def run(width: int) -> Any:
                state = model.start(source, mask)
                kept: dict[str, Any] = {"eos": 3, "max_length": LENGTH, "banned": (3,), "recorded": True}
                if width == 1:
                    return greedy_search(model.step, state, first, **kept)
                return beam_search(model.step, state, first, width=width, **kept)

            for width in (1, 5):
                count(f"weft_{'bfloat16' if wanted else 'float32'}_{width}", lambda: run(width))
        theirs = attempt("search transformers", lambda: marian(size).eval())
        for wanted in (False, True) if theirs is not None else ():
            theirs = theirs.to(torch.bfloat16) if wanted else theirs
            for width in (1, 5):
                count(
                    f"transformers_{'bfloat16' if wanted else 'float32'}_{width}",
                    lambda: theirs.generate(
                        input_ids=source,
                        attention_mask=mask.long(),
                        num_beams=width,
                        do_sample=False,
                        min_new_tokens=LENGTH,
                        max_new_tokens=LENGTH,
                    ),
                )


class Pieces(NamedTuple):
    """Pieces of a text for a language model, all of one length."""

    source: Tensor
    source_mask: Tensor
    target_in: Tensor
    target_out: Tensor
    target_mask: Tensor
    target_tokens: int

    def to(self, device: torch.device) -> "Pieces":
        return to_device(self, device)


def lm() -> None:
    rows, steps, width, depth, heads, words = (
        (2, 32, 64, 2, 2, 1000) if DRY else (16, 1024, 768, 12, 12, 50304)
    )
    x = torch.randint(4, words, (rows, steps + 1))
    full = torch.ones(rows, steps, dtype=torch.bool)
    batch = Pieces(x[:, :1], full[:, :1], x[:, :-1], x[:, 1:], full, rows * steps)
    speed: dict[str, int] = {}

    def ours(graphs: bool, compiled: bool = False) -> Callable[[], None]:
        embed = Tokens(words, width)
        decoder = TransformerDecoder(
            width, None, size=width, num_layers=depth, num_heads=heads, inner=4 * width, dropout=0.0
        )
        model = Generator(embed, decoder, Categorical(decoder.size, words, tied=embed.table)).to(DEVICE)
        return weft_update(model, [batch], graphs=graphs, compiled=compiled)

    def theirs(compiled: bool) -> Callable[[], None]:
        from transformers import GPT2Config, GPT2LMHeadModel

        config = GPT2Config(
            vocab_size=words,
            n_positions=steps,
            n_embd=width,
            n_layer=depth,
            n_head=heads,
            resid_pdrop=0,
            embd_pdrop=0,
            attn_pdrop=0,
        )
        model = GPT2LMHeadModel(config).to(DEVICE)
        given, wanted = x[:, :-1].to(DEVICE), x[:, 1:].to(DEVICE).flatten()

        def loss() -> Tensor:
            return F.cross_entropy(model(given, use_cache=False).logits.float().flatten(0, 1), wanted)

        return plain_loop(model, [torch.compile(loss) if compiled else loss])

    ways = {
        "weft": lambda: ours(False),
        "weft_graphs": lambda: ours(True),
        "transformers": lambda: theirs(False),
    }
    if not DRY:
        ways |= {
            "weft_graphs_compiled": lambda: ours(True, compiled=True),
            "transformers_compiled": lambda: theirs(True),
        }
    weights = depth * 12 * width**2 + words * width
    for name, make in ways.items():
        time_of = attempt(f"lm {name}", lambda: milliseconds(make(), 4, 5, 3))
        if time_of:
            speed[name] = round(1e3 * rows * steps / time_of)
        flops = {name: round(6 * weights * found / 1e12, 1) for name, found in speed.items()}
        say(section="lm", shape=[rows, steps, width, depth], tokens_per_s=speed, model_teraflops_per_s=flops)


def cell_of(name: str) -> type[Cell]:
    module = importlib.import_module(f"weft.nn.cells.{name}")
    return next(
        one
        for one in vars(module).values()
        if inspect.isclass(one) and issubclass(one, Cell) and one.__module__ == module.__name__
    )


def layers() -> None:
    shapes = [(20, 4, 32, 1)] if DRY else [(50, 64, 512, 1), (100, 128, 1024, 2), (1000, 32, 256, 1)]
    for kind in ("LSTM", "GRU", "RNN"):
        for steps, rows, width, depth in shapes:
            x = torch.randn(steps, rows, width, device=DEVICE)
            for wanted in (False, True):
                found = {}
                for name, library in (("torch", nn), ("weft", layers_of_weft)):
                    model = getattr(library, kind)(width, width, depth).to(DEVICE)
                    found[name] = milliseconds(lambda: there_and_back(model, x, wanted))
                say(section="layers", kind=kind, shape=[steps, rows, width, depth], bfloat16=wanted, **found)


def there_and_back(model: nn.Module, x: Tensor, bfloat16: bool, *state: Any) -> None:
    with half(bfloat16):
        y = model(x, *state)
    y = y[0] if isinstance(y, tuple) else y
    y.float().sum().backward()
    model.zero_grad(set_to_none=True)


def cells() -> None:
    steps, rows, width = (20, 4, 32) if DRY else (100, 64, 512)
    x = torch.randn(rows, steps, width, device=DEVICE)
    cudnn = nn.LSTM(width, width, batch_first=True).to(DEVICE)
    base = milliseconds(lambda: there_and_back(cudnn, x, False))
    for name in CELLS.split():

        def one() -> None:
            model = Stack(width, (width,), cell=cell_of(name)).to(DEVICE)
            run = partial(there_and_back, model, x, False)
            found = {"eager": milliseconds(run, 5, 2)}
            replayed = attempt(f"cell {name} as a graph", lambda: milliseconds(recorded(run), 5, 2))
            found |= {"graph": replayed} if replayed else {}
            times = round(min(found.values()) / base, 2)
            say(section="cells", cell=name, ms=found, cudnn_lstm=base, times_lstm=times)

        attempt(f"cell {name}", one)


def mixers() -> None:
    rows, steps, width, heads = (2, 64, 64, 2) if DRY else (8, 2048, 1024, 8)
    x = torch.randn(rows, steps, width, device=DEVICE)
    theirs = attempt("flash-linear-attention", lambda: importlib.import_module("fla.layers"))
    known = {
        "gla": "GatedLinearAttention",
        "gated_delta": "GatedDeltaNet",
        "retention": "MultiScaleRetention",
    }
    for name in (
        "gla",
        "gated_delta",
        "retention",
        "delta",
        "rwkv7",
        "hgrn2",
        "ssd",
        "mlstm",
        "mamba",
        "rglru",
    ):

        def one() -> None:
            kind = cell_of(name)
            headed = "num_heads" in inspect.signature(kind.__init__).parameters
            model = kind(width, width, **({"num_heads": heads} if headed else {})).to(DEVICE)
            run = partial(there_and_back, model, x, True, model.start(x[:, 0]))
            found = {"weft": milliseconds(run, 5, 2)}
            replayed = attempt(f"mixer {name} as a graph", lambda: milliseconds(recorded(run), 5, 2))
            found |= {"weft_graph": replayed} if replayed else {}
            say(section="mixers", cell=name, shape=[rows, steps, width], **found)
            if theirs is None or name not in known:
                return

            def peer() -> float:
                layer = getattr(theirs, known[name])(hidden_size=width, num_heads=heads)
                layer = layer.to(DEVICE, torch.bfloat16)
                return milliseconds(lambda: there_and_back(layer, x.bfloat16(), False), 5, 3)

            if (time_of := attempt(f"mixer {name} of flash-linear-attention", peer)) is not None:
                say(section="mixers", cell=name, shape=[rows, steps, width], **found, fla=time_of)

        attempt(f"mixer {name}", one)


def profile() -> None:
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as profiled

    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if DEVICE.type == "cuda" else [])]
    jobs: list[tuple[str, Callable[[], Generator], int]] = [
        ("transformer tiny", lambda: transformer("tiny"), 300 if DRY else 2000),
        ("transformer base", lambda: transformer("base"), 300 if DRY else 16000),
        ("rnn 512", lambda: recurrent(64 if DRY else 512), 300 if DRY else 8000),
    ]
    for name, make, tokens in jobs[: 1 if DRY else 3]:
        for graphs in (False, True):

            def one() -> None:
                step = weft_update(make(), [pairs(tokens)], graphs=graphs)
                per_update = milliseconds(step, 5, 5, 5)
                with profiled(activities=activities) as seen:
                    step()
                    synchronise()
                kernels = [event for event in seen.events() if str(event.device_type).endswith("CUDA")]
                busy = sum(event.device_time for event in kernels) / 1e3
                say(
                    section="profile",
                    model=name,
                    graphs=graphs,
                    ms_per_update=per_update,
                    kernels=len(kernels),
                    busy_ms=round(busy, 2),
                )

            attempt(f"profile {name}", one)


if __name__ == "__main__":
    main()
