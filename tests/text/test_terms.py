"""Terms in translations: found at their places, put there, and named if they stand elsewhere or twice."""

import numpy as np

from weft.text.segments import Links, WrittenSentence
from weft.text.terms import Term, rivals, with_terms, wrong_terms
from weft.words import spans

SOURCE = "Delete the chart now"
CHART = Term(11, 16, "gráfica")


def written(text: str, *looks: int) -> WrittenSentence:
    """A translation each of whose words looks at one word of the source."""
    weights = np.zeros((len(looks), 4), np.float32)
    weights[np.arange(len(looks)), looks] = 1
    return WrittenSentence(text, Links(weights, spans(SOURCE), spans(text)))


def test_a_term_takes_the_place_of_the_word_that_looks_at_it() -> None:
    found = written("Eliminar el gráfico ahora", 0, 1, 2, 3)
    assert rivals([CHART], found) == ("gráfico",)
    assert with_terms(SOURCE, [CHART], found) == "Eliminar el gráfica ahora"
    assert wrong_terms(SOURCE, [CHART], written("Eliminar la gráfica ahora", 0, 1, 2, 3)) == ""


def test_the_forms_of_a_word_count_and_articles_and_marks_do_not() -> None:
    found = written("Eliminar gráficos de gráfico .", 0, 2, 2, 2, 2)
    assert rivals([CHART], found) == ("gráfico", "gráficos")


def test_a_term_beside_its_other_word_or_at_another_place_is_named() -> None:
    doubled = written("Eliminar gráfica el gráfico ahora", 0, 1, 1, 2, 3)
    assert "'gráfica' may not be in the place of 'chart', where 'gráfico' stands" in wrong_terms(
        SOURCE, [CHART], doubled
    )
    assert "may not be in the place of 'chart';" in wrong_terms(
        SOURCE, [CHART], written("Eliminar ahora gráfica", 0, 3, 3)
    )
    assert "expected the term 'gráfica' for 'chart', got none" in wrong_terms(
        SOURCE, [CHART], written("Eliminar ahora", 0, 3)
    )


def test_a_term_is_put_nowhere_if_no_word_looks_at_it_or_nothing_is_known_of_the_words() -> None:
    assert with_terms(SOURCE, [CHART], written("Eliminar ahora", 0, 3)) == "Eliminar ahora"
    assert with_terms(SOURCE, [CHART], WrittenSentence("Eliminar eso")) == "Eliminar eso"
    assert rivals([CHART], WrittenSentence("Eliminar eso")) == ()
    assert wrong_terms(SOURCE, [CHART], WrittenSentence("Eliminar gráfica")) == ""


def test_a_term_does_not_take_the_place_of_another_one() -> None:
    """`tabla` stands where attention looks at both; the second term has no word of its own."""
    table = Term(7, 10, "tabla")
    found = written("Eliminar tabla ahora", 0, 2, 3)
    assert with_terms(SOURCE, [table, CHART], found) == "Eliminar tabla ahora"


def test_a_term_takes_the_place_of_a_word_only_and_is_not_glued_to_another() -> None:
    """Not that of a full stop or a number; and "25nos" is one word, of which links may have two."""
    for stop in (".", "97"):
        found = written(f"Eliminar eso {stop}", 0, 1, 2)
        assert with_terms(SOURCE, [CHART], found) == found.text
    text = "Eliminar 25nos"
    glued = WrittenSentence(text, Links(np.eye(3, 4), spans(SOURCE), [(0, 8), (9, 11), (11, 14)]))
    assert with_terms(SOURCE, [CHART], glued) == "Eliminar 25 gráfica"
    source, han = "Delete it", "删除它"
    found = WrittenSentence(han, Links(np.eye(2)[[0, 0, 1]], spans(source), spans(han)))
    assert with_terms(source, [Term(7, 9, "图表")], found) == "删除图表"
