"""Models of texts as programs: in Python and as a page they answer as `weft predict`, without Weft."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

pytest.importorskip("onnxscript", reason="pip install -e .[export]")

from tests import toys
from tests.commands import labelled, prose
from tests.commands.exporting import answers, exported, run_program, run_translator, same
from tests.commands.shell import weft
from tests.export import pages
from tests.export.runs import TEXTS, translator
from tests.shared import copied, shared_run

pytestmark = pytest.mark.slow  # each export takes seconds

Make = Callable[[Path], Path]


class Page(NamedTuple):
    """Settings of a page, and the options of `weft predict` that mean the same."""

    settings: Mapping[str, Any] = MappingProxyType({})
    options: Sequence[str] = ()


class Case(NamedTuple):
    """A run, lines for it, and options that `weft predict` and the program have."""

    run: Make
    lines: Sequence[str]
    options: Sequence[Sequence[str]] = ((),)
    page: Page | None = Page()


def trained(make: Make, *changes: str) -> Make:
    """Trains a run in a folder; {toy} in a change is the folder of its data."""

    def run(folder: Path) -> Path:
        recipe = make(folder / "toy")
        every = [change.replace("{toy}", str(folder / "toy")) for change in changes]
        weft("train", recipe, "--run", folder / "run", "training.max_updates=30", *every, code=0)
        return folder / "run"

    return run


def calibrated(make: Make) -> Make:
    """The run after `weft evaluate --calibrate`."""

    def run(folder: Path) -> Path:
        found = copied(make(folder), folder / "own")
        weft("evaluate", found, "--split", "valid", "--calibrate", code=0)
        return found

    return run


def shared(name: str) -> Make:
    return lambda folder: shared_run(name)


def texts(*changes: str) -> Make:
    return trained(labelled.make_texts, *changes)


def with_vectors(folder: Path) -> Path:
    """The recipe of `make_texts`, with a file of vectors whose words training never saw."""
    (recipe := labelled.make_texts(folder)).with_name("v.txt").write_text("great 1 2\nzzz 1 1\nfilm 0 1\n")
    return recipe


def several(*changes: str) -> Make:
    return trained(labelled.make_several, *labelled.SEVERAL, "data.folder={toy}", *changes)


def random(**settings: Any) -> Make:
    """A translator with random weights."""
    return lambda folder: translator(folder / "run", **settings)


ODD = [
    "the cat sat",
    "",
    "  one dog ran home .",
    "the <eos> sat",
    "zebra é\u0301 ﬁ № 5",
    "on\u00a0a mat",
    ".",
]
BEAMS = (("--beam", "1"), ("--beam", "5"))
WIDE = Page({"beam": 4}, ("--beam", "4"))
SEARCHED = Page({"beam": 2}, ("--set", "search=beam", "--beam", "2"))
MIXED = [*ODD, *TEXTS[:40]]
NAMED = ["beta gamma . It is kokomila alpha .", "delta alpha . It is Ibsen omega .", "zyxwv", "", "alpha ."]
SEVERAL = ["a great film", "  it   was awful", "zzz qqq", "A GREAT film .", "é\u0301 ﬁ\u00a0x", "film " * 40]
CLASSIFIED = [*SEVERAL, *(text for _, text in labelled.texts(60, 7))]
SEVERAL += [text for _, text in labelled.topics(60, 7)]
SCORES = ((), ("--scores",))
TAGGED = ["telo beding .", "x y", "ab" * 40 + " Ünknown", "é\u0301 ﬁ ing"]
GAPS = ["the [MASK] can purr", "[MASK]", "a [MASK] can [MASK]", "[MASK][MASK] can bark [MASK]"]
GAPS += ["  the   cat\u00a0[MASK]  purr ", "zebra [MASK] é\u0301 ﬁ <eos>", "the[MASK]purr"]
GAPS += ["The dog [mask] [MASK]."]
RANKED = ((), ("--scores",), ("--nbest", "3"), ("--nbest", "99", "--scores"))
PIECES = ("data.vocabulary.kind=bpe", "data.vocabulary.size=29", "data.vocabulary.lowercase=true")
LEARNED = "model.encoder={use: transformer, size: 16, num_layers: 1, num_heads: 2, positions: learned"
WORDS = {"kind": "word", "lowercase": True}

CASES: dict[str, Case] = {
    "classifier": Case(shared("classify"), CLASSIFIED, SCORES),
    "calibrated": Case(calibrated(texts()), CLASSIFIED, SCORES, None),
    "letters": Case(
        texts("model.bag={ngrams: 1, edges: true, letters: [2, 4], weight: tfidf}"), CLASSIFIED, SCORES
    ),
    "vectors": Case(
        trained(
            with_vectors,
            "model.bag={letters: [2, 4], weight: tfidf, solve: true}",
            "model.embedding.vectors={toy}/v.txt",
            "training.metric=loss",
        ),
        CLASSIFIED,
        SCORES,
    ),
    "bayes": Case(texts("model.bag={ngrams: 2, naive_bayes: true}"), CLASSIFIED, SCORES),
    "frequency": Case(texts("model.bag={ngrams: 3, weight: frequency}"), CLASSIFIED, SCORES, None),
    "filters": Case(texts("model.encoder={use: filters}"), CLASSIFIED, SCORES, None),
    "several labels": Case(calibrated(several()), SEVERAL, SCORES),
    "several of a bag": Case(several("model.bag={ngrams: 1, weight: tfidf}"), SEVERAL, SCORES, None),
    "tagger": Case(shared("tag"), TAGGED),
    "tags alone": Case(trained(labelled.make_sentences, "model.crf=false"), TAGGED, page=None),
    "tags of letters": Case(
        trained(labelled.make_sentences, "model.embedding.characters=recurrent"), TAGGED, page=None
    ),
    "gaps": Case(shared("masked"), GAPS, RANKED),
    "gaps in characters": Case(trained(toys.gaps, "data.vocabulary.kind=character"), GAPS, RANKED),
    "gaps in pieces": Case(trained(toys.gaps, *PIECES, f"{LEARNED}, max_length: 31}}"), GAPS, RANKED, None),
    "translator": Case(shared("translate"), ODD, BEAMS, WIDE),
    "without attention": Case(shared("translate without attention"), ODD, BEAMS, WIDE),
    "transformer": Case(random(), MIXED, ((),), WIDE),
    "rotary": Case(random(positions="rotary", norm="after", activation="swiglu"), MIXED, page=None),
    "learned": Case(
        random(positions="learned", max_length=128, vocabulary={"kind": "unigram", "shared": False}),
        MIXED,
        page=None,
    ),
    "relative": Case(random(positions="relative", norm_kind="rms", vocabulary=WORDS), MIXED, page=None),
    "language": Case(shared("language"), ODD, BEAMS, SEARCHED),
    "windows": Case(shared("language in windows"), ODD, BEAMS, SEARCHED),
    "lines": Case(shared("language in lines"), ODD, BEAMS, SEARCHED),
    "characters": Case(
        trained(lambda folder: prose.make(folder, kind="character", batches="windows")), ODD, BEAMS, None
    ),
    "pointer": Case(shared("summarise"), NAMED),
    "summariser": Case(shared("summarise without copying"), NAMED),
}


@pytest.mark.parametrize("name", CASES)
def test_the_program_and_the_page_answer_as_predict(name: str, tmp_path: Path) -> None:
    make, lines, every, page = CASES[name]
    run, text = make(tmp_path), "".join(f"{line}\n" for line in lines)
    assert "answers equal to Weft's: " in exported(run, tmp_path / "out").out
    for options in every:
        ours = weft("predict", run, *options, stdin=text.encode(), code=0).out
        theirs = run_translator(tmp_path / "out", text, *options)
        assert same(ours.removesuffix("\n").split("\n"), theirs), options
        assert len(set(theirs)) > 1
    if page is None or pages.NODE is None:
        return
    pages.export(run, tmp_path / "page", "--float32")
    found = pages.answers(tmp_path / "page", lines, tmp_path, **page.settings)
    ours = weft("predict", run, *page.options, stdin=text.encode(), code=0).out
    end = "\n" if ours.count("\n") == len(lines) else "\n\n"  # of a sentence with tags
    assert same(
        ours.removesuffix(end).split(end), [None if one.get("lacks") else one["text"] for one in found]
    )


REFUSED: dict[str, tuple[Make, str, list[str]]] = {
    "an empty text": (shared("classify"), " \na great film\n", ["line 1: the text is empty; write one"]),
    "no gap, or too long": (
        trained(toys.gaps, f"{LEARNED}, max_length: 13}}"),
        "a dog\nthe [MASK] can purr\n" + "a " * 11 + "[MASK]\n" + "a " * 10 + "[MASK]\n",
        ["line 1: expected [MASK]", "line 3: expected at most 13"],
    ),
    "too long": (
        random(positions="learned", max_length=12, data={"max_length": 10}),
        "a " * 99 + "\nthe cat\n",
        ["line 1: expected at most 12 tokens"],
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_texts_that_cannot_be_answered_do_not_stop_the_others(name: str, tmp_path: Path) -> None:
    make, text, said = REFUSED[name]
    run = make(tmp_path)
    exported(run, tmp_path / "out")
    found, ours = answers(tmp_path / "out", text, without=()), weft("predict", run, stdin=text.encode())
    assert (found.returncode, found.stdout) == (ours.code, ours.out) == (3, ours.out)
    assert len(found.stderr.splitlines()) == len(said)
    assert all(one in line for one, line in zip(said, found.stderr.splitlines(), strict=True))


@pytest.mark.parametrize(
    ("task", "options", "said"),
    [
        ("classify", ("--beam", "2"), "--beam: a model of this kind has no such option"),
        ("masked", ("--nbest", "0"), "--nbest: expected at least 1, got 0"),
    ],
)
def test_wrong_options_are_told(task: str, options: tuple[str, ...], said: str, tmp_path: Path) -> None:
    exported(shared_run(task), tmp_path / "out")
    found = answers(tmp_path / "out", "the [MASK] can purr\n", *options, without=())
    assert found.returncode and not found.stdout and found.stderr.endswith(f"{said}\n")


@pytest.mark.parametrize(
    ("name", "graph", "said"),
    [("translate", "start", "BLEU of "), ("masked", "pieces", "answers equal to float32's: ")],
)
def test_int8_says_what_it_costs(name: str, graph: str, said: str, tmp_path: Path) -> None:
    run = shared_run("translate") if name == "translate" else trained(toys.gaps)(tmp_path)
    for file in (tmp_path / "toy").glob("*.txt"):
        file.unlink()  # the inputs are random words then
    answer = exported(run, tmp_path / "out", "--int8")
    assert "8-bit weights: " in answer.out and said in answer.out
    card = (tmp_path / "out" / "README.md").read_text()
    assert "8-bit weights: " in card and "weft_onnx.py" in card
    assert len(run_program(tmp_path / "out", "the [MASK] can purr\n")) == 1
    onnx = pytest.importorskip("onnx")
    kinds = {node.op_type for node in onnx.load(tmp_path / "out" / f"{graph}.onnx").graph.node}
    assert any("Integer" in kind or "Quantize" in kind for kind in kinds), kinds
