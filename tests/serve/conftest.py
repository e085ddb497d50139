"""A server in a thread over the toy runs that all tests share; skipped, and said so, without the extra."""

import shutil
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.serve.browser import Browser, found
from tests.shared import shared_run


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of runs: toy (xx to yy), prose, label, tags; and young, which has no model yet."""
    folder = tmp_path_factory.mktemp("served")
    for name, task in {"toy": "translate", "prose": "language", "label": "classify", "tags": "tag"}.items():
        shutil.copytree(shared_run(task), folder / name)
    young = folder / "young"
    young.mkdir()
    for name in ("recipe.yaml", "run.json", "metrics.jsonl"):
        (young / name).write_bytes((folder / "toy" / name).read_bytes())
    return folder


@pytest.fixture(scope="session")
def library() -> None:
    """What the server is made of."""
    for name in ("fastapi", "uvicorn", "prometheus_client", "python_multipart"):
        pytest.importorskip(name, reason=f"{name} is not installed: pip install -e .[serve]")


@pytest.fixture(scope="session")
def serving(library: None, runs: Path) -> Any:
    paths = [runs / name for name in ("toy", "prose", "label", "tags", "young")]
    return application(*paths, characters=2000, items=70, tokens=300)


@pytest.fixture(scope="session")
def address(serving: Any) -> Iterator[str]:
    """Where the server listens, without a slash at the end."""
    with listening(serving) as where:
        yield where


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A Chromium; skipped, and said so, where there is none."""
    if found() is None:
        pytest.skip("no Chromium on this machine: apt install chromium")
    one = Browser(tmp_path_factory.mktemp("browser"))
    yield one
    one.close()


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate of 127.0.0.1 and its key."""
    if not shutil.which("openssl"):
        pytest.skip("no openssl on this machine")
    folder = tmp_path_factory.mktemp("tls")
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=weft", "-days", "2"]
    made += [
        "-addext",
        "subjectAltName=IP:127.0.0.1",
        "-out",
        folder / "cert.pem",
        "-keyout",
        folder / "key.pem",
    ]
    subprocess.run(made, check=True, capture_output=True)
    return folder / "cert.pem", folder / "key.pem"


def application(
    *paths: Path,
    glossaries: Sequence[str] = (),
    access: Any = None,
    log: Any = None,
    suggestions: Path | None = None,
    **limits: Any,
) -> Any:
    """The application that serves these runs, with other limits where they are named."""
    from weft.serve.app import Application
    from weft.serve.limits import ServerLimits
    from weft.serve.served import named

    return Application(named(paths, "cpu", (), glossaries), ServerLimits(**limits), access, log, suggestions)


def served(runs: Path, access: Any, log: Any = None) -> Any:
    """The translator of the toy runs for those who have access."""
    return application(runs / "toy", access=access, log=log, deadline_seconds=30)


@contextmanager
def listening(serving: Any, tls: Any = None) -> Iterator[str]:
    """A server in a thread, drained at the end."""
    from weft.serve.server import Server, bound

    place = bound("127.0.0.1", 0)
    server = Server(serving, tls)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [place]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http{'s' if tls else ''}://127.0.0.1:{place.getsockname()[1]}"
    serving.drain()
    server.should_exit = True
    thread.join(20)
    assert not thread.is_alive()
