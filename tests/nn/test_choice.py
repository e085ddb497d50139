"""A kernel is measured once on a machine, and what cannot be kept is not decided by a clock."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from weft.nn.kernels import choice, measured
from weft.nn.kernels.measured import Measured

WAYS: dict[str, Callable[[], object]] = {"one": lambda: None, "two": lambda: None, "three": lambda: None}


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> object:
    before = choice.taken()
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path / "cache"))
    choice.keep({})
    yield
    choice.keep(before)


def fastest(monkeypatch: pytest.MonkeyPatch, name: str) -> list[str]:
    """Let the clock say a name; what it was asked is listed."""
    asked: list[str] = []

    def says(ways: Mapping[str, object]) -> tuple[str, str]:
        asked.append(", ".join(ways))
        return name, "1 ms"

    monkeypatch.setattr(choice, "_fastest", says)
    return asked


def test_the_next_process_takes_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = fastest(monkeypatch, "two")
    assert choice.choose("a product", WAYS) == "two"
    choice.keep({})  # as a new process
    fastest(monkeypatch, "three")
    assert choice.choose("a product", WAYS) == "two"
    assert asked == ["one, two, three"]
    assert choice.reasons() == {"a product": "1 ms"}
    assert list(measured.everything()) == [("a product", Measured("two", "1 ms"))]


def test_other_ways_are_another_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    fastest(monkeypatch, "two")
    choice.choose("a product", WAYS)
    choice.keep({})
    fastest(monkeypatch, "three")
    assert choice.choose("a product", {name: WAYS[name] for name in ("one", "three")}) == "three"


def test_another_machine_measures_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    fastest(monkeypatch, "two")
    choice.choose("a product", WAYS)
    choice.keep({})
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")
    assert "ONEDNN_MAX_CPU_ISA=AVX2" in measured.machine()
    fastest(monkeypatch, "three")
    assert choice.choose("a product", WAYS) == "three"


def test_of_two_processes_that_measure_at_once_the_first_to_write_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def slower(ways: Mapping[str, object]) -> tuple[str, str]:
        measured.keep("a product", list(ways), Measured("two", "the other process"))
        return "three", "this process"

    monkeypatch.setattr(choice, "_fastest", slower)
    assert choice.choose("a product", WAYS) == "two"
    assert choice.reasons() == {"a product": "the other process"}
    assert not list(measured.directory().glob(".writing-*"))


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[1]", b'{"key": 1}', b'{"key": "k", "way": "x", "why": ""}']
)
def test_a_damaged_file_is_measured_and_written_again(
    monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    fastest(monkeypatch, "two")
    choice.choose("a product", WAYS)
    (file,) = measured.directory().glob("*.json")
    file.write_bytes(content)
    for says in ("three", "one"):
        choice.keep({})
        fastest(monkeypatch, says)
        assert choice.choose("a product", WAYS) == "three"


def test_without_a_cache_the_first_way_is_taken_by_rule(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path / "file"))
    asked = fastest(monkeypatch, "two")
    assert choice.choose("a product", WAYS) == "one"
    assert asked == [] and "cannot be written" in choice.reasons()["a product"]
    assert not measured.writable() and list(measured.everything()) == []


def test_without_a_home_the_first_way_is_taken_by_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("no home directory")

    for name in ("WEFT_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    asked = fastest(monkeypatch, "two")
    assert choice.choose("a product", WAYS) == "one" and asked == []


def test_a_training_begins_with_no_choice_and_measures_no_more_after_its_first_update(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = fastest(monkeypatch, "two")
    choice.keep({"before": "one"})
    with choice.training():
        assert choice.taken() == {} and choice.meeting()
        assert choice.choose("in the first update", WAYS) == "two"
        choice.fix()
        assert not choice.meeting()
        assert choice.choose("in the first update", WAYS) == "two"
        assert choice.choose("later", WAYS) == "one"
    assert choice.taken() == {"before": "one"} and len(asked) == 1
    assert choice.choose("later", WAYS) == "two"  # the rule's choice was kept nowhere
