"""Host names, origins of web pages, and what is noted of a request."""

import contextlib
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.serve.client import ASKED, ask, post
from tests.serve.conftest import listening, served
from weft.errors import ConfigError
from weft.serve.counts import AccessLog
from weft.serve.guard import Access

APP = "https://app.example.org"


@pytest.fixture(scope="module")
def allowing(library: None, runs: Path) -> Iterator[str]:
    """A server with a name of its own, and a web site that may use it."""
    with listening(served(runs, Access(hosts=("weft.example.org",), origins=(APP,)))) as where:
        yield where


@pytest.mark.parametrize("path", ["/", "/languages", "/metrics", "/v1/models", "/nowhere"])
def test_an_unknown_host_name_is_refused_everywhere(address: str, path: str) -> None:
    for host in ("evil.example", "127.0.0.1.evil.example:8000", "localhost.evil", "weft.example.org"):
        reply = ask(address + path, headers={"Host": host})
        assert reply.status == 421, host
        error = reply.body["error"]
        assert "--allow-host" in (error["message"] if path.startswith("/v1/") else error)
    assert post(f"{address}/translate", ASKED, {"Host": "evil.example"}).status == 421


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST.:99", "127.0.0.1", "[::1]:8000", "192.168.7.3:80"])
def test_local_names_and_addresses_are_accepted(address: str, host: str) -> None:
    assert ask(f"{address}/languages", headers={"Host": host}).status == 200


def test_a_name_is_allowed_with_an_option(allowing: str, runs: Path) -> None:
    assert ask(f"{allowing}/languages", headers={"Host": "Weft.Example.org:8000"}).status == 200
    assert ask(f"{allowing}/languages", headers={"Host": "evil.example"}).status == 421
    with listening(served(runs, Access(hosts=("*",)))) as where:
        assert ask(f"{where}/languages", headers={"Host": "evil.example"}).status == 200


@pytest.mark.parametrize("hosts", [[], ["Host: localhost", "Host: localhost"], ["Host: a b"], ["Host: a@b"]])
def test_a_host_that_is_none_is_refused(address: str, hosts: list[str]) -> None:
    host, port = address.removeprefix("http://").split(":")
    head = "".join(f"{one}\r\n" for one in hosts)
    with socket.create_connection((host, int(port)), timeout=60) as line:
        line.sendall(f"GET /languages HTTP/1.0\r\n{head}\r\n".encode())
        assert line.recv(1000).split()[1] == b"400"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),  # no browser
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost:3000", "Sec-Fetch-Site": "same-site"}, 403),
        ({"Origin": "http://["}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 403),
        ({"Origin": "http://localhost:8000", "Host": "localhost:8000"}, 200),
        ({"Origin": "https://weft.example.org", "Sec-Fetch-Site": "same-origin"}, 200),  # Host set by a proxy
    ],
)
def test_a_page_of_another_site_cannot_post(address: str, headers: dict[str, str], status: int) -> None:
    assert post(f"{address}/translate", ASKED, headers).status == status


@pytest.mark.parametrize(
    ("mode", "site", "status"),
    [("no-cors", "cross-site", 403), ("navigate", "cross-site", 200), ("no-cors", "none", 200)],
)
def test_a_page_of_another_site_can_only_link(address: str, mode: str, site: str, status: int) -> None:
    where = f"{address}/translate?q=alpha&source=xx&target=yy"
    assert ask(where, headers={"Sec-Fetch-Mode": mode, "Sec-Fetch-Site": site}).status == status


def test_cors_is_off_by_default_and_on_for_the_sites_named(address: str, allowing: str) -> None:
    asking = {"Origin": APP, "Access-Control-Request-Method": "POST"}
    assert ask(f"{address}/translate", method="OPTIONS", headers=asking).status == 403
    before = ask(f"{allowing}/translate", method="OPTIONS", headers=asking)
    assert before.status == 200
    assert before.headers["access-control-allow-origin"] == APP
    reply = post(f"{allowing}/translate", ASKED, {"Origin": APP, "Sec-Fetch-Site": "cross-site"})
    assert (reply.status, reply.headers["access-control-allow-origin"]) == (200, APP)
    other = post(f"{allowing}/translate", ASKED, {"Origin": "https://evil.example"})
    assert other.status == 403
    assert "access-control-allow-origin" not in other.headers


@pytest.mark.parametrize(
    "wrong",
    [{"hosts": ("https://a.b",)}, {"hosts": ("a b",)}, {"origins": ("a.b",)}, {"origins": ("http://a/",)}],
)
def test_a_name_or_origin_of_another_form_is_refused_at_the_start(wrong: Any) -> None:
    with pytest.raises(ConfigError, match="expected a"):
        Access(**wrong)


def test_pages_may_load_and_be_framed_by_nothing_else(address: str) -> None:
    for path, own in (("/", "default-src 'self'"), ("/inspect?run=toy", "default-src 'none'")):
        headers = ask(address + path).headers
        assert own in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
    assert ask(f"{address}/languages").headers["cache-control"] == "no-store"


def test_the_log_has_a_line_for_each_request_and_no_text(runs: Path, library: None, tmp_path: Path) -> None:
    path = tmp_path / "access.log"
    log = AccessLog(path)
    with contextlib.closing(log), listening(served(runs, Access(), log)) as where:
        post(f"{where}/translate", ASKED)
        until = time.monotonic() + 30
        while not path.read_text() and time.monotonic() < until:  # it is written after the answer
            time.sleep(0.01)
        path.rename(tmp_path / "access.log.1")  # as logrotate does
        ask(f"{where}/translate?q=secret&source=xx&target=yy")
        ask(f"{where}/v1/models/secret")
        ask(f"{where}/secret", method="SECRET")
        ask(f"{where}/languages", headers={"Host": "secret"})
        post(f"{where}/translate", ASKED, {"Origin": "https://secret.example"})
    (first,) = (tmp_path / "access.log.1").read_text().splitlines()
    lines = [json.loads(one) for one in path.read_text().splitlines()]
    assert "secret" not in path.read_text().lower()
    assert json.loads(first) | {"time": 0, "seconds": 0} == {
        "time": 0,
        "client": "127.0.0.1",
        "key": None,
        "method": "POST",
        "path": "/translate",
        "status": 200,
        "seconds": 0,
        "bytes": len('{"translatedText": "uno"}'),
    }
    found = [(one["method"], one["path"], one["status"]) for one in lines]
    assert found == [
        ("GET", "/translate", 200),
        ("GET", "/v1/models/{name}", 404),
        ("other", "other", 404),
        ("GET", "/languages", 421),
        ("POST", "/translate", 403),
    ]


def test_the_metrics_have_the_types_that_prometheus_expects(runs: Path, library: None) -> None:
    with listening(served(runs, Access())) as where:
        for _ in range(3):
            post(f"{where}/translate", ASKED)
        reply = ask(f"{where}/metrics")
    assert reply.headers["content-type"].startswith("text/plain; version=")
    families = {one.name: one for one in text_string_to_metric_families(reply.body)}
    for name in ("weft_requests", "weft_answers_batches", "weft_answers_items", "process_cpu_seconds"):
        assert families[name].type == "counter"
        assert any(one.name == f"{name}_total" for one in families[name].samples)
    for name in ("weft_answers_waiting", "weft_streams_running", "process_resident_memory_bytes"):
        assert families[name].type == "gauge"
    assert {"process_start_time_seconds", "process_open_fds"} <= set(families)
    (items,) = [one.value for one in families["weft_answers_items"].samples if one.name.endswith("_total")]
    assert items == 3
    buckets = [
        one for one in families["weft_request_seconds"].samples if one.labels.get("path") == "/translate"
    ]
    edges = [one.labels["le"] for one in buckets if "le" in one.labels]
    assert edges[-2:] == ["30.0", "+Inf"]  # the deadline is the last one
    assert [one.value for one in buckets if one.labels.get("le") == "+Inf"] == [3]
