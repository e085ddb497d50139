"""What a client sends is read in time that grows with its size, before its key is known.

Each part of a request (headers, cookies, address, query, forms, JSON) is read at n, 2n, 4n and 8n bytes, by a
server with keys and by one without; 8n is about the largest that the server accepts. Processor time is
compared with itself, so a busy machine makes no difference.
"""

import asyncio
import contextlib
import encodings.aliases
import json
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, cast

import h11
import pytest
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from weft.serve import forms
from weft.serve.app import Application
from weft.serve.forms import DEPTH, KEYLESS_BYTES
from weft.serve.guard import HEADER_BYTES, Access, Guard
from weft.serve.keys import Keys, new_key
from weft.serve.limits import LOG_CHARACTERS, ServerLimits

FORM, PARTS, JSON = "application/x-www-form-urlencoded", "multipart/form-data; boundary=e", "application/json"
CHARSETS = sorted({*encodings.aliases.aliases.values(), "idna", "punycode", "undefined", "unknown-charset"})
HEAD = b'--e\r\nContent-Disposition: form-data; name="q"\r\n'


class Sent(NamedTuple):
    """A request."""

    headers: Mapping[str, bytes] = MappingProxyType({})
    body: bytes = b""
    target: bytes = b"/translate"


class Reply(NamedTuple):
    status: int
    body: bytes
    read: int  # bytes of the request's body


def asked(app: Any, sent: Sent) -> Reply:
    """The reply of an application, without a socket."""
    path, _, query = sent.target.partition(b"?")
    headers = {"host": b"localhost", "content-length": b"%d" % len(sent.body), **sent.headers}
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": path.decode("latin-1"),
        "raw_path": path,
        "query_string": query,
        "root_path": "",
        "headers": [(name.encode(), value) for name, value in headers.items()],
        "client": ("127.0.0.1", 7),
        "server": ("127.0.0.1", 8000),
    }
    got: dict[str, Any] = {"status": 0, "body": b"", "read": 0}

    async def receive() -> dict[str, Any]:
        if got["read"] or not sent.body:
            await asyncio.sleep(0)
            return {"type": "http.disconnect"} if got["read"] else {"type": "http.request", "body": b""}
        got["read"] = len(sent.body)
        return {"type": "http.request", "body": sent.body, "more_body": False}

    async def send(message: Any) -> None:
        got["status"] = message.get("status", got["status"])
        got["body"] += message.get("body", b"")

    asyncio.run(app(scope, receive, send))
    return Reply(**got)


@pytest.fixture(scope="module")
def open_server() -> Iterator[Any]:
    serving = Application({}, ServerLimits())
    yield ProxyHeadersMiddleware(cast(Any, serving.app), "127.0.0.1")
    serving.drain()


@pytest.fixture(scope="module")
def keyed_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    file: Path = tmp_path_factory.mktemp("keys") / "keys.txt"
    file.write_text(new_key("alice")[1])
    serving = Application({}, ServerLimits(), Access(keys=Keys(file)))
    yield ProxyHeadersMiddleware(cast(Any, serving.app), "127.0.0.1")
    serving.drain()


def header(name: str, make: Callable[[int], bytes]) -> Callable[[int], Sent]:
    return lambda size: Sent({name: make(size)})


def form(make: Callable[[int], bytes]) -> Callable[[int], Sent]:
    return lambda size: Sent({"content-type": FORM.encode()}, make(size))


def parts(make: Callable[[int], bytes], path: bytes = b"/translate") -> Callable[[int], Sent]:
    return lambda size: Sent({"content-type": PARTS.encode()}, make(size), path)


def text(make: Callable[[int], bytes], path: bytes = b"/translate") -> Callable[[int], Sent]:
    return lambda size: Sent({"content-type": JSON.encode()}, make(size), path)


def filled(before: bytes, unit: bytes, after: bytes = b"") -> Callable[[int], bytes]:
    return lambda size: before + unit * ((size - len(before) - len(after)) // len(unit)) + after


HEADERS = {
    **{
        f"cookie {unit!r}": header("cookie", filled(b'weft_key="', unit, b'"'))
        for unit in (b'\\"', b"\\012", b"\\\\", b"a;", b"=;", b'"', b";weft_key=", b"%41", b" ", b"\xff")
    },
    **{
        f"content-type {unit!r}": header("content-type", filled(PARTS.encode() + b"; ", unit))
        for unit in (
            b"a=b;",
            b"a*0=b;",
            b"a*=utf-8''%41;",
            b'a="\\"";',
            b'"',
            b"\\",
            b" ",
            b"=",
            b"(",
            b"boundary=e;",
        )
    },
    **{
        f"host {unit!r}": header("host", filled(b"localhost", unit))
        for unit in (b".", b":0", b"[", b"xn--a.", b"%41")
    },
    **{
        f"x-forwarded-for {unit!r}": header("x-forwarded-for", filled(b"", unit))
        for unit in (b"127.0.0.1,", b"[::1]:7,", b",", b" ", b"1.", b"::")
    },
    **{
        f"{name} {unit!r}": header(name, filled(b"", unit))
        for name in ("origin", "authorization", "accept", "expect", "x-forwarded-proto", "content-length")
        for unit in (b"Bearer ", b"1", b"a/b;q=0.1,", b"://")
    },
}

QUERY = {
    f"query {unit!r}": lambda size, unit=unit: Sent(target=b"/translate?" + unit * (size // len(unit)))
    for unit in (b"q=a&", b"%41", b"%ff", b"%", b"+", b"&", b"=", b";", b"q=%F0%9F%99%82&", b"api_key=a&")
} | {
    f"path {unit!r}": lambda size, unit=unit: Sent(target=b"/" + unit * (size // len(unit)))
    for unit in (b"/", b"a/", b"../", b"%2e", b"download_file/")
}

BODIES = {
    **{
        f"form {unit!r}": form(filled(b"q=", unit))
        for unit in (b"a", b"%41", b"%C3%A9", b"%", b"+", b"&", b"=", b"&q=", b"&a=b", b";", b"\xff")
    },
    **{
        f"part {unit!r}": parts(filled(HEAD + b"\r\n", unit, b"\r\n--e--\r\n"))
        for unit in (b"a", b"\r\n", b"\r\n-", b"\r\n--", b"\r\n--e", b"-", b"\xff", b"\r\n" + HEAD + b"\r\n")
    },
    **{
        f"head of a part {unit!r}": parts(filled(b"--e\r\n", unit), b"/translate_file")
        for unit in (
            b"a: b\r\n",
            b"a",
            b": ",
            b"a*0=b;",
            b'"',
            b'\\"',
            b"Content-Disposition: form-data;\r\n",
            b'name="api_key"\r\n',
        )
    },
    "names of fields in a form": form(lambda size: b"&".join(b"%d=" % n for n in range(size // 7))),
    "numbers of names": text(lambda size: json.dumps({str(n): n for n in range(size // 15)}).encode()),
    **{
        f"json {unit!r}": text(filled(b'{"q": "', unit, b'"}'))
        for unit in (
            b"a",
            b"\\u0041",
            b"\\ud800",
            b"\\ud83d\\ude42",
            b"\\\\",
            b'\\"',
            b"\xc3\xa9",
            b"\\",
            b"\xff",
        )
    },
    **{
        f"json of {unit!r}": text(filled(b'{"alternatives": ', unit, b"}"))
        for unit in (
            b"1",
            b"0",
            b"-",
            b"1e",
            b"1.",
            b" ",
            b"[",
            b"[1,",
            b'{"a":',
            b"\t",
            b"/*",
            b"\xef\xbb\xbf",
        )
    },
    "digits after a point": text(filled(b'{"alternatives": 0.', b"7", b"}")),
    "large exponents": text(filled(b'{"alternatives": [', b"1e999999999,", b"1]}")),
    "large whole numbers": text(filled(b'{"alternatives": [', b"7" * 4000 + b",", b"1]}")),
    "signing in": text(filled(b'{"key": "', b"\\u0041", b'"}'), b"/api/key"),
}


def check_growth(app: Any, make: Callable[[int], Sent], largest: int) -> None:
    def seconds(size: int) -> float:
        sent, begun = make(size), time.process_time()
        assert 400 <= asked(app, sent).status < 500
        return time.process_time() - begun

    sizes = [largest // share for share in (8, 4, 2, 1)]
    times = [min(seconds(size) for _ in range(2)) for size in sizes]
    assert times[-1] < 20 * times[0] + 0.05, times  # 64 times, if it were quadratic


@pytest.mark.parametrize("name", HEADERS)
def test_headers(open_server: Any, keyed_server: Any, name: str) -> None:
    for app in (open_server, keyed_server):
        check_growth(app, HEADERS[name], HEADER_BYTES - 200)


@pytest.mark.parametrize("name", QUERY)
def test_addresses(open_server: Any, keyed_server: Any, name: str) -> None:
    for app in (open_server, keyed_server):
        check_growth(app, QUERY[name], 64_000)


@pytest.mark.parametrize("name", BODIES)
def test_bodies(open_server: Any, keyed_server: Any, name: str) -> None:
    check_growth(keyed_server, BODIES[name], KEYLESS_BYTES - 1)
    check_growth(open_server, BODIES[name], 200_000)


@pytest.mark.parametrize(
    "unit", [b"a: b\r\n", b"a:\t \r\n", b"a: " + b" " * 99 + b"\r\n", b"\xff: b\r\n", b"\r", b"a"]
)
def test_the_lines_of_a_header(unit: bytes) -> None:
    def seconds(size: int) -> float:
        line, begun = h11.Connection(h11.SERVER), time.process_time()
        line.receive_data(b"GET / HTTP/1.1\r\nHost: a\r\n" + unit * (size // len(unit)) + b"\r\n\r\n")
        with contextlib.suppress(h11.RemoteProtocolError):
            line.next_event()
        return time.process_time() - begun

    times = [min(seconds(2**17 // share) for _ in range(2)) for share in (8, 4, 2, 1)]
    assert times[-1] < 20 * times[0] + 0.05, times


def test_another_charset_is_refused_before_the_body_is_read(open_server: Any, keyed_server: Any) -> None:
    assert len(CHARSETS) > 90
    for charset in CHARSETS:
        for kind in (FORM, PARTS, JSON, "text/csv", "text/plain"):
            for name in ("charset", "Charset", "charset*", "charset*0"):
                sent = Sent({"content-type": f'{kind}; {name}="{charset}"'.encode()}, b"q=a")
                status, _, read = asked(open_server, sent)
                accepted = name.lower() == "charset" and charset.replace("_", "-") in ("utf-8", "utf8")
                assert (status == 415 and not read) or (accepted and status < 500), (kind, name, charset)
    sent = Sent({"content-type": f"{PARTS}; charset=punycode".encode()}, b"q=a")
    assert asked(keyed_server, sent)[::2] == (415, 0)
    sent = Sent({"content-type": JSON.encode(), "content-encoding": b"gzip"}, b"q=a")
    assert asked(open_server, sent)[::2] == (415, 0)


def test_what_libraries_would_decode_reaches_none() -> None:
    seen: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(dict(scope["headers"]))

    guard = Guard(app, Access())
    kind = b'Multipart/Form-Data; charset="UTF-8"; boundary="a b"; x=y'
    asked(guard, Sent({"content-type": kind, "cookie": b"weft_key=a"}))
    assert seen[0][b"content-type"] == b'multipart/form-data; boundary="a b"'
    assert b"cookie" not in seen[0]
    assert asked(guard, Sent({"cookie": b"a" * HEADER_BYTES})).status == 431
    assert (
        asked(guard, Sent({"content-type": b"multipart/form-data; boundary=a;boundary=\xff"})).status == 400
    )


def test_json_in_another_encoding_is_refused(open_server: Any) -> None:
    for charset in ("utf-16", "utf-16-le", "utf-32", "latin-1", "utf-7"):
        body = '{"q": "é", "source": "a", "target": "b"}'.encode(charset)
        for kind in (JSON.encode(), b""):
            assert asked(open_server, Sent({"content-type": kind}, body)).status == 400, charset


NESTED = ("/translate", "/detect", "/suggest", "/predict", "/v1/completions", "/api/watch", "/api/words")


@pytest.mark.parametrize("path", [*NESTED, "/inspect", "/api/key"])
def test_json_is_as_deep_as_a_request_needs(
    open_server: Any, capfd: pytest.CaptureFixture[str], path: str
) -> None:
    for depth in (DEPTH, 900, 100_000):
        for name in ("q", "inputs", "prompt", "text", "key", "other"):
            body = b'{"%s": %s1%s}' % (name.encode(), b"[" * depth, b"]" * depth)
            reply = asked(open_server, Sent({"content-type": JSON.encode()}, body, path.encode()))
            assert reply.status == 400 and len(reply.body) < 500, reply
    assert capfd.readouterr().err == ""


def test_one_request_writes_little_to_the_log(
    open_server: Any, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Any) -> None:
        raise ValueError("x" * 9000)

    monkeypatch.setattr(forms, "_grouped", fail)  # not by name: another test imports it again
    with pytest.raises(ValueError, match="xxx"):
        asked(open_server, Sent({"content-type": FORM.encode()}, b"q=a"))
    assert 0 < len(capfd.readouterr().err) <= LOG_CHARACTERS + 1
