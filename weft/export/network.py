"""A run's Transformer as formats for Transformers see it, and how an exported one compares with it.

A setting of the run's search that a program cannot do is refused by name, unless the run has its default:
what the program does instead is then a line of the report. An export is compared on texts of the run's
validation data, or on random pieces where it is missing. Read next: formats/ctranslate2.py, which calls both.
"""

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from itertools import islice, zip_longest
from typing import Any, Literal, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from weft.errors import ConfigError, DataError, ExportError
from weft.models import Generator
from weft.nn.attention import USUAL, MultiHead
from weft.nn.decoders.transformer import TransformerDecoder
from weft.nn.distances import UNSCALED, Distance, Rotary
from weft.nn.embed.tokens import Tokens
from weft.nn.encoders.transformer import TransformerEncoder
from weft.nn.heads.categorical import Categorical
from weft.nn.positions import Learned, Nowhere, Sinusoidal
from weft.run import LoadedRun
from weft.search.hypotheses import to_lists
from weft.search.offered import Decoding, SearchSettings, unable
from weft.search.sampling import search
from weft.search.step import Step, decoding_rules
from weft.tasks.abilities import ContinuesText, Rewrites
from weft.tasks.export import random_texts
from weft.tasks.running_text.base import ProseData
from weft.tasks.seq2seq.base import PairPipeline
from weft.text.vocabulary import EOS, PAD, SOS, UNK, Vocabulary
from weft.tree import State

MADE = 1024  # positions written for sinusoids, which have no limit in Weft
Positions = Literal["sinusoidal", "learned", "rotary", "none", "other"]
Side = TransformerEncoder | TransformerDecoder


class TransformerNetwork(NamedTuple):
    """An encoder-decoder, or a decoder that continues texts, made of Weft's Transformers."""

    model: Generator
    encoder: TransformerEncoder | None  # None if it continues texts
    decoder: TransformerDecoder
    source: Vocabulary
    target: Vocabulary  # the same object if both sides share one
    encode: Callable[[Sequence[str]], list[list[int]]]  # the tokens of texts, as the model reads them
    cut: int | None  # tokens that are read of a source; None for all
    window: int | None  # tokens that a model of windows reads at once; None for no such limit
    how: SearchSettings

    @property
    def sides(self) -> list[tuple[str, Side]]:
        """The encoder, if there is one, and the decoder, by name."""
        first: list[tuple[str, Side]] = [] if self.encoder is None else [("encoder", self.encoder)]
        return [*first, ("decoder", self.decoder)]

    @property
    def length(self) -> int:
        """Positions of a sequence: what learned positions or windows allow, otherwise MADE."""
        tables = [part.positions for _, part in self.sides]
        learned = [table.table.num_embeddings for table in tables if isinstance(table, Learned)]
        return min([*learned, *([self.window] if self.window else [])], default=MADE)

    def begin(self, row: Sequence[int]) -> tuple[Step, State, Tensor]:
        """The search step, the state after reading a row, and the token fed next [1]."""
        if self.encoder is not None:
            tokens = torch.tensor([row])
            state = self.model.start(tokens, torch.ones_like(tokens, dtype=torch.bool))
            return self.model.step, state, torch.tensor([SOS])
        tokens = torch.tensor([[EOS, *row]])
        state = self.model.start(tokens, torch.ones_like(tokens, dtype=torch.bool))
        if row:
            _, state = self.model.decoder(self.model.embed(tokens[:, :-1]), state)
        return self.model.step, state, tokens[:, -1]

    def search(self, row: Sequence[int], how: SearchSettings, limit: int) -> list[int]:
        """Weft's tokens for a row, without the end."""
        step, state, first = self.begin(row)
        given: dict[str, Any] = {"eos": EOS, "max_length": limit, "banned": (PAD, UNK, SOS)}
        if isinstance(how, Decoding):
            given |= {"asked": decoding_rules(how, EOS), "stop": how.stop, "normalisation": how.normalisation}
        return to_lists(search(how, step, state, first, **given), EOS)[0][0]

    @torch.no_grad()
    def logp(self, row: Sequence[int], target: Sequence[int]) -> Tensor:
        """Log-probabilities [T + 1, V] of each token of a target and of its end."""
        step, state, token = self.begin(row)
        found = []
        for following in [*target, EOS]:
            logp, state = step(token, state)
            found.append(logp[0])
            token = torch.tensor([following])
        return torch.stack(found)


def network(opened: LoadedRun, to: str) -> TransformerNetwork:
    """The Transformer of a run."""
    pipeline, model = opened.pipeline, opened.model
    if not isinstance(model, Generator) or not isinstance(pipeline, Rewrites | ContinuesText):
        raise ConfigError(
            f"--to {to}: expected a translator or a language model, got the task {opened.name}; use --to onnx"
        )
    how = search_of(opened)
    assert how is not None
    encoder, decoder = model.encoder, model.decoder
    for name, part in (("encoder", encoder), ("decoder", decoder)):
        if part is not None and not isinstance(part, Side):
            raise ConfigError(
                f"model.{name}: --to {to} expects a Transformer, got a {type(part).__name__}; use --to onnx"
            )
    assert isinstance(encoder, TransformerEncoder | None) and isinstance(decoder, TransformerDecoder)
    _check_parts(model, to)
    if isinstance(pipeline, Rewrites):
        if encoder is None:
            raise ConfigError(
                f"model.encoder: --to {to} expects an encoder beside the decoder of a translator, got null; "
                "use --to onnx"
            )
        if len(pipeline.directions()) > 1:
            raise ConfigError(
                f"--to {to}: expected a translator of one direction, got {len(pipeline.directions())}; "
                "train one with the task translate, or serve this run with weft serve"
            )
        reading = pipeline.translator(model, pipeline.decoding).source
        cut = getattr(reading, "cut", None)
        target: Any = opened.pipeline.writes()
        found = TransformerNetwork(
            model,
            encoder,
            decoder,
            reading.base,
            target,
            reading.encode_batch,
            cut,
            None,
            how,
        )
        return found
    writer = pipeline.writer(model)
    known, window = writer.vocabulary, getattr(writer.reader, "window", None)
    return TransformerNetwork(model, None, decoder, known, known, known.encode_batch, None, window, how)


def blocks(part: Side) -> Sequence[Any]:
    """The blocks of an encoder or a decoder."""
    return list(part.blocks)


def positions(part: Side) -> Positions:
    """How a Transformer knows the order of its input."""
    if type(part.distance) is not Distance:
        plain = isinstance(part.distance, Rotary) and part.distance.scaling == UNSCALED
        return "rotary" if plain else "other"
    kinds: dict[type, Positions] = {Sinusoidal: "sinusoidal", Learned: "learned", Nowhere: "none"}
    return kinds.get(type(part.positions), "other")


def _check_parts(model: Generator, to: str) -> None:
    """Embeddings, head and sizes as in the papers."""
    for name, part in (("encoder", model.encoder), ("decoder", model.decoder)):
        if part is not None and not isinstance(part.project, nn.Identity):
            raise ConfigError(
                f"model.{name}.size: --to {to} expects the size of the embedding, got {part.size}; "
                "train with equal sizes, or use --to onnx"
            )
    for name, embed in (("target", model.embed), ("source", model.source_embed)):
        if type(embed) is not Tokens:
            raise ConfigError(
                f"model.decoder: --to {to} expects a table of {name} tokens, got {type(embed).__name__}; "
                "use --to onnx"
            )
    if type(model.head) is not Categorical:
        raise ConfigError(
            f"model: --to {to} expects a plain output layer, got {type(model.head).__name__}; use --to onnx"
        )


def usual_heads(part: Side) -> bool:
    """Whether attention has none of the variants of `Heads`, and every block sees all positions."""
    if getattr(part, "window", None) is not None or isinstance(part.blocks[0].attention_norm, nn.Identity):
        return False
    return (
        all(
            one.shared == one.num_heads
            and isinstance(one.query_norm, nn.Identity)
            and one.query.out_features == one.query.in_features
            and (one.query.bias is None) == (one.out.bias is None)
            for one in part.modules()
            if isinstance(one, MultiHead)
        )
        and getattr(part, "heads", USUAL) == USUAL
    )


def search_of(opened: LoadedRun) -> SearchSettings | None:
    """How a run searches; None if it writes no sequences."""
    found: Any = getattr(opened.pipeline, "decoding", None) or getattr(opened.task, "decoding", None)
    return found if isinstance(found, SearchSettings) else None


LINES = ("max_lines",)  # what an engine is not told: it ends an answer at the first line end


def check_search(opened: LoadedRun, to: str, own: Collection[str] = LINES) -> list[str]:
    """Lines of the report on settings that a program does in its own way."""
    how = search_of(opened)
    lacking = [] if how is None else unable(how, to)
    for one in lacking:
        value = getattr(how, one.name)
        if value != one.default and one.name not in own:
            raise ConfigError(
                f"decoding.{one.name}: --to {to} expects a search without it, got {value}; "
                f"remove it from {opened.path / 'recipe.yaml'}"
            )
    named = [one.name for one in lacking if one.name in own or _acts(one.default)]
    ends = " (it ends an answer at the first line end)"
    said = ", ".join(f"{name} {getattr(how, name)}{ends if name in LINES else ''}" for name in named)
    return [f"in the program's own way, not as in weft predict: {said}"] if said else []


def _acts(default: object) -> bool:
    """Whether a default does something, where others turn a setting off."""
    return isinstance(default, str | bool | float) and bool(default) and default != 1.0


COUNT = 20  # texts on which an export is compared with Weft
TIE = 1e-3
"""Nats: two tokens whose log-probabilities differ by less may change places by rounding."""


class ExportedModel(Protocol):
    """The exported model, run by its own program."""

    def search(self, row: Sequence[int], how: SearchSettings, limit: int) -> list[int]:
        """The tokens written for a row, without the end; see Network.search."""

    def logp(self, rows: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[Tensor]:
        """For each target, computed in one batch: log-probabilities [T + 1, V], or [T + 1] of its tokens."""


class Agreement(NamedTuple):
    """How an export compares with Weft."""

    texts: int
    nats: float  # the largest difference of a log-probability
    greedy: int  # texts on which greedy outputs are equal
    own: int | None  # texts on which the outputs of the run's own search are equal; None if it samples
    cut: int  # texts of the others on which an output has the maximum length
    outputs: list[list[int]]  # the export's, greedy
    expected: list[list[int]]  # Weft's, greedy

    def lines(self, how: SearchSettings) -> list[str]:
        """Two lines for the report of an export; `how` is the run's search."""
        found = f"equal outputs: greedy {self.greedy} of {self.texts}"
        if self.own is not None and how.width() > 1:
            cut = f", {self.cut} of the others cut at the maximum length" if self.cut else ""
            found += f", beam {how.width()}: {self.own} of {self.texts}{cut}"
        return [
            f"log-probabilities of {self.texts} texts in one batch: at most {self.nats:.1e} nats from Weft's",
            found,
        ]


def compare(
    network: TransformerNetwork, texts: Sequence[str], other: ExportedModel, *, exact: bool = True
) -> Agreement:
    """Run both programs on the same texts."""
    rows = [row[: network.length // 2] for row in network.encode(texts) if row][:COUNT]
    limits = [min(2 * len(row) + 10, network.length - 1 - len(row)) for row in rows]
    plain, how = SearchSettings(search="greedy"), network.how
    pairs = list(zip(rows, limits, strict=True))
    expected = [network.search(row, plain, limit) for row, limit in pairs]
    outputs = [other.search(row, plain, limit) for row, limit in pairs]
    nats = _largest(network, rows, expected, other)
    if exact and nats > TIE:
        raise ExportError(
            f"the exported model's log-probabilities differ from Weft's by {nats:.1e} nats, expected at most "
            f"{TIE}; please report this run's recipe"
        )
    if exact:
        for row, ours, theirs in zip(rows, expected, outputs, strict=True):
            _check_tie(network, row, ours, theirs)
    equal = cut = 0
    for row, limit in pairs if how.search != "sample" else ():
        ours, theirs = network.search(row, how, limit), other.search(row, how, limit)
        equal += ours == theirs
        cut += ours != theirs and limit in (len(ours), len(theirs))
    same = sum(ours == theirs for ours, theirs in zip(expected, outputs, strict=True))
    own = None if how.search == "sample" else equal
    return Agreement(len(rows), nats, same, own, cut, outputs, expected)


def _largest(
    network: TransformerNetwork,
    rows: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    other: ExportedModel,
) -> float:
    """The largest difference of a log-probability, in nats."""
    most = 0.0
    for row, target, theirs in zip(rows, targets, other.logp(rows, targets), strict=True):
        ours = network.logp(row, target)
        if theirs.dim() == 1:
            ours = ours.gather(1, torch.tensor([*target, EOS])[:, None])[:, 0]
        most = max(most, float((ours - theirs).abs().max()))
    return most


def _check_tie(
    network: TransformerNetwork, row: Sequence[int], ours: Sequence[int], theirs: Sequence[int]
) -> None:
    """Where greedy outputs part, the two tokens must be equally probable."""
    if list(ours) == list(theirs):
        return
    place = next(n for n, pair in enumerate(zip_longest(ours, theirs)) if pair[0] != pair[1])
    logp = network.logp(row, ours)[place]
    here, there = (side[place] if place < len(side) else EOS for side in (ours, theirs))
    if float(logp[here] - logp[there]) > TIE:
        raise ExportError(
            f"the exported model writes token {there} where Weft writes {here}, which is "
            f"{float(logp[here] - logp[there]):.1e} nats more probable; please report this run's recipe"
        )


def sources(opened: LoadedRun) -> list[str]:
    """Texts that the model translates, continues or fills."""
    pipeline: Any = opened.pipeline
    if isinstance(pipeline, PairPipeline):
        return list(pipeline.examples(COUNT))
    data = getattr(opened.task, "data", None)
    if isinstance(data, ProseData):
        with suppress(DataError):
            lines = [line for line in islice(data.open("valid"), 10 * COUNT) if line.strip()]
            if lines:  # the beginning of a line, to be continued
                return [line[: len(line) // 2 + 1] for line in lines[:COUNT]]
    return random_texts(pipeline.vocabulary, COUNT, 3)
