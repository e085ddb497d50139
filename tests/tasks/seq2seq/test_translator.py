"""Numbers whose signs a vocabulary lacks are copied whole; what cannot be placed is named."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from weft.models import Generator
from weft.nn import Categorical, RecurrentDecoder, RecurrentEncoder, Tokens
from weft.search.offered import Decoding
from weft.tasks.predictor import Place
from weft.tasks.seq2seq.batch_search import SourceReader
from weft.tasks.seq2seq.translator import SearchResult, Translator
from weft.text.segments import Links, proportional
from weft.text.vocabulary import Vocabulary

WHOLE = [
    "1,250", "1'250'000", "-5", "5-10", "5%", "10:30", "12/05/2026", "$19.99", "3 + 4 = 7", "#12", "A-4/B",
    "19.99 EUR", "8:00-17:00", "F12", "Ctrl+F5", "192.168.0.1/24",
]  # fmt: skip

pytestmark = pytest.mark.filterwarnings("ignore::weft.errors.DataWarning")


def translating(
    monkeypatch: pytest.MonkeyPatch, written: Mapping[str, Sequence[str]], **decoding: Any
) -> Translator:
    """A translator that writes these texts, whose vocabulary has no signs."""
    words = Vocabulary.train(["we bought 2345678 houses compramos casas"], kind="character", size=None)
    encoder = RecurrentEncoder(3, sizes=(5,))
    decoder, size = RecurrentDecoder(3, encoder, sizes=(5,)), len(words)
    model = Generator(Tokens(size, 3), decoder, Categorical(5, size), encoder=encoder).eval()

    def batch(self: Translator, numbers: Sequence[int], *, lines: Sequence[str], **_: Any) -> Iterator[Any]:
        for number in numbers:
            texts = written.get(lines[number], ["compramos 44 casas"])[: self.decoding.nbest]
            yield [SearchResult(text, -1.0, -1.0, [5]) for text in texts]

    def links(self: Translator, line: str, found: SearchResult, *, guessed: bool = True) -> Links | None:
        return proportional(line, found.text)

    monkeypatch.setattr(Translator, "_batch", batch)
    monkeypatch.setattr(Translator, "links", links)
    reader = SourceReader(words, cut=None, copies=False)
    how = Decoding(**{"search": "beam", "beam": 3, **decoding})
    return Translator(model, reader, words, how, keeps="parts", languages=("en", "es"))


@pytest.mark.parametrize("number", WHOLE)
def test_a_number_with_signs_that_the_vocabulary_lacks_is_copied_whole(
    monkeypatch: pytest.MonkeyPatch, number: str
) -> None:
    translator = translating(monkeypatch, {"we bought 2 houses": ["compramos 2 casas"]})
    assert translator.predict(f"we bought {number} houses") == f"compramos {number} casas"


def test_a_comma_that_stands_nowhere_is_named_and_not_put_beside_a_word(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (found,) = translating(monkeypatch, {}).translate(["we bought, houses"])[0]
    assert found.text == "compramos 44 casas" and found.lost.startswith("the answer lacks ,; correct it")


def test_of_several_hypotheses_the_first_with_the_numbers_of_the_source_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts = ["compramos 2 2 casas", "compramos 2 casas", "las 2 casas"]
    (found,) = translating(monkeypatch, {"we bought 2 houses": texts}).translate(["we bought 2 houses"])[0]
    assert (found.text, found.lost, found.searched) == ("compramos 2 casas", "", "compramos 2 2 casas")


def test_every_answer_with_other_numbers_is_named_and_refused_if_strict(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    line, written = "we bought 7 houses", {"we bought 7 houses": ["compramos 7 casas 44 44"] * 3}
    (found,) = translating(monkeypatch, written).translate([line])[0]
    assert found.lost == "expected the numbers of the source, got also 44; correct the translation"
    strict = translating(monkeypatch, written, strict=True)
    (wrong,) = strict.attempts([strict.parse(line, Place("input"))])
    assert isinstance(wrong, ValueError) and "got also 44" in str(wrong)


def test_pairs_of_a_stream_are_sources_and_their_translations(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["we bought 7 houses", "we bought 44 houses", "houses"]
    translator = translating(monkeypatch, {"we bought 7 houses": ["compramos 7 casas"]})
    found = list(translator.pairs(iter(lines), window=2))
    assert [source for source, _ in found] == lines
    assert [one for _, one in found] == list(translator.translate(lines))
