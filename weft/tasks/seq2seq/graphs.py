"""A model that writes a text for a source, as two graphs: `start` reads the source, `step` writes one token.

The state between the steps is the model's own, one tensor after the other; what a step does not change, such
as the keys of the source, it only takes. Read next: ../export.py.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from weft import masks
from weft.models import Generator
from weft.nn.positions import most_positions
from weft.probe import probe
from weft.search.offered import Decoding, written
from weft.tasks.export import Graph, ModelExport
from weft.tasks.predictor import Json
from weft.tasks.seq2seq.batch_search import looked
from weft.tasks.seq2seq.sections import Keeps
from weft.tasks.seq2seq.translator import as_searched
from weft.text.kept import CODES, PORTABLE
from weft.text.loading import portable
from weft.text.vocabulary import EOS, PAD, SOS, UNK, Vocabulary
from weft.tree import State, leaves, like, tree_map

EXAMPLES = ((3, 7), (2, 11))
"""Rows and source tokens of the two examples of a graph."""

Inputs = Mapping[str, Tensor]
Read = Callable[..., tuple[Tensor, Tensor]]
"""Turns the inputs of `start` into the source and its mask."""


def as_given(source: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """The inputs are the source and its mask."""
    return source, mask


class StartGraph(nn.Module):
    """The inputs to the tensors of the first state."""

    def __init__(self, model: Generator, read: Read) -> None:
        super().__init__()
        self.model = model
        self.read = read

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        return tuple(leaves(self.state(*inputs)))

    def state(self, *inputs: Tensor) -> State:
        """The first state; its masks stay, also where a source has no padding."""
        with masks.kept():
            return self.model.start(*self.read(*inputs))


class StepGraph(nn.Module):
    """A token and the tensors of a state to log-probabilities, attention if it looks, and what changes."""

    def __init__(self, model: Generator, like: State, changes: list[bool], *, looks: bool) -> None:
        super().__init__()
        self.model = model
        self.like = like
        self.changes = changes
        self.looks = looks

    def forward(self, token: Tensor, *state: Tensor) -> tuple[Tensor, ...]:
        """[N] int64 and the state to [N, V], the attention [N, S] if any, and what changed."""
        if not self.looks:
            logp, new = self.model.step(token, like(self.like, state))
            attention = []
        else:
            with probe() as seen:
                logp, new = self.model.step(token, like(self.like, state))
            attention = [looked(seen).flatten(1)]
        changed = [leaf for leaf, changes in zip(leaves(new), self.changes, strict=True) if changes]
        return (logp, *attention, *changed)


def graphs(
    model: Generator, inputs: tuple[Inputs, Inputs], read: Read = as_given
) -> tuple[list[Graph], list[dict[str, Json]]]:
    """The two graphs, and for each tensor of the state its name and whether a step changes it."""
    start = StartGraph(model, read)
    with torch.no_grad():
        states = [start.state(*each.values()) for each in inputs]
    step, state = stepping(model, states)
    return [Graph("start", start, inputs, [str(one["name"]) for one in state]), step], state


def stepping(model: Generator, states: Sequence[State]) -> tuple[Graph, list[dict[str, Json]]]:
    """The graph of a step, and for each tensor of the state its name and whether a step changes it."""
    later, examples = [], []
    states = [tree_map(Tensor.contiguous, state) for state in states]
    with torch.no_grad():
        for steps, state in enumerate(states, 2):  # so that caches have entries, and other numbers of them
            token = torch.full((next(leaves(state)).shape[0],), EOS)
            for _ in range(steps):
                before, (_, state) = state, model.step(token, state)
            later.append(tree_map(Tensor.contiguous, state))
            examples.append(token)
    changes = [old is not new for old, new in zip(leaves(before), leaves(state), strict=True)]
    names = [f"state_{number}" for number in range(len(changes))]
    inputs = [
        {"token": token, **dict(zip(names, leaves(state), strict=True))}
        for token, state in zip(examples, later, strict=True)
    ]
    changed = [name for name, new in zip(names, changes, strict=True) if new]
    with torch.no_grad(), probe() as seen:
        model.step(examples[0], later[0])
    looks = any(seen[name] for name in ("attention", "cross_attention"))  # at the source
    module = StepGraph(model, later[0], changes, looks=looks)
    outputs = ["logp", *(["attention"] if looks else []), *(f"{name}_out" for name in changed)]
    graph = Graph("step", module, (inputs[0], inputs[1]), outputs)
    return graph, [{"name": name, "changes": name in changed} for name in names]


def export_rewriter(
    model: nn.Module,
    source: Vocabulary,
    target: Vocabulary,
    decoding: Decoding,
    *,
    cut: int | None = None,
    symbols: int = 0,
    keeps: Keeps = "nothing",
    more: Mapping[str, Json] = {},
) -> ModelExport:
    """The graphs of a model that writes a text for a text, without examples."""
    size, shared = len(source), source is target
    names = ["tokenizer.json"] * 2 if shared else ["tokenizer.source.json", "tokenizer.target.json"]
    form = export_generator(
        model,
        (tokens(*EXAMPLES[0], size), tokens(*EXAMPLES[1], size)),
        target,
        decoding,
        program="rewriting",
        banned=range(size, size + symbols),
        more={
            "kind": "rewrite",
            "cut": cut,
            "source": names[0],
            "target": names[1],
            "kept": PORTABLE if keeps != "nothing" else None,
            "codes": CODES,
            "keeps_parts": keeps == "parts",
            **more,
        },
    )
    files = {names[0]: portable(source), names[1]: portable(target)}
    return form._replace(files=files, shown=as_searched)


def export_generator(
    model: nn.Module,
    inputs: tuple[Inputs, Inputs],
    target: Vocabulary,
    decoding: Decoding,
    *,
    program: str,
    more: Mapping[str, Json],
    read: Read = as_given,
    banned: Sequence[int] = (),
) -> ModelExport:
    """The graphs of a model that writes a text for any source, without examples."""
    assert isinstance(model, Generator)
    found, state = graphs(model, inputs, read)
    most = None if model.encoder is None else most_positions(model.encoder)
    settings: dict[str, Any] = {
        "sos": SOS,
        "eos": EOS,
        "banned": [PAD, UNK, SOS, *banned],
        "state": state,
        "max_source": None if model.encoder is None or most is None else most * model.encoder.stride,
        "max_output": model.max_output(0),
        "prompted": model.encoder is None,
        "copies": model.decoder.copies,
        "decoding": written(decoding),
        "target": "tokenizer.json",
        **more,
    }
    files = {settings["target"]: portable(target)}
    options = {"beam": 1} if decoding.search == "sample" else {}
    return ModelExport(found, settings, files, lambda count: (), program=program, options=options)


def tokens(rows: int, length: int, vocabulary: int) -> Inputs:
    """Random tokens of a vocabulary of this size and their mask, as an example of a graph."""
    draw = torch.Generator().manual_seed(rows)
    source = torch.randint(EOS + 1, vocabulary, (rows, length), generator=draw)
    mask = torch.arange(length) < torch.arange(length, length - rows, -1)[:, None]
    return {"source": source.masked_fill(~mask, PAD), "mask": mask}
