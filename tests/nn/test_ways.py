"""One policy chooses every kernel: traced, forced, the only one that can, or measured."""

from collections.abc import Sequence

import pytest
import torch

from weft.errors import ConfigError
from weft.nn.kernels import choice
from weft.nn.kernels.ways import Way, pick

WAYS: tuple[Way[str], ...] = (
    Way("quick", lambda n: "quick", lambda n: "it is odd" if n % 2 else ""),
    Way("sharp", lambda n: "sharp", lambda n: "it is above 10" if n > 10 else ""),
    Way("torch", lambda n: "torch", plain=True),
)


def last(ways: Sequence[Way[str]]) -> Way[str]:
    return ways[-1]


@pytest.fixture(autouse=True)
def _unforced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "_forced", {})
    for switch in choice.SWITCHES:
        monkeypatch.delenv(f"WEFT_{switch.upper()}", raising=False)


def test_the_first_way_that_can_is_taken_where_nothing_is_measured() -> None:
    assert [pick("it", WAYS, (n,)).name for n in (2, 3, 11)] == ["quick", "sharp", "torch"]


def test_what_is_measured_decides_among_those_that_can() -> None:
    assert pick("it", WAYS[:2], (2,), fastest=last).name == "sharp"
    assert pick("it", WAYS[:2], (12,), fastest=last).name == "quick"


def test_a_forced_way_is_taken_or_refused_with_its_reason() -> None:
    assert pick("it", WAYS, (2,), asked="torch", fastest=last).name == "torch"
    with pytest.raises(ConfigError, match=r"^it: cannot use quick: it is odd"):
        pick("it", WAYS, (3,), asked="quick")
    with pytest.raises(ConfigError, match=r"^it: cannot use fast: .*quick, sharp, torch"):
        pick("it", WAYS, (3,), asked="fast")


def test_under_a_transform_a_plain_way_is_taken_even_if_another_is_forced() -> None:
    names: list[str] = []

    def inside(x: torch.Tensor) -> torch.Tensor:
        names.append(pick("it", WAYS, (2,), asked="quick", fastest=last).name)
        return x

    torch.func.vmap(inside)(torch.zeros(3))
    assert names == ["torch"]


def test_fused_operations_follow_the_switch_of_the_cells_until_their_own_is_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    follows = {"auto": "auto", "native": "native", "tiles": "tiles", "steps": "torch", "bptt": "torch"}
    for cells, fused in follows.items():
        with choice.use(cells=cells):  # type: ignore[arg-type]
            assert choice.forced("fused") == fused
    with choice.use(cells="torch", fused="native"):
        assert choice.forced("fused") == "native" and choice.forced("cells") == "torch"
        assert choice.switched() == ["WEFT_CELLS=torch", "WEFT_FUSED=native"]
    choice._forced.clear()
    monkeypatch.setenv("WEFT_FUSED", "torch")
    assert choice.forced("fused") == "torch" and choice.forced("cells") == "auto"


def test_old_names_of_ways_still_work() -> None:
    with choice.use(cells="written"):  # type: ignore[arg-type]
        assert choice.forced("cells") == "bptt"
    before = choice.taken()
    choice.keep({"gru inputs=3": "written"})
    assert choice.taken() == {"gru inputs=3": "bptt"}
    choice.keep(before)
