"""Every setting of a search, in every program: it is honoured, with the answers of torch, or refused by name.

One export serves all settings: the graphs do not depend on them, so the law changes what the program reads.
`make test` has a diagonal of the table, `make test-all` all of it.
"""

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from tests.commands import corpus, prose
from tests.export import pages, runs
from tests.shared import shared_run
from tests.slow import slow
from weft.errors import ConfigError
from weft.export.formats import ctranslate2, huggingface
from weft.export.formats.argos import Argos
from weft.export.formats.ctranslate2 import CTranslate2
from weft.export.formats.huggingface import HuggingFace
from weft.export.formats.onnx import Onnx, write_graphs
from weft.export.formats.web import Web
from weft.export.network import LINES, check_search, network
from weft.export.packed import pack
from weft.export.programs import writers
from weft.export.programs.continuing import TextContinuer
from weft.export.programs.rewriting import Rewriter
from weft.export.programs.writers import shaped
from weft.run import open_run
from weft.search.filters import narrow
from weft.search.offered import PROGRAMS, Decoding, Narrowing, Offer, SearchSettings, offers, unable, written
from weft.tasks.export import Graph, ModelExport
from weft.tasks.language.decoding import LanguageDecoding
from weft.tasks.seq2seq.translator import as_searched
from weft.text.vocabulary import EOS

FORMATS = {"onnx": Onnx, "web": Web, "ctranslate2": CTranslate2, "argos": Argos, "huggingface": HuggingFace}
BEAM: dict[str, Any] = {"search": "beam", "beam": 4, "length_penalty": 1.5}
FEW, MANY = 14, 100
"""Inputs of a test; the slow ones have many."""

OTHER: dict[type, dict[str, Any]] = {
    Decoding: {
        "temperature": 0.5, "top_k": 3, "top_p": 0.4, "min_p": 0.3, "typical_p": 0.3, "search": "greedy",
        "beam": 2, "nbest": 3, "mbr": 5, "length_penalty": 0.0, "seed": 9, "batch_rows": 3,
        "cuda_graphs": True, "max_ratio": 0.0, "max_extra": 3, "stop": "full", "normalisation": "gnmt",
        "coverage": 1.5, "diverse": 2, "diversity": 3.0, "prefix": "en", "require": ("es",),
        "glossary": Path("glossary.tsv"), "terms": "annotate", "no_repeat_ngram": 1, "min_length": 15,
        "mean": "log", "verbatim": False, "strict": True, "shortlist": 7, "precision": "bfloat16",
        "domain": "legal",
    },
    LanguageDecoding: {
        "temperature": 0.5, "top_k": 3, "top_p": 0.4, "min_p": 0.3, "typical_p": 0.3, "search": "greedy",
        "beam": 2, "nbest": 3, "mbr": 5, "length_penalty": 0.0, "seed": 9, "batch_rows": 3,
        "cuda_graphs": True, "max_tokens": 7, "max_lines": 3, "stop": ("e",), "mixture": 0.3, "order": 3,
        "cache": 500, "stride": 9,
    },
}  # fmt: skip
"""A value of each setting that is not its default."""

AROUND = {"max_extra": {"max_ratio": 0.0}, "max_ratio": {"max_extra": 2}}
"""What else is set so that a setting shows."""

SILENT = ("batch_rows", "cuda_graphs", "mean", "diversity", "seed", "order", "stride", "precision", "terms")
"""Settings that change no answer of one model's beam search, or only its rounding."""


@dataclass(frozen=True)
class Case:
    """A setting with another value, and the search around it."""

    kind: type[SearchSettings]
    offer: Offer
    value: Any

    def settings(self) -> SearchSettings:
        """The search of a run."""
        plain: dict[str, Any] = dict(BEAM)
        if self.offer.search == "sample":
            plain["search"] = "sample"
        if self.kind is LanguageDecoding:
            plain["max_tokens"] = 20
        plain |= AROUND.get(self.offer.name, {})
        return self.kind(**plain | {self.offer.name: self.value})

    def before(self) -> SearchSettings:
        """The same without the setting."""
        return replace(self.settings(), **{self.offer.name: BEAM.get(self.offer.name, self.offer.default)})

    def honours(self, to: str) -> bool:
        """Whether a program does the search."""
        return self.offer.name not in [one.name for one in unable(self.settings(), to)]

    @property
    def drawn(self) -> bool:
        """Whether answers are random, so that only their distribution can be compared."""
        return self.settings().search == "sample"


def cases(kind: type[SearchSettings]) -> list[Any]:
    more = [("stop", "worst"), ("stop", "never"), ("search", "sample")] if kind is Decoding else []
    pairs = [*OTHER[kind].items(), *more]
    found = [Case(kind, offers(kind)[name], value) for name, value in pairs]
    return [pytest.param(one, id=f"{one.offer.name} {one.value}") for one in found]


TRANSLATING, CONTINUING = cases(Decoding), cases(LanguageDecoding)


@pytest.mark.parametrize("kind", OTHER)
def test_every_setting_is_in_the_table(kind: type[SearchSettings]) -> None:
    assert OTHER[kind].keys() == offers(kind).keys()
    assert all(value != offers(kind)[name].default for name, value in OTHER[kind].items())
    assert set(FORMATS) == set(PROGRAMS)


class TorchGraph:
    """A graph run by torch: the law is about searches, and other tests compare the graphs."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    @torch.no_grad()
    def __call__(self, given: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        inputs = [torch.from_numpy(np.ascontiguousarray(given[name])) for name in self.graph.examples[0]]
        found = self.graph.module(*inputs)
        every = found if isinstance(found, tuple) else (found,)
        return {name: one.numpy() for name, one in zip(self.graph.outputs, every, strict=True)}


def about(how: SearchSettings) -> dict[str, Any]:
    """What an export writes of a search for its program."""
    return {
        "decoding": written(how),
        **({"ends": how.max_lines} if isinstance(how, LanguageDecoding) else {}),
    }


class Exported(NamedTuple):
    """A run, its graphs, and the program that runs them."""

    opened: Any
    form: ModelExport
    program: Any
    lines: list[str]

    def with_search(self, how: SearchSettings) -> None:
        """Let the run search so."""
        self.opened.pipeline.decoding = self.opened.task.decoding = how

    def in_torch(self, how: SearchSettings, count: int = FEW) -> list[str]:
        self.with_search(how)
        predictor = self.opened.pipeline.predictor(self.opened.model)
        found = predictor.answers(self.lines[:count])
        return [as_searched(one) if self.form.program == "rewriting" else one.text() for one in found]

    def in_python(self, how: SearchSettings, count: int = FEW) -> list[str]:
        self.program.about |= about(how)
        return [self.program(line) for line in self.lines[:count]]


def exported(name: str, folder: Path, softer: float, end: float, lines: list[str]) -> Exported:
    """A shared run whose model is less sure, so that settings of its search change answers."""
    opened = open_run(shared_run(name), device="cpu")
    with torch.no_grad():
        opened.model.head.weight.mul_(softer)
        opened.model.head.bias.mul_(0.4)[EOS] += end
    form = opened.pipeline.model_export(opened.model)
    assert form is not None
    for file, content in form.files.items():
        (folder / file).write_bytes(content)
    made = {"rewriting": Rewriter, "continuing": TextContinuer}[form.program]
    by_name = {graph.name: graph for graph in form.graphs}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writers, "OnnxGraph", lambda path: TorchGraph(by_name[path.stem]))
        return Exported(opened, form, made(folder, json.loads(json.dumps(form.settings))), lines)


def texts(words: Sequence[str]) -> list[str]:
    chance = random.Random(3)
    return [" ".join(chance.choices(words, k=chance.randint(1, 6))) for _ in range(MANY)]


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    lines = texts(list(corpus.WORDS))
    lines[12:12] = ["3.14", "%s beta"]
    return exported("translate", tmp_path_factory.mktemp("translator"), 0.16, 1.0, lines)


@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    return exported("language in windows", tmp_path_factory.mktemp("writer"), 0.3, 0.0, texts(prose.WORDS))


@pytest.mark.parametrize("case", [*TRANSLATING, *CONTINUING])
@pytest.mark.parametrize("to", FORMATS)
def test_a_setting_that_a_program_lacks_is_refused_by_name(
    to: str, case: Case, request: pytest.FixtureRequest
) -> None:
    given = given_for(case, request)
    given.with_search(case.settings())
    own = ("search", "beam", "length_penalty") if to == "argos" else LINES
    if case.honours(to) or case.offer.name in own:
        check_search(given.opened, to, own)
        return
    names = "|".join([case.offer.name, *AROUND.get(case.offer.name, {})])
    with pytest.raises(ConfigError, match=rf"^decoding\.({names}): --to {to} "):
        check_search(given.opened, to, own)


def test_a_program_names_a_code_that_became_part_of_a_word(translator: Exported) -> None:
    kept = translator.program.kept
    assert kept.lost_codes("alpha F5, Cmd+Q, 19.99 EUR", "uno5, Cmd+., 19,99 €") == ["F5", "Q"]
    assert kept.lost_codes("alpha F5, Cmd+Q", "uno F5 (Cmd+Q)") == []
    assert "lacks F5 " in kept.lacking("alpha F5", "uno5")


@pytest.mark.parametrize("to", ["ctranslate2", "huggingface"])
def test_an_engine_that_ends_at_a_line_end_says_so(to: str, writer: Exported) -> None:
    writer.with_search(LanguageDecoding(max_lines=12))
    (line,) = check_search(writer.opened, to)
    assert "max_lines 12 (it ends an answer at the first line end)" in line


@pytest.mark.parametrize("to", ["onnx", "web"])
@pytest.mark.parametrize("name", ["diverse", "shortlist"])
def test_a_program_asks_before_it_is_written(to: str, name: str, translator: Exported) -> None:
    translator.with_search(Decoding(**BEAM | {name: OTHER[Decoding][name]}))
    with pytest.raises(ConfigError, match=f"decoding.{name}"):
        FORMATS[to]().check(translator.opened, None)


def changes(case: Case, answers: list[str], before: list[str]) -> bool:
    return case.offer.name in SILENT or answers != before


def honoured(every: list[Any]) -> list[Any]:
    """Cases whose answers must be equal, in a program of graphs, which computes in float32."""
    found = [one for one in every if one.values[0].honours("onnx") and not one.values[0].drawn]
    return [one for one in found if one.values[0].offer.name != "precision"]


HONOURED = [*honoured(TRANSLATING), *honoured(CONTINUING)]


def given_for(case: Case, request: pytest.FixtureRequest) -> Exported:
    found: Exported = request.getfixturevalue("translator" if case.kind is Decoding else "writer")
    return found


def fast(every: list[Any]) -> list[Any]:
    """Those that change answers; of settings of both tasks, the first."""
    shown = [one for one in every if one.values[0].offer.name not in SILENT]
    first = {one.id: one for one in reversed(shown)}
    return [one if first.get(one.id) is one else slow([one])[0] for one in every]


@pytest.mark.parametrize("case", fast(HONOURED))
def test_a_program_honours_a_setting(case: Case, request: pytest.FixtureRequest) -> None:
    given = given_for(case, request)
    ours = given.in_torch(case.settings())
    assert given.in_python(case.settings()) == ours
    assert case.offer.name in SILENT or ours != given.in_torch(case.before())


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Exported], Path]:
    """The folder of the ONNX graphs of a run, written once."""
    folders: dict[str, Path] = {}

    def folder(given: Exported) -> Path:
        name = given.form.program
        if name not in folders:
            folders[name] = tmp_path_factory.mktemp(name)
            write_graphs(given.form, folders[name])
        return folders[name]

    return folder


def in_page(given: Exported, how: SearchSettings, graphs: Path, folder: Path, count: int = MANY) -> list[str]:
    """What the page answers."""
    paths = {graph.name: graphs / f"{graph.name}.onnx" for graph in given.form.graphs}
    settings = {**given.form.settings, **about(how)}
    (folder / "page").mkdir()
    (folder / "page" / "model.weft").write_bytes(pack(paths, settings, given.form.files, int8=False))
    return [one["text"] for one in pages.answers(folder / "page", given.lines[:count], folder)]


@pages.node
@pytest.mark.slow
@pytest.mark.parametrize("case", HONOURED)
def test_a_page_honours_a_setting(
    case: Case, graphs: Callable[[Exported], Path], request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    given = given_for(case, request)
    found = in_page(given, case.settings(), graphs(given), tmp_path)
    assert found == given.in_torch(case.settings(), MANY)


NARROWED = [case for case in TRANSLATING if case.values[0].offer.name in offers(Narrowing)]


@pytest.mark.parametrize("case", [one for one in NARROWED if one.values[0].honours("onnx")])
def test_a_program_draws_from_what_torch_draws_from(case: Case) -> None:
    logits = torch.randn(7, 31, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    how = case.settings()
    ours = narrow(logits, how).softmax(1).numpy()
    theirs = np.stack([shaped(row.copy(), written(how)) for row in logits.numpy()])
    np.testing.assert_allclose(theirs, ours, atol=1e-12)
    assert not np.allclose(ours, logits.softmax(1).numpy())


@pytest.mark.parametrize("kind", ["translator", "writer"])
def test_a_program_that_samples_one_token_is_greedy(kind: str, request: pytest.FixtureRequest) -> None:
    given: Exported = request.getfixturevalue(kind)
    how = (Decoding if kind == "translator" else LanguageDecoding)(search="sample", top_k=1, seed=4)
    assert given.in_python(how) == given.in_torch(replace(how, search="greedy"))


@pages.node
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["translator", "writer"])
def test_a_page_that_samples_one_token_is_greedy(
    kind: str, graphs: Callable[[Exported], Path], request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    given: Exported = request.getfixturevalue(kind)
    how = (Decoding if kind == "translator" else LanguageDecoding)(search="sample", top_k=1, seed=4)
    found = in_page(given, how, graphs(given), tmp_path, FEW)
    assert found == given.in_torch(replace(how, search="greedy"))


def told(case: Case, to: str) -> bool:
    """Whether an engine is told of a setting, or the person who calls it, in the folder's README."""
    by_hand = to == "ctranslate2" and case.offer.name in ("max_ratio", "max_extra", "max_tokens")
    if by_hand or case.offer.name in SILENT or case.offer.default is True:
        return True
    if to == "argos":
        return case.drawn  # another search, which is refused
    options = {"ctranslate2": ctranslate2.options, "huggingface": huggingface.options}[to]
    return bool(options(case.settings()) != options(case.before()))


@pytest.mark.parametrize("to", ["ctranslate2", "argos", "huggingface"])
def test_an_engine_is_told_what_it_honours(to: str) -> None:
    own = {"search", "beam", "length_penalty"} if to == "argos" else set()
    same = {"stop", "max_lines"} | ({"max_tokens"} if to == "argos" else set())  # what it does anyway
    every = [one.values[0] for one in (*TRANSLATING, *CONTINUING)]
    silent = [one for one in every if one.honours(to) and not told(one, to)]
    assert {one.offer.name for one in silent} <= own | same


ENGINE_SETTINGS = ("beam", "length_penalty", "search", "stop", "no_repeat_ngram", "min_length")
SEARCHED = [
    one for one in TRANSLATING if one.values[0].offer.name in ENGINE_SETTINGS and not one.values[0].drawn
]
LIMIT = 40
"""Tokens of an answer. Transformers may rank one that is cut there before one that ended; Weft never does."""

ENGINES: Mapping[str, str] = {"ctranslate2": "ctranslate2", "huggingface": "transformers"}


@pytest.fixture(scope="module", params=ENGINES)
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The name of a program for Transformers, Weft's model, and the same model run by the program."""
    to = request.param
    pytest.importorskip(ENGINES[to], reason="pip install --group export-tests")
    folder = tmp_path_factory.mktemp(to)
    opened = open_run(runs.translator(folder / "run", end=3.0), device="cpu")
    (folder / "out").mkdir()
    found = network(opened, to)
    FORMATS[to]().write(opened, folder / "out", None)
    if to == "huggingface":
        from weft.export.formats.huggingface import Library

        return to, found, Library(found, folder / "out")
    from weft.export.formats.ctranslate2 import Engine
    from weft.export.formats.tokenizer import names

    return to, found, Engine(found, folder / "out", names(found.source, to), names(found.target, to))


@pytest.mark.slow
@pytest.mark.parametrize("case", SEARCHED)
def test_an_engine_honours_a_setting(case: Case, engine: Any) -> None:
    to, found, other = engine
    if not case.honours(to):
        pytest.skip("refused by name")
    rows = [row for row in found.encode(runs.TEXTS[:MANY]) if row]
    how = replace(case.settings(), stop={"ctranslate2": "full"}.get(to, "worst"))
    how = replace(how, stop=case.value) if case.offer.name == "stop" else how
    ours = [found.search(row, how, LIMIT) for row in rows]
    theirs = [other.search(row, how, LIMIT) for row in rows]
    pairs = zip(ours, theirs, strict=True)
    differing = [one for one, two in pairs if one != two and not (to == "huggingface" and len(two) == LIMIT)]
    assert differing == []
