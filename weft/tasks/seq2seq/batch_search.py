"""Reads a batch of sources and searches it with the settings of `decoding`: models, rules, terms and search.

A source is read whole or cut, with unknown words that the output may copy. A pointer
(../../nn/decoders/pointer.py) copies words that the vocabulary does not have. So that they can be written,
the unknown pieces of each text get numbers after those of the vocabulary, in order of appearance: the
extended vocabulary of See et al. The numbers are valid for that text only.

A shortlist needs a model that writes only its tokens, numbered by their place in it: the output layer
multiplies only their rows, and probabilities are over them alone.
Read next: ../../search/beam.py; ../../search/step.py; ../../data/shortlist.py.
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from weft import masks, native
from weft.data.shortlist import Shortlist
from weft.errors import ConfigError, ShapeError
from weft.models import Generator, WholeSteps
from weft.nn.decoders.decoder import Decoder
from weft.nn.decoders.transformer import TransformerDecoder
from weft.nn.encoders.transformer import TransformerEncoder
from weft.nn.heads.categorical import Categorical
from weft.nn.ops import Output, Vectors, log_probabilities, multiply_as, use_int8
from weft.search.beam import beam_search, coverage_penalty, covering
from weft.search.diverse import diverse_search
from weft.search.hypotheses import Hypotheses, joined
from weft.search.offered import Decoding
from weft.search.required import required
from weft.search.sampling import search
from weft.search.step import decoding_rules, ensemble, ruled
from weft.search.trace import Trace
from weft.tasks.seq2seq.glossary import in_domain, read_glossary
from weft.text.characters import named
from weft.text.vocabulary import EOS, PAD, SOS, UNK, Vocabulary, Word
from weft.tree import State, at_step
from weft.wording import plural


class SourceVocabulary(ABC):
    """What a translator requires of its source vocabulary; `base` numbers the pieces."""

    base: Vocabulary

    @abstractmethod
    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The numbers of many texts."""

    @abstractmethod
    def extended(self, pieces: Sequence[str]) -> "SourceVocabulary":
        """The same with more pieces, numbered after those of the vocabulary."""

    def encode(self, text: str) -> list[int]:
        """The numbers of one text."""
        return self.encode_batch([text])[0]

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """The pieces as they are shown."""
        return self.base.pieces(ids)

    def words(self, ids: Sequence[int], text: str | None = None) -> list[Word]:
        """The words with the positions of their pieces."""
        return self.base.words(ids, text)

    def copyable(self, text: str) -> Sequence[str]:
        """The unknown pieces of a text that the output may copy, in the order of their numbers."""
        return ()


class SourceReader(SourceVocabulary):
    """A vocabulary that reads the first tokens of a source and numbers its unknown pieces if it copies."""

    def __init__(self, vocabulary: Vocabulary, *, cut: int | None, copies: bool) -> None:
        self.base = vocabulary
        self.cut = cut
        self.copies = copies
        # Imported models expect symbols at the end of a text, also of one that is cut.
        self._end = [] if cut is None else vocabulary.encode("")[len(vocabulary.begin()) :]

    def __str__(self) -> str:
        cut = "whole sources" if self.cut is None else f"the first {plural(self.cut, 'token')} of a source"
        return f"{cut}, {'unknown words to be copied' if self.copies else 'nothing to be copied'}"

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        rows = [self._shortened(row) for row in self.base.encode_batch(texts)]
        if self.copies:
            for place, row in enumerate(rows):
                if UNK in row:
                    rows[place] = self._named(row, texts[place])[0]
        return rows

    def num_cut(self, texts: Sequence[str]) -> int:
        """How many texts are cut."""
        if self.cut is None:
            return 0
        return sum(len(row) > self.cut for row in self.base.encode_batch(texts))

    def copyable(self, text: str) -> Sequence[str]:
        """The unknown pieces of a text after cutting, each once."""
        if not self.copies:
            return ()
        row = self._shortened(self.base.encode(text))
        return self._named(row, text)[1] if UNK in row else ()

    def extended(self, pieces: Sequence[str]) -> "SourceReader":
        return SourceReader(self.base.extended(pieces), cut=self.cut, copies=False)

    def _shortened(self, row: list[int]) -> list[int]:
        if self.cut is None or len(row) <= self.cut:
            return row
        return (
            [*row[: self.cut - len(self._end)], *self._end] if len(self._end) < self.cut else row[: self.cut]
        )

    def _named(self, row: list[int], text: str) -> tuple[list[int], list[str]]:
        unknown = iter(self.base.unknown(text))
        size, numbers = len(self.base), dict[str, int]()
        found = [
            number if number != UNK else numbers.setdefault(next(unknown), size + len(numbers))
            for number in row
        ]
        return found, list(numbers)


class AnnotatingReader(SourceVocabulary):
    """Another reading that also reads what is written into its sources: a domain, translations of terms."""

    def __init__(self, reading: SourceVocabulary, annotated: Callable[[str], str]) -> None:
        self._reading, self._annotated, self.base = reading, annotated, reading.base

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return self._reading.encode_batch([*map(self._annotated, texts)])

    def copyable(self, text: str) -> Sequence[str]:
        return self._reading.copyable(self._annotated(text))

    def extended(self, pieces: Sequence[str]) -> SourceVocabulary:
        return self._reading.extended(pieces)


def annotating(reading: SourceVocabulary, how: Decoding) -> SourceVocabulary:
    """The reading, with the domain and the terms that the settings of a search write into sources."""
    if how.domain:
        reading = AnnotatingReader(reading, partial(in_domain, how.domain))
    if how.terms == "annotate" and how.glossary is not None:
        reading = AnnotatingReader(reading, read_glossary(how.glossary).annotated)
    return reading


def pad(rows: Sequence[Sequence[int] | np.ndarray], width: int | None = None) -> tuple[Tensor, Tensor]:
    """Token lists to [B, S] int64 and their mask [B, S]; S is the longest row by default."""
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    places = np.arange(width or max(1, lengths.max()))
    tokens = np.full((len(rows), len(places)), PAD, dtype=np.int64)
    tokens[places < lengths[:, None]] = np.concatenate(rows, dtype=np.int64, casting="unsafe")
    return torch.from_numpy(tokens), torch.from_numpy(places < np.maximum(lengths, 1)[:, None])


Words = tuple[str, ...]
Asked = tuple[Words, Words]
"""Words that a translation contains, and words that it does not contain."""


class ShortlistModel(WholeSteps):
    """A Generator whose search can write only some tokens [K], ascending."""

    training = False

    def __init__(self, model: Generator, tokens: Tensor) -> None:
        output = model.head.output()
        if output is None or type(model).step is not Generator.step:
            raise ConfigError(
                "shortlist: not supported by this output layer, which lacks a row per token; leave it out"
            )
        self.model = model
        self.decoder = model.decoder
        with (
            torch.inference_mode(False),
            torch.no_grad(),
        ):  # tensors of inference mode are packed at each step
            self.embed = _Embed(model.embed, tokens)
            self.head = _Head(output, tokens)

    def pause(self) -> None:
        self.model.pause()

    def step(self, token: Tensor, state: State) -> tuple[Tensor, State]:
        """One search step: from places of tokens [N] to log-probabilities [N, K], and the next state."""
        self.pause()
        h, state = self.decoder(self.embed(token[:, None]), state)
        return self.head(at_step(h, 0)), state


def places(shortlist: np.ndarray, tokens: Sequence[int]) -> list[int]:
    """The places of tokens in a shortlist, ascending numbers; those that are not there are left out."""
    wanted = np.array(list(tokens), np.int64)
    found = np.searchsorted(shortlist, wanted)
    there = shortlist[np.minimum(found, len(shortlist) - 1)] == wanted
    return found[there].tolist()  # type: ignore[no-any-return]


class BatchSearch:
    """Searches with one model or with several as one, with the same vocabularies, on one device.

    A task without a source text has no shortlist.
    """

    def __init__(
        self,
        models: Sequence[Generator],
        target: Vocabulary,
        how: Decoding,
        banned: Sequence[int],
        shortlist: Shortlist | None = None,
    ) -> None:
        for name in ("glossary", *(["shortlist"] if shortlist is None else [])):
            if getattr(how, name):
                raise ConfigError(f"{name}: this model reads no source text; leave it out")
        self._models = (
            list(models)
            if how.precision == "float32"
            else [rounded(model, how.precision) for model in models]
        )
        self._device = next(self._models[0].parameters()).device
        self._how = how
        self._banned = banned
        self._shortlist = shortlist if how.shortlist else None
        begin = target.begin()
        self._free = len(begin)
        self._prefix = spelled(target, "prefix", how.prefix) if how.prefix.strip() else begin
        self._target = target
        self._require([spelled(target, "require", word) for word in how.require])
        if how.coverage and len(models) > 1:
            raise ConfigError("coverage: cannot be combined with an ensemble; leave out one of them")

    def requiring(self, terms: Words, without: Words = ()) -> "BatchSearch":
        """The search for answers with these terms, longer by twice their tokens, and without other words."""
        rows = [spelled(self._target, "require", term) for term in terms]
        needed = {token for row in rows for token in row}
        first = {row[self._free] for row in map(self._target.encode, without) if len(row) > self._free}
        other = copy.copy(self)
        other._banned = [*self._banned, *sorted(first - needed)]
        other._how = replace(self._how, max_extra=self._how.max_extra + 2 * sum(map(len, rows)))
        other._require(rows)
        return other

    def of_beam(self) -> "BatchSearch":
        """The search for as many answers as its beam is wide."""
        other = copy.copy(self)
        other._how = replace(self._how, nbest=self._how.beam)
        return other

    def seeded(self) -> torch.Generator:
        """A new generator for sampling, from the seed."""
        return torch.Generator(self._device).manual_seed(self._how.seed)

    def _require(self, rows: Sequence[Sequence[int]]) -> None:
        self._words = [list(row[self._free :]) for row in rows]
        num_tokens = sum(map(len, self._words))
        self._least = max(len(self._prefix), self._how.min_length) + num_tokens + 1
        self._most = self._how.most_tokens(self._how.width() * (1 + num_tokens))  # of all rows together

    def __call__(
        self, tokens: Tensor, mask: Tensor, trace: Trace | None = None, chance: torch.Generator | None = None
    ) -> Hypotheses:
        """Token sequences for sources [B, S], or others, with their mask, on any device."""
        tokens, mask = tokens.to(self._device), mask.to(self._device)
        limits = self._limits(mask.sum(1))
        rows = max(1, self._most // int(limits.max()))
        parts = zip(tokens.split(rows), mask.split(rows), limits.split(rows), strict=True)
        found = [self._search(*part, trace, chance) for part in parts]
        return found[0] if len(found) == 1 else joined(found, EOS)

    def _limits(self, lengths: Tensor) -> Tensor:
        """The maximum output length for each source: by settings, the models' positions and the budget."""
        how = self._how
        limits = torch.ceil(how.max_ratio * lengths).long() + how.max_extra
        if int(limits.min()) < self._least:
            if self._words:  # a minimum length raises the limit instead
                raise ConfigError(
                    f"require: the words and the end take {self._least} tokens, but the shortest line of the "
                    f"input may have {int(limits.min())}; require less, or raise max_extra"
                )
            limits = limits.clamp(min=self._least)
        self._check_room(self._most)
        limits = limits.clamp(max=self._most)
        for model in self._models:
            empty, most = model.max_output(0), model.max_output(int(lengths.max()))
            if empty is None or most is None:
                continue
            self._check_room(empty)
            if most < self._least:
                raise ShapeError(
                    f"{int(lengths.max())} tokens leave room for an answer of {max(0, most)} tokens, "
                    f"expected at least {self._least}; shorten the text"
                )
            taken = lengths if most < empty else torch.zeros_like(lengths)  # by the source
            limits = torch.minimum(limits, empty - taken)
        return limits

    def _check_room(self, most: int) -> None:
        if most < self._least:
            raise ConfigError(
                f"prefix, require, min_length: they take {self._least} tokens, the end included, but at most "
                f"{most} can be written; ask for less, or for a smaller beam"
            )

    def _search(
        self,
        tokens: Tensor,
        mask: Tensor,
        limits: Tensor,
        trace: Trace | None,
        chance: torch.Generator | None,
    ) -> Hypotheses:
        """What a search finds, with a shortlist by models that write other numbers for the tokens."""
        how, models, known = self._how, list[Generator | ShortlistModel](self._models), None
        banned, prefix, words = self._banned, self._prefix, self._words
        if trace is not None and (self._shortlist is not None or how.diverse > 1 or words):
            raise ConfigError(
                "trace: only a plain beam search has one; leave out shortlist, diverse, require"
            )
        if self._shortlist is not None:
            always = [*range(EOS + 1), *prefix, *(token for word in words for token in word)]
            kept = self._shortlist.tokens(tokens[mask].cpu().numpy(), how.shortlist, always)
            with torch.inference_mode(False):
                known = torch.from_numpy(kept).to(tokens.device)
            models = [ShortlistModel(model, known) for model in self._models]
            banned, prefix, *words = (places(kept, one) for one in (banned, prefix, *words))
        first = torch.full((len(tokens),), SOS, device=tokens.device)
        with torch.inference_mode():
            state = tuple(model.start(tokens, mask) for model in self._models)
            step = models[0].step if len(models) == 1 else ensemble([one.step for one in models], how.mean)
            state = state[0] if len(models) == 1 else state
            given: dict[str, Any] = {"eos": EOS, "max_length": limits, "banned": banned}
            asked = decoding_rules(how, EOS, prefix, free=self._free)
            beams: dict[str, Any] = {"width": how.beam, "nbest": how.nbest}
            beams |= {"normalisation": how.normalisation, "length_penalty": how.length_penalty}
            if how.search == "beam" and (how.diverse > 1 or words or how.coverage):
                step, state = ruled(step, state, asked)
            if how.search != "beam":
                found = self._ranked(search(how, step, state, first, asked=asked, chance=chance, **given))
            elif how.diverse > 1:
                given |= {"groups": how.diverse, "strength": how.diversity}
                found = diverse_search(step, state, first, **given, **beams)
            elif words:
                found = required(step, state, first, words=words, **given, **beams)
            else:
                given |= {"stop": how.stop, "trace": trace}
                if how.coverage:
                    step, state = covering(step, state, _memory_mask(self._models[0], mask), looked)
                    given["penalty"] = partial(coverage_penalty, beta=how.coverage)
                else:
                    given |= {"rules": asked, "recorded": how.cuda_graphs}
                found = beam_search(step, state, first, **given, **beams)
        return found if known is None else found._replace(tokens=known[found.tokens])

    def _ranked(self, found: Hypotheses) -> Hypotheses:
        """With scores normalised by length, as beam search gives them."""
        lengths = found.lengths.clamp(min=1).to(found.logp.dtype)
        if self._how.normalisation == "gnmt":
            lengths = (5 + lengths) / 6
        return found._replace(score=found.logp / lengths**self._how.length_penalty)


def spelled(vocabulary: Vocabulary, name: str, text: str) -> list[int]:
    """The tokens of a text that must be written."""
    tokens = vocabulary.encode(text)
    if not tokens:
        raise ConfigError(f"{name}: expected a text with words, got none; give some, or leave it out")
    if UNK in tokens:
        lacking = named(vocabulary.alphabet.unknown(text)) or " ".join(vocabulary.pieces(tokens))
        raise ConfigError(
            f"{name}: {text[:40]!r} contains characters or words that the vocabulary lacks ({lacking}); "
            "write it differently"
        )
    return tokens


def _memory_mask(model: Generator, mask: Tensor) -> Tensor:
    """The mask of the memory's states; each state covers `stride` positions of the source."""
    stride = 1 if model.encoder is None else model.encoder.stride
    if stride == 1:
        return mask
    return masks.from_lengths(-(-masks.lengths(mask) // stride), -(-mask.shape[1] // stride))


def looked(seen: dict[str, list[Tensor]]) -> Tensor:
    """The attention of a step, [N, S] or [B, W, S]."""
    if seen["attention"]:
        return seen["attention"][-1]
    layers = seen["cross_attention"]
    if not layers:
        raise ConfigError("coverage: needs attention, which this model lacks; leave it out")
    return layers[max(0, len(layers) - 2)].mean(1)  # Garg et al. 2019: the last layer but one aligns best


def rounded(model: Generator, precision: Literal["bfloat16", "int8"]) -> Generator:
    """A copy whose weights are rounded once and not at every step.

    A Transformer decoder stays in float32, which is faster, where compiled code does not multiply bfloat16.
    """
    on_cpu = all(parameter.device.type == "cpu" for parameter in model.parameters())
    as_bytes = precision == "int8" and on_cpu and native.int8()
    with (
        torch.inference_mode(False),
        torch.no_grad(),
    ):  # tensors of inference mode would be packed at each step
        copied = copy.deepcopy(model).eval()
        if native.narrow() or not as_bytes:
            copied.to(torch.bfloat16)
    for part in copied.modules():
        if isinstance(part, TransformerDecoder) and part.compiled() and not native.narrow():
            part.float()
        if as_bytes and isinstance(part, Decoder | TransformerEncoder | Categorical):
            use_int8(part)
    return copied


class _Embed(nn.Module):
    def __init__(self, embed: nn.Module, tokens: Tensor) -> None:
        super().__init__()
        self.embed = embed
        self.tokens = tokens

    def forward(self, places: Tensor) -> Tensor:
        return self.embed(self.tokens[places])  # type: ignore[no-any-return]

    def vectors(self) -> Vectors:
        """The rows of these tokens."""
        _, table, scale = self.embed.vectors()  # type: ignore[operator]
        with torch.inference_mode(False), torch.no_grad():
            return Vectors(self, table.detach()[self.tokens], scale)


class _Head(nn.Module):
    def __init__(self, output: Output, tokens: Tensor) -> None:
        super().__init__()
        of, self.project, weight, bias = output
        self.weight, self.bias = weight.detach()[tokens], bias.detach()[tokens]
        multiply_as(of, self)

    def forward(self, h: Tensor) -> Tensor:
        h = h if self.project is None else self.project(h)
        return log_probabilities(self, h, self.weight, self.bias)

    def output(self) -> Output:
        """The rows of these tokens."""
        return Output(self, self.project, self.weight, self.bias)
