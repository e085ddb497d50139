"""G4: the verdict uses the reach measured during training; later measurements have priority."""

import pytest

from weft.diagnose.verdict import verdict, worst


@pytest.mark.parametrize(
    ("measures", "kind"),
    [
        ([{1: 0.5, 10: 0.5**10}], "vanishes"),
        ([{1: 2.0, 10: 2.0**10}], "explodes"),
        ([{1: 1.0, 50: 0.2}], "stable"),
        ([{1: 1.0, 10: 1e-9}, {1: 1.0, 10: 0.9}, {1: 1.0, 10: 0.8}], "stable"),  # vanished only at first
        ([{1: 1.0, 10: 0.9}, {1: float("inf"), 10: float("nan")}], "explodes"),
        ([{1: 1e3, 20: 1e-8}], "explodes"),
        ([{1: 0.001}], "vanishes"),
    ],
)
def test_the_later_measures_decide(measures: list[dict[int, float]], kind: str) -> None:
    assert verdict(measures).kind == kind


def test_the_sentence_says_where_and_what_to_do() -> None:
    found = verdict([{1: 0.7, 5: 0.2, 10: 0.004, 20: 1e-6}], name="layer 1")
    assert found.sentence.startswith(
        "layer 1: the gradient vanishes (reach 0.7 at lag 1, 0.004 at lag 10); if the task"
    )
    assert "there is no verdict" in verdict([]).sentence


def test_of_several_layers_the_exploding_one_comes_first() -> None:
    found = {
        "a": verdict([{1: 1.0}], name="a"),
        "b": verdict([{1: 1e-9}], name="b"),
        "c": verdict([{1: 1e9}], name="c"),
    }
    assert worst(found).sentence.startswith("c: the gradient explodes")
