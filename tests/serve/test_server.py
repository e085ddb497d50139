"""The command: started, asked, ended by a signal; what it says where it cannot start."""

import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.commands.shell import refused, weft
from tests.serve.client import Reply, ask, post
from tests.serve.conftest import listening, served

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.slow
def test_a_signal_ends_it_once_what_was_begun_is_answered(library: None, runs: Path) -> None:
    command = [sys.executable, "-m", "weft", "serve", str(runs / "toy"), "--port", "0"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        said = process.stderr.readline()
        where = re.search(r"toy \(translate\): (http://127\.0\.0\.1:\d+)\n", said)
        assert where, said
        replies: list[Reply] = []
        asked = {"q": ["alpha beta gamma delta alpha beta"] * 128, "source": "xx", "target": "yy"}
        thread = threading.Thread(target=lambda: replies.append(post(f"{where[1]}/translate", asked)))
        first = post(f"{where[1]}/translate", {**asked, "q": "alpha"})
        assert first.body == {"translatedText": "uno"}
        thread.start()
        while "weft_answers_waiting 0.0" in ask(f"{where[1]}/metrics").body and thread.is_alive():
            if "weft_answers_running 0.0" not in ask(f"{where[1]}/metrics").body:
                break
        process.send_signal(signal.SIGTERM)
        thread.join(60)
        assert process.wait(60) == 0
        assert process.stderr.read() == ""
    assert [one.status for one in replies] == [200]
    assert len(replies[0].body["translatedText"]) == 128


def test_it_serves_https_from_files(library: None, runs: Path, certificate: tuple[Path, Path]) -> None:
    from weft.serve.guard import Access
    from weft.serve.server import Tls

    tls = Tls(*certificate)
    tls.check()
    with listening(served(runs, Access()), tls) as where:
        trusted = ssl.create_default_context(cafile=certificate[0])
        assert where.startswith("https://")
        with urllib.request.urlopen(f"{where}/health", context=trusted, timeout=60) as answer:
            assert json.load(answer) == {"status": "ok"}
        with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
            urllib.request.urlopen(f"{where}/health", timeout=60)


def test_files_that_are_no_certificate_are_refused(
    library: None, runs: Path, certificate: tuple[Path, Path], tmp_path: Path
) -> None:
    cert, key = certificate
    (tmp_path / "other.pem").write_text("nothing")
    locked = tmp_path / "locked.pem"
    subprocess.run(
        ["openssl", "rsa", "-aes256", "-passout", "pass:word", "-in", key, "-out", locked],
        check=True,
        capture_output=True,
    )
    run, options = runs / "toy", ("--port", 0)
    for one, other in (
        (cert, tmp_path / "none.pem"),
        (cert, tmp_path / "other.pem"),
        (key, cert),
        (cert, locked),
    ):
        said = refused(weft("serve", run, *options, "--tls-cert", one, "--tls-key", other))
        assert "expected a certificate and its private key without a password" in said
    assert "--tls-cert and --tls-key together" in refused(weft("serve", run, *options, "--tls-cert", cert))


def test_where_it_cannot_start_it_says_why(library: None, runs: Path, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = refused(weft("serve", runs / "toy", "--port", port))
    assert f"--port {port}: cannot listen there (Address already in use); choose another" in said
    assert "not a run directory" in refused(weft("serve", tmp_path, "--port", 0))
    assert "RUN" in refused(weft("serve"))
    assert "cannot listen there" in refused(weft("serve", runs / "toy", "--host", "256.1.1.1"))
    assert "--cors app: expected an origin" in refused(weft("serve", runs / "toy", "--cors", "app"))
    assert "--allow-host a/b: expected a host" in refused(weft("serve", runs / "toy", "--allow-host", "a/b"))
    log = tmp_path / "none" / "access.log"
    assert "no such directory" in refused(weft("serve", runs / "toy", "--access-log", log))


def test_without_the_libraries_it_says_what_to_install(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(("weft.serve", "uvicorn"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert "pip install 'weft-seq[serve]'" in refused(weft("serve", runs / "toy"))
