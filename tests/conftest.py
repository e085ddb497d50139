"""Set-up of every test: one thread, fixed seeds, and external data only if WEFT_DATA names it.

Read next: test_house.py, rules for the source; laws/, tests of every part of a kind.
"""

import atexit
import gc
import logging
import os
import random
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

# Before torch is imported: spinning OpenMP threads cost up to ten times the time on a shared machine.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "Agg")
# Token stores of tests stay out of the user's cache; pytest's workers share one.
if "WEFT_CACHE" not in os.environ:
    os.environ["WEFT_CACHE"] = tempfile.mkdtemp(prefix="weft-tests-")
    atexit.register(shutil.rmtree, os.environ["WEFT_CACHE"], ignore_errors=True)

# Runs that tests share (shared.py); pytest's workers find the folder in the environment of who started them.
if "PYTEST_XDIST_WORKER" not in os.environ:
    os.environ["WEFT_TRAINED"] = tempfile.mkdtemp(prefix="weft-trained-")
    atexit.register(shutil.rmtree, os.environ["WEFT_TRAINED"], ignore_errors=True)

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, settings

# Deadlines depend on the machine; fixed examples make a failure reproducible.
settings.register_profile(
    "weft", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("weft")
torch.set_num_threads(1)

# Collecting makes hundreds of thousands of lasting objects, which every full collection would visit.
gc.set_threshold(50_000, 20, 20)

# No test cuts the power, and waiting for the disk is a tenth of the time of all tests of commands.
os.fsync = lambda fd: None

# Before flash-linear-attention is imported: without a GPU its kernels run in Triton's interpreter.
if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever drives a browser is slow."""
    for item in items:
        if {"browser", "chromium"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)


def pytest_collection_finish() -> None:
    gc.freeze()


def _peers_not_here(config: pytest.Config) -> Counter[str]:
    """How many tests and modules skipped for want of a group of libraries that Weft is compared with."""
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    skipped = terminal.stats.get("skipped", []) if terminal else []
    found = [re.search(r"--group ([a-z-]+)", str(report.longrepr)) for report in skipped]
    return Counter(group[1] for group in found if group)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if missing := _peers_not_here(config):
        groups = ", ".join(f"{number} for want of {group}" for group, number in missing.most_common())
        terminalreporter.write_line(f"Skipped comparisons with other libraries: {groups} (make test-all)")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """`make nightly` installs these groups, so a test that skips for want of one is a failure there."""
    required = set(os.environ.get("WEFT_PEERS", "").split())
    if required & set(_peers_not_here(session.config)):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(autouse=True)
def _same_numbers() -> None:
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002  only so that a stray use of the global generator repeats
    # `torch.manual_seed` also formats the stack for each kind of card that is not there.
    torch.default_generator.manual_seed(1)
    if torch.cuda.is_available():
        torch.cuda.manual_seed_all(1)


@pytest.fixture
def logged() -> Iterator[list[logging.LogRecord]]:
    """What is logged; pytest's own plugin would visit every logger three times in each test."""
    records: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = records.append  # type: ignore[method-assign, assignment]
    logging.getLogger().addHandler(handler)
    yield records
    logging.getLogger().removeHandler(handler)


@pytest.fixture(autouse=True, scope="module")
def _shared_runs_stay() -> Iterator[None]:
    """A module that wrote into a run which all tests share is named: let it take a copy."""
    yield
    module = sys.modules.get("tests.shared")
    assert module is None or not (found := module.changed()), f"written by a test, use `copied`: {found}"


@pytest.fixture(scope="session")
def weft_data() -> Path:
    """The folder of public corpora in WEFT_DATA; skips the test if it is not set."""
    folder = os.environ.get("WEFT_DATA")
    if not folder:
        pytest.skip("WEFT_DATA is not set: it names a folder with public corpora (mt/multi30k, ...)")
    path = Path(folder)
    if not path.is_dir():
        pytest.fail(f"WEFT_DATA={folder} is not a directory")
    return path
