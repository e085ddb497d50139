"""What a search may be told: each setting is declared here once, with type, meaning, and programs that do it.

From a declaration come the key of a recipe's section `decoding`, the option of the commands that search, the
field of /v1/completions, its line in the reference, what an export writes into its program, and what that
program refuses. A new setting is a line here and what it does (of sampling: a function in filters.py).

Nothing here imports torch, so that `weft predict --help` answers at once. Read next: sampling.py, the search
that the settings ask for; ../commands/options.py; ../export/network.py.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self, get_type_hints

from weft.errors import ConfigError
from weft.setting_types import Bounds, Probability, Section, Whole

BeamWidth = Annotated[int, Bounds(ge=1, le=1_000)]
"""Hypotheses kept, or texts written, for a source."""

BatchRows = Annotated[int, Bounds(ge=1, le=10_000)]
"""Sources in a batch."""

TokenCount = Annotated[int, Bounds(ge=0, le=100_000)]
OneOrMore = Annotated[int, Bounds(ge=1, le=100_000)]
Finite = Annotated[float, Bounds(ge=0, lt=math.inf)]
LengthPenalty = Annotated[float, Bounds(ge=0, le=10)]
Temperature = Annotated[float, Bounds(gt=0, lt=math.inf)]
TopP = Annotated[float, Bounds(gt=0, le=1)]

Stop = Literal["best", "full", "worst", "never"]
"""Which active hypotheses keep a source in the search after W have finished (rule 2 of beam.py): those that
score better than the best finished one; none (the rule of fairseq); those that score better than the worst of
the best W; all, so that only rules 1 and 3 end it."""

Normalisation = Literal["length", "gnmt"]
Mean = Literal["probability", "log"]

TOKENS = 2**18
"""Maximum of sources * hypotheses per source * maximum tokens per hypothesis in one batch: a recipe may be
untrusted, and `max_extra: 100000000` must neither exhaust the memory nor run for days."""

PROGRAMS = ("onnx", "web", "ctranslate2", "argos", "huggingface")
"""Programs for which `weft export` writes a model that writes texts, by the name of `--to`."""

Programs = Mapping[str, Sequence[object] | None]
"""For each program that does a setting as Weft does, the values that it can do; None for all."""

EVERY: Programs = dict.fromkeys(PROGRAMS)
GRAPHS: Programs = dict.fromkeys(("onnx", "web"))
NONE: Programs = {}


class Offer(NamedTuple):
    """A setting, beside its type and default."""

    name: str
    kind: Any
    default: Any
    help: str  # one sentence
    more: str  # further sentences, for the reference
    metavar: str  # of its option
    option: Literal["shown", "hidden", ""]  # whether commands have an option for it, and list it
    search: str  # "beam" or "sample", if only this search has it
    apart: bool  # whether it cannot be combined with others of its kind
    programs: Programs


def setting(
    default: object,
    help: str,
    *,
    more: str = "",
    metavar: str = "",
    option: Literal["shown", "hidden", ""] = "",
    search: str = "",
    apart: bool = False,
    programs: Programs = NONE,
) -> Any:
    """A field of a dataclass whose declaration is an Offer."""
    about = {
        "help": help, "more": more, "metavar": metavar, "option": option, "search": search, "apart": apart,
        "programs": programs,
    }  # fmt: skip
    return field(default=default, metadata=about)


def offers(kind: type) -> dict[str, Offer]:
    """The settings that a dataclass declares, by name."""
    kinds = get_type_hints(kind, include_extras=True)
    declared: list[Any] = [one for one in fields(kind) if "help" in one.metadata]
    return {one.name: Offer(one.name, kinds[one.name], one.default, **one.metadata) for one in declared}


def options(kind: type) -> dict[str, Offer]:
    """Those for which commands have an option."""
    return {name: one for name, one in offers(kind).items() if one.option}


@dataclass(frozen=True, kw_only=True)
class Narrowing(Section):
    """How a distribution is narrowed before a token is drawn, in this order (filters.py).

    Example:
        >>> Narrowing(top_k=9) == Narrowing(temperature=1.0, top_k=9, top_p=1.0, min_p=0.0, typical_p=1.0)
        True
    """

    temperature: Temperature = setting(
        1.0,
        "Temperature, above 0; lower is more predictable.",
        metavar="X",
        option="shown",
        search="sample",
        programs=EVERY,
    )
    top_k: Whole = setting(
        0,
        "Draw from the K most probable tokens; 0 allows all.",
        metavar="K",
        option="hidden",
        search="sample",
        programs=EVERY,
    )
    top_p: TopP = setting(
        1.0,
        "Draw from the most probable tokens that together have probability P; 1 allows all.",
        metavar="P",
        option="hidden",
        search="sample",
        programs=EVERY,
    )
    min_p: Probability = setting(
        0.0,
        "Draw from the tokens at least P times as probable as the most probable one; 0 allows all.",
        metavar="P",
        option="hidden",
        search="sample",
        programs={"huggingface": None},
    )
    typical_p: TopP = setting(
        1.0,
        "Draw from the tokens of the most typical surprise, up to probability P; 1 allows all.",
        metavar="P",
        option="hidden",
        search="sample",
        programs={"huggingface": None},
    )

    def narrowing(self) -> "Narrowing":
        """These settings alone."""
        return Narrowing(**{one.name: getattr(self, one.name) for one in fields(Narrowing)})


@dataclass(frozen=True, kw_only=True)
class SearchSettings(Narrowing):
    """How texts are searched: what the section `decoding` of every task that writes has."""

    search: Literal["beam", "greedy", "sample"] = setting(
        "beam", "beam, greedy or sample.", programs={**EVERY, "argos": ("beam", "greedy")}
    )
    beam: BeamWidth = setting(
        5,
        "Beam width: hypotheses kept; 1 is greedy search.",
        metavar="N",
        option="shown",
        search="beam",
        programs=EVERY,
    )
    nbest: BeamWidth = setting(1, "Number of texts for each input.", metavar="N", option="shown")
    mbr: Whole = setting(
        0,
        "Draw N texts, return the one most like the others (minimum Bayes risk); 0 is off.",
        more="The utility is chrF. It needs `search: sample` (Eikema and Aziz 2022); 32 to 128 is usual.",
        metavar="N",
        option="hidden",
        search="sample",
    )
    length_penalty: LengthPenalty = setting(
        1.0,
        "Exponent of the length penalty; 0 favours short texts.",
        metavar="X",
        option="hidden",
        search="beam",
        programs=EVERY,
    )
    seed: Whole = setting(1, "Random seed.", metavar="N", option="hidden", search="sample", programs=EVERY)
    batch_rows: BatchRows = setting(64, "Inputs searched at once.", programs=EVERY)
    cuda_graphs: bool = setting(
        False, "On a GPU, record the steps of a search as CUDA graphs and replay them.", programs=EVERY
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.search == "beam" and self.nbest > self.beam:
            raise ConfigError(
                f"nbest: expected at most the beam width {self.beam}, got {self.nbest}; "
                f"raise beam to {self.nbest}"
            )
        if self.search == "greedy" and self.nbest > 1:
            raise ConfigError(
                f"nbest: expected 1 for greedy search, got {self.nbest}; sample, or use beam search"
            )
        if self.search == "sample" and 0 < self.mbr < self.nbest:
            raise ConfigError(f"mbr: expected at least {self.nbest}, the value of nbest, got {self.mbr}")
        if self.mbr and self.search != "sample":
            raise ConfigError(f"mbr: expected search: sample, got {self.search}")

    def with_settings(self, asked: Mapping[str, Any]) -> Self:
        """These settings with those that a user asks for.

        A beam, several texts, and what only a beam search has select beam search, unless the user samples. A
        beam without a width is wide enough for the texts.
        """
        given, offered = dict(asked), offers(type(self))
        search = given.get("search", "beam" if "beam" in given else self.search)
        drawn = [name for name in given if offered[name].search == "sample"]
        if search != "sample" and drawn:
            raise ConfigError(f"{drawn[0]}: applies to sampling, but the search is {search}; add --sample")
        if search == "sample" and "beam" in given:
            raise ConfigError("beam: sampling keeps no beam; leave out one of them")
        own = any(self.needs_beam(offered[name]) for name in given)
        if search != "sample" and ("beam" in given or own or given.get("nbest", 1) > 1):
            search, groups = "beam", max(1, given.get("diverse", getattr(self, "diverse", 1)))
            given.setdefault("beam", groups * math.ceil(max(self.beam, given.get("nbest", 1)) / groups))
        return replace(self, **given | {"search": search})

    def as_beam(self, beam: int, **changes: Any) -> Self:
        """A beam search of this width, without what only sampling has."""
        drawn = {one.name: one.default for one in offers(type(self)).values() if one.search == "sample"}
        return replace(self, **drawn, search="beam", beam=beam, **changes)

    def width(self) -> int:
        """Hypotheses of each source."""
        return {"beam": self.beam, "greedy": 1}.get(self.search, self.mbr or self.nbest)

    def most_tokens(self, width: int = 0) -> int:
        """Maximum tokens of a hypothesis, of as many hypotheses per source as this, or as the search has."""
        return max(1, TOKENS // (width or self.width()))

    def most_rows(self, longest: int) -> int:
        """Maximum number of sources in one batch, with hypotheses of at most so many tokens."""
        return max(1, self.most_tokens() // longest)

    def needs_beam(self, one: Offer) -> bool:
        """Whether only a beam search can do a setting, and only one such setting."""
        return one.apart

    def changed(self) -> Iterator[Offer]:
        """The settings that differ from their defaults and belong to this search."""
        for one in offers(type(self)).values():
            if getattr(self, one.name) != one.default and one.search in ("", self.search):
                yield one


@dataclass(frozen=True, kw_only=True)
class Decoding(SearchSettings):
    """The search settings for translations and what else is written for a source: a section `decoding`."""

    max_ratio: Annotated[float, Bounds(ge=0, le=1_000)] = setting(
        2.0,
        "At most max_ratio * (source tokens) + max_extra tokens are written.",
        programs={**GRAPHS, "ctranslate2": None, "huggingface": (0.0,)},
    )
    max_extra: OneOrMore = setting(
        10, "See max_ratio.", programs={**GRAPHS, "ctranslate2": None, "huggingface": None}
    )
    stop: Stop = setting(
        "best",
        "When a plain beam search ends, once as many hypotheses as the beam is wide have ended.",
        more='"best": when no unfinished one scores better than the best of them; "full": at once; "worst": '
        'when none scores better than the worst of them; "never": when no better one can come.',
        search="beam",
        programs={
            **GRAPHS, "ctranslate2": ("full",), "argos": ("full",), "huggingface": ("full", "worst", "never")
        },
    )  # fmt: skip
    normalisation: Normalisation = setting(
        "length",
        'How length_penalty is applied: "length", or "gnmt" for the gentler rule of Wu et al. 2016.',
        search="beam",
        programs=GRAPHS,
    )
    coverage: Finite = setting(
        0.0,
        "Weight of the penalty for source words that get little attention; 0 turns it off.",
        more="Beta of Wu et al. 2016.",
        metavar="X",
        option="hidden",
        search="beam",
        apart=True,
        programs=GRAPHS,
    )
    diverse: BeamWidth = setting(
        1,
        "Groups of diverse beam search, which divide the beam; more groups vary more, 1 is none.",
        more="The groups avoid each other's tokens (Vijayakumar et al. 2016).",
        metavar="GROUPS",
        option="hidden",
        search="beam",
        apart=True,
    )
    diversity: Finite = setting(
        0.5,
        "Nats that a token costs for each earlier group that chose it at the same step.",
        search="beam",
        programs=EVERY,  # of diverse alone, which they refuse
    )
    prefix: str = setting("", "Text that every answer begins with.", metavar="TEXT", option="hidden")
    require: tuple[str, ...] = setting(
        (),
        "Words that every answer contains (repeatable).",
        more="Grid beam search, Hokamp and Liu 2017.",
        metavar="WORDS",
        option="hidden",
        search="beam",
        apart=True,
    )
    glossary: Path | None = setting(
        None,
        "Table TERM TAB TRANSLATION that answers keep to.",
        metavar="FILE",
        option="shown",
        apart=True,
    )
    terms: Literal["require", "annotate"] = setting(
        "require",
        'What the glossary does: "require", the answer contains the translations exactly; "annotate", they '
        "are written into the source, and the model may inflect or leave them out.",
        more="annotate needs `data.glossary`.",
    )
    domain: str = setting(
        "",
        "The domain of the texts, one of `data.domains`.",
        metavar="NAME",
        option="hidden",
    )
    no_repeat_ngram: TokenCount = setting(
        0,
        "Forbid repeating any N consecutive tokens; 0 allows repeats.",
        metavar="N",
        option="hidden",
        programs={**GRAPHS, "huggingface": None},
    )
    min_length: TokenCount = setting(
        0,
        "Minimum number of tokens.",
        metavar="N",
        option="hidden",
        programs={**GRAPHS, "ctranslate2": None, "huggingface": None},
    )
    mean: Mean = setting(
        "probability",
        'How an ensemble combines its members: mean "probability", or mean "log" probability.',
        programs=EVERY,  # an export has one model
    )
    verbatim: bool = setting(
        True,
        "Copy text without letters; a translator keeps placeholders, tags, addresses, and words with "
        "characters that its vocabulary lacks. false leaves everything to the model.",
        programs={**GRAPHS, "ctranslate2": (False,), "huggingface": (False,)},
    )
    strict: bool = setting(
        False,
        "Refuse answers that lose a number or a placeholder.",
        more="Such a line has no answer; otherwise standard error names it.",
        option="shown",
    )
    shortlist: Whole = setting(
        0,
        "K; a faster search: each batch can write only the K likeliest translations of each source token.",
        more="By IBM model 1 on the training data; also the K most frequent tokens and the required ones. "
        "Probabilities are over these. 0 allows all tokens (data/shortlist.py).",
    )
    precision: Literal["float32", "bfloat16", "int8"] = setting(
        "float32",
        '"bfloat16" computes with weights that are rounded once; "int8" multiplies the layers of decoder and '
        "Transformer encoder and the output layer in 8-bit integers where compiled code can.",
        programs=EVERY,  # which have float32, or what --int8 says
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        on = [one for one in offers(Decoding).values() if getattr(self, one.name) != one.default]
        given = [one.name for one in on if self.needs_beam(one)]
        if given and self.search != "beam":
            raise ConfigError(f"{given[0]}: expected search: beam, got {self.search}")
        if len(given) > 1:
            raise ConfigError(f"{given[0]} and {given[1]}: cannot be combined; leave out one of them")
        if self.beam % self.diverse:
            raise ConfigError(
                f"diverse: {self.diverse} groups do not divide a beam of {self.beam}; "
                f"set beam to {self.diverse * math.ceil(self.beam / self.diverse)}"
            )

    def needs_beam(self, one: Offer) -> bool:
        """The same; annotated terms need none."""
        return one.apart and (one.name != "glossary" or self.terms == "require")

    def describe(self) -> str:
        """For signatures, such as "beam 5, length penalty 1.0", and what else changes the output."""
        head, named = "greedy", {"search", "beam", "length_penalty", *UNSAID}
        if self.search == "beam" and self.beam > 1:
            head = f"beam {self.beam}, length penalty {self.length_penalty:g}"
        elif self.search == "sample":
            named |= {"temperature", "top_k", "top_p"}
            head = f"sampled, temperature {self.temperature:g}, top_k {self.top_k}, top_p {self.top_p:g}"
        said = [(one.name, getattr(self, one.name)) for one in self.changed() if one.name not in named]
        return head + "".join(f", {name} {value}" for name, value in said)


UNSAID = ("nbest", "seed", "batch_rows", "cuda_graphs", "max_ratio", "max_extra", "diversity", "mean")
"""Settings that a signature leaves out."""


def written(how: SearchSettings) -> dict[str, Any]:
    """The settings that programs of graphs do, for the file that they read."""
    return {one.name: getattr(how, one.name) for one in offers(type(how)).values() if "onnx" in one.programs}


def unable(how: SearchSettings, program: str) -> list[Offer]:
    """The settings that a program of an export cannot do as they are; those at their defaults come last."""
    active = [one for one in offers(type(how)).values() if one.search in ("", how.search)]
    found = [one for one in active if not _does(one, program, getattr(how, one.name))]
    return sorted(found, key=lambda one: getattr(how, one.name) == one.default)


def _does(one: Offer, program: str, value: object) -> bool:
    if program not in one.programs:
        return False
    able = one.programs[program]
    return able is None or value in able
