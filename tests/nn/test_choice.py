"""One policy chooses every kernel: traced, forced, or by a fixed rule on shape and processor."""

from pathlib import Path

import pytest
import torch

import weft.nn
from tests.nn.ways import needs_native
from weft.errors import ConfigError
from weft.nn.kernels import choice


@pytest.fixture(autouse=True)
def _unforced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "_forced", {})
    for switch in choice.SWITCHES:
        monkeypatch.delenv(f"WEFT_{switch.upper()}", raising=False)


FITS, WIDE = torch.zeros(2), torch.zeros(2, dtype=torch.float64)


@needs_native
def test_a_forced_way_is_taken_or_refused_with_its_reason() -> None:
    assert [choice.compiles("light", one) for one in (FITS, WIDE, FITS[:0])] == [True, False, False]
    assert not choice.compiles("light", FITS, limit="it is odd")
    with choice.use(cells="torch"):
        assert not choice.compiles("light", FITS)
    refusal = r"^it: cannot use native: compiled code computes in float32 on the CPU, not in torch.float64"
    with choice.use(cells="native"), pytest.raises(ConfigError, match=refusal):
        choice.compiles("light", WIDE, name="it")


@needs_native
def test_operations_differ_in_their_dtypes() -> None:
    half = FITS.bfloat16()
    assert choice.compiles("additive", half) and not choice.compiles("look", half)
    with torch.autocast("cpu", torch.bfloat16):
        assert choice.compiles("light", half) and not choice.compiles("look", FITS)


def test_under_a_transform_torch_s_operations_run_even_if_another_way_is_forced() -> None:
    found: list[bool] = []

    def inside(x: torch.Tensor) -> torch.Tensor:
        found.append(choice.compiles("light", FITS))
        return x

    with choice.use(cells="native"):
        torch.func.vmap(inside)(torch.zeros(3))
    assert found == [False]


def test_fused_operations_follow_the_switch_of_the_cells_until_their_own_is_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    follows = {"auto": "auto", "native": "native", "tiles": "tiles", "steps": "torch", "operation": "torch"}
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
        assert choice.forced("cells") == "torch"


ALL = ("native", "operation", "tiles", "narrow")


@pytest.mark.parametrize(
    ("layer", "want"),
    [
        (choice.LayerShape("lstm", 1, 1, 256, training=False), "native"),
        (choice.LayerShape("lstm", 8, 1, 256, training=False), "steps"),
        (choice.LayerShape("gru", 8, 1, 256, training=True), "operation"),
        (choice.LayerShape("lstm", 4, 30, 1024, training=True), "native"),
        (choice.LayerShape("lstm", 32, 30, 512, training=True), "tiles"),
        (choice.LayerShape("gru", 128, 30, 64, training=True), "native"),
        (choice.LayerShape("lstm", 32, 30, 256, training=True, bfloat16=True), "operation"),
        (choice.LayerShape("lstm", 32, 30, 256, training=True, bfloat16=True, padding=True), "tiles"),
        (choice.LayerShape("gru", 8, 30, 512, training=True, bfloat16=True), "narrow"),
    ],
    ids=str,
)
def test_the_rule_of_recurrent_layers(layer: choice.LayerShape, want: str) -> None:
    assert choice.recurrent(layer, ALL) == want
    if want not in ("steps", "operation"):
        assert choice.recurrent(layer, ("native",)) == "native"


def test_the_rule_of_products() -> None:
    assert choice.product(1024, 512, 512, ("torch", "tiles")) == "tiles"
    assert choice.product(1024, 512, 512, ("torch",)) == "torch"
    assert choice.product(128, 512, 512, ("torch", "tiles")) == "torch"


@pytest.mark.parametrize(
    ("maker", "capability", "want"),
    [
        ("AuthenticAMD", "AVX512", "onednn"),
        ("AuthenticAMD", "AVX2", "torch"),
        ("GenuineIntel", "AVX512", "torch"),
    ],
)
def test_onednn_multiplies_where_mkl_leaves_avx512_unused(
    monkeypatch: pytest.MonkeyPatch, maker: str, capability: str, want: str
) -> None:
    monkeypatch.setattr(choice, "vendor", lambda: maker)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    assert choice.product(64, 512, 512, ("torch", "onednn")) == want


def test_layers_know_operations_and_no_kernels() -> None:
    room = Path(weft.nn.__file__).parent
    below = {"ops.py", "devices.py"}  # the latter opens a mode of the kernels
    for path in room.rglob("*.py"):
        if path.is_relative_to(room / "kernels") or path.relative_to(room).as_posix() in below:
            continue
        assert "weft.nn.kernels" not in path.read_text("utf-8"), f"{path}: import weft.nn.ops"
