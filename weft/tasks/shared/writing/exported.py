"""A model that writes a text for a text, as two graphs: `start` reads the source, `step` writes one token.

The state between the steps is the model's own, one tensor after the other; what a step does not change, such
as the keys of the source, it only takes. Read next: ../../exported.py.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from weft.errors import ConfigError, DataError
from weft.metrics.bleu import Bleu
from weft.models import Generator
from weft.nn.positions import most_positions
from weft.probe import probe
from weft.tasks.exported import Exported, Graph, Score
from weft.tasks.predictor import Json
from weft.tasks.shared.writing.decoding import Decoding
from weft.tasks.shared.writing.examples import examples
from weft.tasks.shared.writing.ready import PairReady
from weft.tasks.shared.writing.searching import looked
from weft.text.portable import portable
from weft.text.vocabulary import EOS, PAD, SOS, UNK, Vocabulary
from weft.tree import State, leaves, like, tree_map

SCORED = 500
"""Validation inputs that 8-bit weights are scored on."""

EXAMPLES = ((3, 7), (2, 11))
"""Rows and source tokens of the two examples of a graph."""


class Start(nn.Module):
    """The source and its mask to the tensors of the first state."""

    def __init__(self, model: Generator) -> None:
        super().__init__()
        self.model = model

    def forward(self, source: Tensor, mask: Tensor) -> tuple[Tensor, ...]:
        """[B, S] int64 and [B, S] bool to each tensor of the state."""
        return tuple(leaves(self.model.start(source, mask)))


class Step(nn.Module):
    """A token and the tensors of a state to log-probabilities and the tensors that changed.

    Args:
        model: the trained model.
        like: a state, for the structure.
        changes: for each tensor of the state, whether a step changes it.
        looks: whether the model has attention to the source, which is then an output too.
    """

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


def graphs(model: Generator, vocabulary: int) -> tuple[list[Graph], list[dict[str, Json]]]:
    """The two graphs, and for each tensor of the state its name and whether a step changes it.

    Args:
        model: in evaluation mode, on the CPU.
        vocabulary: number of source symbols.
    """
    inputs = [_source(rows, length, vocabulary) for rows, length in EXAMPLES]
    with torch.no_grad():
        states = [model.start(**each) for each in inputs]
    step, state = stepping(model, states)
    start = Graph("start", Start(model), (inputs[0], inputs[1]), [str(one["name"]) for one in state])
    return [start, step], state


def stepping(model: Generator, states: Sequence[State]) -> tuple[Graph, list[dict[str, Json]]]:
    """The graph of a step, and for each tensor of the state its name and whether a step changes it.

    Args:
        model: in evaluation mode, on the CPU.
        states: two states before the first step, of other sizes.
    """
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
    looks = _looks(model, later[0], examples[0])
    module = Step(model, later[0], changes, looks=looks)
    outputs = ["logp", *(["attention"] if looks else []), *(f"{name}_out" for name in changed)]
    graph = Graph("step", module, (inputs[0], inputs[1]), outputs)
    return graph, [{"name": name, "changes": name in changed} for name in names]


def _looks(model: Generator, state: State, token: Tensor) -> bool:
    """Whether a step looks at the source."""
    with torch.no_grad(), probe() as seen:
        model.step(token, state)
    return any(seen[name] for name in ("attention", "cross_attention"))


def exported(ready: PairReady, model: nn.Module) -> Exported:
    """See ../../exported.py and `rewriting`."""
    form = rewriting(model, ready.source, ready.target, ready.decoding, cut=ready.reading.cut)
    return form._replace(examples=lambda count: examples(ready, count), scored=lambda: _scored(ready))


def rewriting(
    model: nn.Module,
    source: Vocabulary,
    target: Vocabulary,
    decoding: Decoding,
    *,
    cut: int | None = None,
    symbols: int = 0,
    more: Mapping[str, Json] = {},
) -> Exported:
    """The graphs of a model that writes a text for a text, without examples.

    Args:
        model: in evaluation mode, on the CPU.
        source, target: the vocabularies.
        decoding: the recipe's search.
        cut: number of source tokens that are read; None for all.
        symbols: number of symbols after the vocabulary's, which are never written.
        more: further settings of the program.

    Raises:
        ConfigError: the model copies words of the source, or the program lacks the recipe's kind of search.
    """
    assert isinstance(model, Generator)
    if model.decoder.copies:
        raise ConfigError(
            "decoder: a pointer adds the source's words to its vocabulary, which a graph cannot; "
            "serve the run with weft serve"
        )
    size = len(source)
    found, state = graphs(model, size)
    settings: dict[str, Any] = {
        "kind": "rewrite",
        "sos": SOS,
        "eos": EOS,
        "banned": [PAD, UNK, SOS, *range(size, size + symbols)],
        "state": state,
        "cut": cut,
        "max_source": most_positions(model.encoder) if model.encoder is not None else None,
        "max_output": model.max_output(0),
        "prompted": model.encoder is None,
        "decoding": _decoding(decoding),
        "source": "tokenizer.json" if source is target else "tokenizer.source.json",
        "target": "tokenizer.json" if source is target else "tokenizer.target.json",
        **more,
    }
    files = {settings["source"]: portable(source), settings["target"]: portable(target)}
    return Exported(found, settings, files, lambda count: ())


def _scored(ready: PairReady) -> tuple[Sequence[str], Score | None]:
    """Validation sources, and BLEU of their translations."""
    try:
        pairs = ready.pairs("valid", None)
    except DataError:
        return examples(ready, SCORED), None
    full = [n for n, source in enumerate(pairs.sources) if source.strip()][:SCORED]
    references = [pairs.references[n] for n in full]
    return [pairs.sources[n] for n in full], lambda answers: ("BLEU", Bleu().score(answers, references).value)


def _decoding(decoding: Decoding) -> dict[str, Any]:
    unsupported: dict[str, Any] = {
        "coverage": 0.0,
        "diverse": 1,
        "prefix": "",
        "require": (),
        "no_repeat_ngram": 0,
        "min_length": 0,
    }
    for name, without in unsupported.items():
        if getattr(decoding, name) != without:
            raise ConfigError(
                f"decoding: {name}: the exported program has no such search; remove it from the recipe"
            )
    names = ("search", "beam", "length_penalty", "max_ratio", "max_extra", "normalisation")
    return {name: getattr(decoding, name) for name in names}


def _source(rows: int, length: int, vocabulary: int) -> dict[str, Tensor]:
    draw = torch.Generator().manual_seed(rows)
    source = torch.randint(EOS + 1, vocabulary, (rows, length), generator=draw)
    mask = torch.arange(length) < torch.arange(length, length - rows, -1)[:, None]
    return {"source": source.masked_fill(~mask, PAD), "mask": mask}
