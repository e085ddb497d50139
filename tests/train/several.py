"""A training of the toy task in one process of several: python -m tests.train.several RUN JSON."""

import json
import os
import signal
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import distributed, nn

from tests.train import toy
from tests.train.test_update import Broken
from tests.train.toy import quiet, settings
from weft import machine
from weft.models import Generator
from weft.nn.decoders.recurrent import RecurrentDecoder
from weft.nn.decoders.transformer import TransformerDecoder
from weft.nn.encoders.recurrent import RecurrentEncoder
from weft.nn.encoders.transformer import TransformerEncoder
from weft.tasks.evaluation import Validation
from weft.tasks.seq2seq.encoding import PairBatch, collate_pairs
from weft.tasks.seq2seq.sections import Embedding, PairModel
from weft.train.loop import train


class Pairs(toy.Task):
    """The toy's rows, to be written backwards, by a model of two layers on each side."""

    def __init__(self, kind: str, size: int, dropout: float, dtype: torch.dtype) -> None:
        super().__init__(size=size, dropout=dropout, dtype=dtype)
        self.kind = kind

    def model(self) -> nn.Module:
        sizes = {"size": 8, "num_heads": 2, "num_layers": 2, "dropout": self.dropout}
        parts = {
            "transformer": (partial(TransformerEncoder, **sizes), partial(TransformerDecoder, **sizes)),
            "recurrent": (
                partial(RecurrentEncoder, sizes=(7, 7), bidirectional=True, dropout=self.dropout),
                partial(RecurrentDecoder, sizes=(7,), dropout=self.dropout),
            ),
            "lookback": (
                partial(RecurrentEncoder, sizes=(7,)),
                partial(RecurrentDecoder, sizes=(7,), input_feeding=True, dropout=self.dropout),
            ),
        }[self.kind]
        embedding = Embedding(size=8, dropout=self.dropout)
        made = PairModel(encoder=parts[0], decoder=parts[1], embedding=embedding, smoothing=0.0)
        model: Generator = made.build(toy.WORDS, toy.WORDS, one_vocabulary=True)
        return model.to(self.dtype)

    def batch(self, numbers: np.ndarray) -> PairBatch:  # type: ignore[override]
        rows = [self.rows[n].tolist() for n in numbers]
        return collate_pairs(rows, [row[::-1] for row in rows])

    def validate(self, model: Generator) -> Validation:  # type: ignore[override]
        loss = model.loss(self.batch(np.arange(toy.ROWS))).mean.item()
        return Validation({"loss": loss, "score": -loss}, [])


def counted() -> dict[str, int]:
    """Bytes of what is handed to torch's collectives from now on: the whole that each of them makes."""
    sent: dict[str, int] = {}

    def watch(name: str, older: str) -> None:  # `older`: its name before torch 2.13
        called = name if hasattr(distributed, name) else older
        plain = getattr(distributed, called)

        def call(*arguments: Any, **named: Any) -> Any:
            tensors = [one for one in (*arguments, *named.values()) if isinstance(one, torch.Tensor)]
            sent[name] = sent.get(name, 0) + max(one.numel() * one.element_size() for one in tensors)
            return plain(*arguments, **named)

        setattr(distributed, called, call)

    watch("all_reduce", "all_reduce")
    watch("all_gather_single", "all_gather_into_tensor")
    watch("reduce_scatter_single", "reduce_scatter_tensor")
    return sent


class Written(toy.Notes):
    """What the first process says, in a file."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path

    def said(self, text: str) -> None:
        with open(self.path, "a") as file:
            file.write(f"{text}\n")


class Stumbling(toy.Task):
    """Its loss is infinite for the batch with row 14."""

    def model(self) -> nn.Module:
        torch.manual_seed(5)
        made = Broken(self.dropout).to(self.dtype)
        made.where = "loss"
        return made


def train_toy(run: Path, given: dict[str, Any]) -> None:
    """Train in this process, one of as many as its environment says."""
    run.mkdir(exist_ok=True, parents=True)
    torch.set_num_threads(1)
    asked = dict(given)
    dtype = torch.float64 if asked.pop("double") else torch.float32
    size, dropout, kind = asked.pop("size"), asked.pop("dropout"), asked.pop("model", "")
    dies, sent = asked.pop("dies", None), counted() if asked.pop("counted", False) else None
    if kind in ("", "stumbling"):
        toys = {"": toy.Task, "stumbling": Stumbling}
        task = toys[kind](size=size, dropout=dropout, dtype=dtype)
    else:
        task = Pairs(kind, size, dropout, dtype)
    mark = run / "died"
    if dies and int(os.environ["RANK"]) == dies["rank"] and not mark.exists():

        def die(batch: int) -> None:
            if batch == dies["batch"]:
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)

        task.on_batch = die
    outcome = train(task, run, settings(**asked), quiet(run, Written(run / "notes.txt")))
    if sent is not None and os.environ["RANK"] == "0":
        (run / "sent.json").write_text(json.dumps(sent))
    (run / "outcome.json").write_text(json.dumps([outcome.reason, outcome.update]))


if __name__ == "__main__":
    train_toy(Path(sys.argv[1]), json.loads(sys.argv[2]))
    machine.leave(0)
