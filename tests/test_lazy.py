"""Public names are found by Tab, imported when they are used, and known to type checkers."""

import importlib
import inspect
import pkgutil
import subprocess
import sys

import pytest
from torch import nn

import weft
from weft import lazy
from weft.nn import cells

PACKAGES = [
    "weft",
    "weft.nn",
    "weft.nn.cells",
    "weft.search",
    "weft.metrics",
    "weft.data",
    "weft.tasks",
    "weft.testing",
]
INSIDE = {
    # bases of the drop-ins, and parts that only one other class uses
    *("DropIn", "DropInCell", "DropInModule", "GateNorm", "Headwise", "HybridBlock", "Residual"),
    *(
        "FeatureTable",
        "Gated",
        "Rwkv7Layer",
        "VectorCell",
        "WordTable",
        "Context",
        "Front",
        "MatrixCell",
        "Mix",
        "RealHead",
    ),
    *("GramTable", "InContext", "PiecesInContext", "ShortConvolution", "Transformed", "Weighted"),
    # parts that recipes and other layers name by their file
    *("Beside", "BothWays", "First", "FirstPieces", "Frames", "Last", "Nowhere", "Source", "Words"),
}
"""Modules of weft.nn that are no layer of their own."""


@pytest.mark.parametrize("package", PACKAGES)
def test_every_listed_name_can_be_imported_and_hides_no_module(package: str) -> None:
    module = importlib.import_module(package)
    assert dir(module) == module.__all__ == sorted(lazy.names(package))
    for name in dir(module):
        assert getattr(module, name) is not None
    modules = {one.name for one in pkgutil.iter_modules(module.__path__)}
    listed = {name for name, (home, _) in lazy.names(package).items() if home != package}
    assert listed & modules == set()


def test_the_public_api_is_found_by_tab() -> None:
    assert {"load", "nn", "search", "metrics", "data"} <= set(dir(weft))
    assert len(dir(weft)) <= 12  # rooms, and what a notebook does: fit, load, resume, check, compare
    wanted = {"LSTM", "GRU", "MultiHead", "Attention", "TransformerEncoder", "Mamba", "Stack", "Crf"}
    assert wanted <= set(dir(weft.nn))
    assert {"beam_search", "greedy_search", "sample"} <= set(dir(weft.search))


def test_every_layer_and_cell_is_listed() -> None:
    found = set()
    for one in pkgutil.walk_packages(weft.nn.__path__, "weft.nn."):
        if ".kernels" not in one.name:
            module = importlib.import_module(one.name)
            found |= {
                name
                for name, kind in inspect.getmembers(module, inspect.isclass)
                if issubclass(kind, nn.Module) and kind.__module__ == one.name and name[0] != "_"
            }
    assert found - INSIDE - set(dir(weft.nn)) == set()
    assert weft.nn.LSTM is not cells.LSTM
    assert not INSIDE & set(dir(weft.nn))
    assert weft.nn.MatrixCell is cells.MatrixCell  # what was public once can still be imported
    assert issubclass(weft.nn.LSTM, nn.LSTM)
    assert issubclass(cells.LSTM, cells.Cell)


def test_a_wrong_name_is_an_attribute_error_that_knows_the_nearest() -> None:
    with pytest.raises(AttributeError, match=r"module 'weft.nn' has no attribute 'LTSM'") as error:
        _ = weft.nn.LTSM
    assert error.value.name == "LTSM"
    assert error.value.obj is weft.nn


def printed(code: str) -> list[str]:
    """The words that a program in a new interpreter prints."""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return found.stdout.split()


def test_importing_weft_imports_neither_torch_nor_any_layer() -> None:
    code = (
        "import sys, weft; dir(weft); weft.__all__\n"
        "import weft.nn, weft.search, weft.metrics, weft.data; dir(weft.nn); dir(weft.search)\n"
        "print(*[name for name in sys.modules if name in ('torch', 'numpy', 'click') or name.count('.') > 1 "
        "and name.startswith('weft')])"
    )
    assert printed(code) == []


def test_on_a_cpu_nothing_is_imported_that_only_a_gpu_runs() -> None:
    code = (
        "import sys, torch, weft.models, weft.train.loop, weft.train.ready, weft.search.compiled\n"
        "from weft.nn import cells\n"
        "with torch.no_grad():\n"
        "    for make in (cells.LSTM, cells.MinGRU, cells.GLA):\n"
        "        cell, x = make(4, 4), torch.zeros(2, 3, 4)\n"
        "        cell(x, cell.start(x))\n"
        "print(*[name for name in sys.modules if name.endswith(('.captured', '.flash_linear_attention'))])"
    )
    assert printed(code) == []


def test_star_import_gives_what_is_listed() -> None:
    given: dict[str, object] = {}
    exec("from weft.metrics import *", given)
    assert set(dir(weft.metrics)) <= set(given)
