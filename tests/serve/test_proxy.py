"""nginx.conf and Caddyfile of deploy/ in front of the server; skipped, and said so, where not installed."""

import contextlib
import json
import re
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.serve.client import ASKED, ask, post
from tests.serve.conftest import listening, served
from weft.serve.counts import AccessLog
from weft.serve.guard import Access

pytestmark = pytest.mark.slow

CONFIGURATION = Path(__file__).resolve().parents[2] / "deploy" / "nginx.conf"
NAME = "weft.example.org"
POST = f"POST /translate HTTP/1.1\r\nHost: {NAME}\r\nContent-Type: application/json\r\n"
WHOLE = """daemon off; master_process off; pid {0}/nginx.pid; error_log {0}/error.log;
events {{}}
http {{
    access_log off; client_body_temp_path {0}/body; proxy_temp_path {0}/proxy;
    fastcgi_temp_path {0}/fastcgi; uwsgi_temp_path {0}/uwsgi; scgi_temp_path {0}/scgi;
    include {0}/weft.conf;
}}
"""


class Proxy:
    """nginx, and how to reach it under its name."""

    def __init__(self, port: int, certificate: Path, log: Path) -> None:
        self.port = port
        self.log = log
        self.context = ssl.create_default_context(cafile=certificate)

    def line(self, name: str = NAME) -> ssl.SSLSocket:
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=30)
        return self.context.wrap_socket(plain, server_hostname=name)

    def ask(self, path: str, body: bytes = b"", *headers: str) -> bytes:
        """The answer to a request, after which the connection is closed."""
        method = "POST" if body else "GET"
        lines = [f"{method} {path} HTTP/1.1", f"Host: {NAME}", "Connection: close", *headers]
        lines += [f"Content-Length: {len(body)}"] if body else []
        with self.line() as line:
            line.sendall("\r\n".join([*lines, "", ""]).encode())
            with contextlib.suppress(OSError):  # it may refuse before it has read all
                line.sendall(body)
            answer = b""
            while part := line.recv(65536):
                answer += part
        return answer


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def proxy(library: None, runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if not program or not shutil.which("openssl"):
        pytest.skip("no nginx or no openssl on this machine: apt install nginx-light openssl")
    folder = tmp_path_factory.mktemp("nginx")
    certificate, key = folder / "cert.pem", folder / "key.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={NAME}", "-days", "2"]
    made += ["-addext", f"subjectAltName=DNS:{NAME}", "-out", str(certificate), "-keyout", str(key)]
    subprocess.run(made, check=True, capture_output=True)
    log = AccessLog(folder / "access.log")
    with contextlib.closing(log), listening(served(runs, Access(hosts=(NAME,)), log)) as where:
        port, text = free_port(), CONFIGURATION.read_text("utf-8")
        for old, new in (
            ("listen 80;", f"listen 127.0.0.1:{free_port()};"),
            ("listen 443 ssl", f"listen 127.0.0.1:{port} ssl"),
            ("http://127.0.0.1:8000", where),
            ("/etc/ssl/weft/fullchain.pem", str(certificate)),
            ("/etc/ssl/weft/privkey.pem", str(key)),
            ("client_header_timeout 10s", "client_header_timeout 1s"),
            ("client_body_timeout 10s", "client_body_timeout 1s"),
        ):
            assert old in text
            text = text.replace(old, new)
        (folder / "weft.conf").write_text(text)
        (folder / "nginx.conf").write_text(WHOLE.format(folder))
        with subprocess.Popen(
            [program, "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]
        ) as one:
            until = time.monotonic() + 20
            while time.monotonic() < until and one.poll() is None:
                with contextlib.suppress(OSError):
                    socket.create_connection(("127.0.0.1", port), timeout=1).close()
                    break
                time.sleep(0.05)
            assert one.poll() is None, (folder / "error.log").read_text()
            yield Proxy(port, certificate, folder / "access.log")
            one.terminate()


def test_a_request_goes_through_with_the_address_of_its_client(proxy: Proxy) -> None:
    answer = proxy.ask(
        "/translate", json.dumps(ASKED).encode(), "Content-Type: application/json", "X-Forwarded-For: 6.6.6.6"
    )
    assert answer.startswith(b"HTTP/1.1 200") and answer.endswith(b'{"translatedText": "uno"}')
    until = time.monotonic() + 20
    while not proxy.log.read_text() and time.monotonic() < until:
        time.sleep(0.01)
    assert json.loads(proxy.log.read_text().splitlines()[0])["client"] == "127.0.0.1"
    assert b"https://weft.example.org/download_file/" in proxy.ask(
        "/translate_file", FILE, 'Content-Type: multipart/form-data; boundary="e"'
    )


FILE = (
    b"".join(
        b'--e\r\nContent-Disposition: form-data; name="%s"%s\r\n\r\n%s\r\n' % one
        for one in (
            (b"source", b"", b"xx"),
            (b"target", b"", b"yy"),
            (b"file", b'; filename="a.txt"', b"alpha"),
        )
    )
    + b"--e--\r\n"
)


SLOW = {"header": "GET /health HTTP/1.1\r\nHost: ", "body": f"{POST}Content-Length: 99\r\n\r\n{{"}


@pytest.mark.parametrize("part", SLOW)
def test_a_slow_header_and_a_slow_body_end_at_the_proxy(proxy: Proxy, part: str) -> None:
    before, begun = proxy.log.read_text(), time.monotonic()
    with proxy.line() as line:
        line.sendall(SLOW[part].encode())
        with contextlib.suppress(ConnectionError):
            assert b" 200 " not in line.recv(1000)
    assert time.monotonic() - begun < 10
    assert proxy.log.read_text() == before  # the server has not seen it


def test_another_name_and_a_large_body_end_at_the_proxy(proxy: Proxy) -> None:
    proxy.context.check_hostname = False
    try:
        with pytest.raises(ssl.SSLError):
            proxy.line("evil.example")
    finally:
        proxy.context.check_hostname = True
    assert proxy.ask("/metrics").startswith(b"HTTP/1.1 404")
    assert proxy.ask("/translate", b" " * 12_000_000).startswith(b"HTTP/1.1 413")


def test_a_client_that_asks_too_often_is_told_to_wait(proxy: Proxy) -> None:
    request = f"GET /health HTTP/1.1\r\nHost: {NAME}\r\n".encode()
    with proxy.line() as line:
        line.sendall((request + b"\r\n") * 79 + request + b"Connection: close\r\n\r\n")
        answer = b""
        while part := line.recv(65536):
            answer += part
    statuses = re.findall(rb"HTTP/1.1 (\d+)", answer)
    assert len(statuses) == 80 and statuses[0] == b"200" and b"429" in statuses
    time.sleep(1)
    assert proxy.ask("/health").startswith(b"HTTP/1.1 200")


@pytest.fixture(scope="module")
def caddy(library: None, runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Caddy with its configuration, and where it listens."""
    program = shutil.which("caddy")
    if not program:
        pytest.skip("no caddy on this machine: apt install caddy")
    folder = tmp_path_factory.mktemp("caddy")
    with listening(served(runs, Access(hosts=(NAME,)))) as where:
        text = (CONFIGURATION.parent / "Caddyfile").read_text("utf-8")
        address = f"http://{NAME}:{free_port()}"  # it would ask an authority for a certificate
        for old, new in (
            ("\n{\n", "\n{\n\tadmin off\n"),
            (f"\n{NAME} {{", f"\n{address} {{"),
            ("127.0.0.1:8000 {", f"{where.removeprefix('http://')} {{"),
            ("read_header 10s", "read_header 1s"),
        ):
            assert old in text
            text = text.replace(old, new, 1)
        (folder / "Caddyfile").write_text(text)
        environment = {"HOME": str(folder), "PATH": "/usr/bin:/bin"}
        command = [program, "run", "--config", str(folder / "Caddyfile"), "--adapter", "caddyfile"]
        with (folder / "log").open("w") as log, subprocess.Popen(command, env=environment, stderr=log) as one:
            until = time.monotonic() + 20
            while time.monotonic() < until and one.poll() is None:
                with contextlib.suppress(OSError):
                    socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])), 1).close()
                    break
                time.sleep(0.05)
            assert one.poll() is None, (folder / "log").read_text()
            yield f"http://127.0.0.1:{address.rpartition(':')[2]}"
            one.terminate()


def test_caddy_passes_requests_on_and_ends_large_bodies_and_slow_headers(caddy: str) -> None:
    host = {"Host": f"{NAME}:{caddy.rpartition(':')[2]}"}
    assert post(f"{caddy}/translate", ASKED, host).body == {"translatedText": "uno"}
    sent = ask(f"{caddy}/translate_file", FILE, "multipart/form-data; boundary=e", headers=host)
    assert sent.status == 200 and f"http://{NAME}" in sent.body["translatedFileUrl"]
    assert ask(f"{caddy}/metrics", headers=host).status == 404
    assert ask(f"{caddy}/health", headers={"Host": "evil.example"}).body != {"status": "ok"}
    large = ask(f"{caddy}/translate", b" " * 12_000_000, "application/json", headers=host)
    assert large.status in (413, 502)  # Caddy 2.6 says 502
    begun = time.monotonic()
    with socket.create_connection(("127.0.0.1", int(caddy.rpartition(":")[2])), timeout=20) as line:
        line.sendall(b"GET /health HTTP/1.1\r\nHost: ")
        with contextlib.suppress(ConnectionError):
            assert b" 200 " not in line.recv(1000)
    assert time.monotonic() - begun < 10
