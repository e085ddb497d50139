"""What OpenNMT-py and Eole share: Transformers with different names of their tensors, vocabularies, the run.

Norms come before their sublayers. Linear layers may lack biases; ours then start at zero.
Read next: opennmt.py and eole.py, which name the tensors; ../writing.py.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from weft.errors import CheckpointError, ConfigError
from weft.importing.checkpoint import Origins, TensorOrigin
from weft.importing.families.decoders import paired
from weft.importing.kits.kit import CheckpointHints, ToolkitTranslator, assembled, given_file
from weft.importing.kits.vocabularies import RunVocabulary, TokenList, special_of
from weft.importing.names import MappedPart, same, tables, tensor, zeros
from weft.importing.writing import RunParts
from weft.nn.norms import NormKind
from weft.nn.positions import Positions
from weft.nn.transformer import GATED, Activation

Change = Callable[[Tensor], Tensor]


class SideNames(NamedTuple):
    """Names of the tensors of one side."""

    layers: str  # before the number of a layer
    last_norm: str
    attention_norm: str  # in a layer
    network_norm: str
    look_norm: str  # of a decoder
    first: str  # of the network
    second: str
    gated: str  # the second linear map of gated activations


class SideSettings(NamedTuple):
    """The settings of one side."""

    num_heads: int  # of queries
    norm_kind: NormKind
    norm_epsilon: float
    activation: Activation
    positions: Positions
    dropout: float
    attention_dropout: float
    rotary: int = 0  # features of a head that are rotated; 0 for all
    base: float = 10000.0  # of rotary positions
    interleaved: bool = True  # whether neighbouring features are rotated together, not halves of a head
    max_length: int = 1024  # of learned positions


class TransformerSide:
    """An encoder or a decoder while it is mapped."""

    def __init__(
        self, tensors: Mapping[str, Tensor], side: str, names: SideNames, form: SideSettings, place: str
    ) -> None:
        self.tensors, self.side, self.names, self.form, self.place = tensors, side, names, form, place
        first = f"{names.layers}.0."
        self.size = self.shape(f"{first}self_attn.linear_query.weight", 1)
        self.width = self.divided(f"{first}self_attn.linear_query.weight", form.num_heads)
        self.shared = self.divided(f"{first}self_attn.linear_keys.weight", self.width)
        self.inner = self.shape(f"{first}{names.first}.weight", 0)
        biased = (name for name in tensors if name.startswith(f"{names.layers}."))
        self.bias = any(name.endswith(".bias") for name in biased)
        numbers = {name.removeprefix(f"{names.layers}.").split(".")[0] for name in tensors}
        self.num_layers = sum(number.isdecimal() for number in numbers)

    def shape(self, name: str, axis: int) -> int:
        """A size of a matrix."""
        found = self.tensors.get(name)
        if found is None or found.dim() != 2:
            raise CheckpointError(f"{self.place}: expected a matrix {name}, got none; fetch it again")
        return found.shape[axis]

    def divided(self, name: str, count: int) -> int:
        """The rows of a matrix over a count."""
        rows = self.shape(name, 0)
        if count < 1 or rows % count:
            raise CheckpointError(
                f"{self.place}: {name} has {rows} rows, which {count} do not divide; "
                "do these settings belong to it?"
            )
        return rows // count

    def mapped(self) -> MappedPart:
        """The recipe's settings, and the source of each tensor."""
        names, form = self.names, self.form
        origins = self.norm(f"{self.side}.last_norm", names.last_norm)
        for layer in range(self.num_layers):
            ours, theirs = f"{self.side}.blocks.{layer}", f"{names.layers}.{layer}"
            gated = (names.gated,) if form.activation in GATED else ()
            origins |= {
                **self.norm(f"{ours}.attention_norm", f"{theirs}.{names.attention_norm}"),
                **self.heads(f"{ours}.attention", f"{theirs}.self_attn"),
                **self.norm(f"{ours}.network_norm", f"{theirs}.{names.network_norm}"),
                **self.linear(
                    f"{ours}.network.first", *(f"{theirs}.{name}" for name in (names.first, *gated))
                ),
                **self.linear(f"{ours}.network.second", f"{theirs}.{names.second}"),
            }
            if self.side == "decoder":
                origins |= self.norm(f"{ours}.look_norm", f"{theirs}.{names.look_norm}")
                origins |= self.cross(f"{ours}.look", f"{theirs}.context_attn")
        return self.recipe(), origins

    def recipe(self) -> dict[str, Any]:
        """The settings as in a recipe."""
        form = self.form
        heads: dict[str, int] = {}
        if self.shared != form.num_heads:
            heads["key_value"] = self.shared
        if self.width * form.num_heads != self.size:
            heads["size"] = self.width
        if form.positions == "rotary" and form.rotary not in (0, self.width):
            heads["rotary"] = form.rotary
        rotary = {"position_base": form.base} if form.positions == "rotary" else {}
        learned = {"max_length": form.max_length} if form.positions == "learned" else {}
        return {
            "use": "transformer",
            "size": self.size,
            "num_layers": self.num_layers,
            "num_heads": form.num_heads,
            "inner": self.inner,
            "norm": "before",
            "norm_kind": form.norm_kind,
            "norm_epsilon": form.norm_epsilon,
            "activation": form.activation,
            "bias": self.bias,
            "positions": form.positions,
            **rotary,
            **learned,
            "dropout": form.dropout,
            "attention_dropout": form.attention_dropout,
        } | ({"heads": heads} if heads else {})

    def norm(self, ours: str, theirs: str) -> Origins:
        """A norm; RMSNorm has no bias."""
        found = tensor(f"{ours}.weight", f"{theirs}.weight")
        if self.form.norm_kind == "layer" and self.bias:
            found |= tensor(f"{ours}.bias", f"{theirs}.bias")
        return found

    def linear(self, ours: str, *theirs: str, change: tuple[Change, ...] = ()) -> Origins:
        """Linear layers, one above the other; `change` reorders or repeats the rows of each."""
        changes = change or (same,) * len(theirs)
        weights = tuple(f"{name}.weight" for name in theirs)
        found = {f"{ours}.weight": TensorOrigin(weights, _joined(changes))}
        if not self.bias:
            return found
        parts = []
        for name, make in zip(theirs, changes, strict=True):
            there = f"{name}.bias" in self.tensors
            rows = 0 if there else len(make(self.tensors.get(f"{name}.weight", torch.empty(0))))
            parts.append((f"{name}.bias" if there else "", make, rows))

        def biases(*there: Tensor) -> Tensor:
            rest = iter(there)
            return torch.cat([make(next(rest)) if name else torch.zeros(rows) for name, make, rows in parts])

        return found | {f"{ours}.bias": TensorOrigin(tuple(name for name, _, _ in parts if name), biases)}

    def heads(self, ours: str, theirs: str) -> Origins:
        """Self-attention, whose queries and keys may be rotated."""
        turn: list[Change] = [same, same]
        if self.form.positions == "rotary" and not self.form.interleaved:
            rotated = self.form.rotary or self.width
            turn = [paired(count, rotated) for count in (self.form.num_heads, self.shared)]
        return {
            **self.linear(f"{ours}.query", f"{theirs}.linear_query", change=(turn[0],)),
            **self.linear(f"{ours}.key_value", *_key_value(theirs), change=(turn[1], same)),
            **self.linear(f"{ours}.out", f"{theirs}.final_linear"),
        }

    def cross(self, ours: str, theirs: str) -> Origins:
        """Cross-attention; ours has keys and values for each head, so that shared ones are repeated."""
        times = self.form.num_heads // self.shared

        def repeated(rows: Tensor) -> Tensor:
            return rows.unflatten(0, (self.shared, -1)).repeat_interleave(times, 0).flatten(0, 1)

        change = (repeated if times > 1 else same,) * 2
        return {
            **self.linear(f"{ours}.query", f"{theirs}.linear_query"),
            **self.linear(f"{ours}.key_value", *_key_value(theirs), change=change),
            **self.linear(f"{ours}.out", f"{theirs}.final_linear"),
        }


def _key_value(theirs: str) -> tuple[str, str]:
    return f"{theirs}.linear_keys", f"{theirs}.linear_values"


def _joined(changes: tuple[Change, ...]) -> Callable[..., Tensor]:
    def join(*parts: Tensor) -> Tensor:
        return torch.cat([change(part) for change, part in zip(changes, parts, strict=True)])

    return join


DECODING = {"search": "beam", "beam": 5, "length_penalty": 1.0, "max_ratio": 1.25, "max_extra": 5}
"""The search of onmt_translate and `eole predict` without options."""

COMPUTED = (".pe.pe",)  # tables that the model computes
JOINER = "\uffed"
HEAD, BIAS = "generator.weight", "generator.bias"


def run_of(
    given: CheckpointHints,
    tokens: Sequence[list[str]],
    symbols: Sequence[str],
    translator: ToolkitTranslator,
) -> RunParts:
    """The parts of a run."""
    if given.vocabulary:
        raise ConfigError(f"{given.path}: already contains its vocabularies; leave out --vocabulary")
    found = [_vocabulary(given, tokens[one], symbols, translator.place, one) for one in (0, 1)]
    return assembled(given, translator, found)


def translator_tables(
    tensors: Mapping[str, Tensor], source: str, target: str, place: str, *, tied: bool
) -> Origins:
    """The sources of the embedding tables and of the output layer; shared tables may be there once."""
    source, target = _first(tensors, source, target), _first(tensors, target, source)
    both = [tensors.get(name) for name in (target, HEAD)]
    if tied and both[0] is not None and both[1] is not None and not torch.equal(both[0], both[1]):
        raise CheckpointError(
            f"{place}: share_decoder_embeddings is set, but {target} and {HEAD} differ; "
            "do these settings belong to it?"
        )
    head = _first(tensors, HEAD, target) if tied else HEAD
    rows = tensors.get(head, torch.empty(0))
    return {
        **tables(source, target, head),
        **(tensor("head.bias", BIAS) if BIAS in tensors else zeros("head.bias", len(rows))),
    }


def width(tensors: Mapping[str, Tensor], *names: str) -> int:
    """Features of the first of these tables; 0 if there is none."""
    return next((tensors[name].shape[-1] for name in names if name in tensors), 0)


def _first(tensors: Mapping[str, Tensor], *names: str) -> str:
    return next((name for name in names if name in tensors), names[0])


def _vocabulary(
    given: CheckpointHints, tokens: list[str], symbols: Sequence[str], place: str, one: int
) -> RunVocabulary:
    """The vocabulary of the source (0) or the target (1): pieces of --subwords, or words between spaces."""
    special = special_of(tokens, symbols)
    if special.unknown < 0 or (one and min(special.start, special.end) < 0):
        raise CheckpointError(
            f"{place}: expected {', '.join(symbols[1:])} in the vocabulary of the "
            f"{'target' if one else 'source'}; fetch it again"
        )
    subwords = given_file(given.subwords, "subwords", one)
    if subwords is None:
        return TokenList(tokens, special, framed=False).words()
    if any(JOINER in token for token in tokens):
        raise ConfigError(
            f"{place}: its tokens have the joiner {JOINER} of OpenNMT's Tokenizer, which Weft lacks;  "
            "leave out --subwords, and give the run tokenised text"
        )
    return TokenList(tokens, special, framed=False).subwords(subwords)
