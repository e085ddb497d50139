"""API keys: in every form that clients send, wrong, limited, changed while the server runs, in the page."""

import contextlib
import errno
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

import pytest

from tests.commands.shell import refused, weft
from tests.serve.browser import Browser
from tests.serve.client import ASKED, ask, post
from tests.serve.conftest import listening, served
from weft.serve.guard import OPEN, SECRET, Access
from weft.serve.keys import Keys, new_key
from weft.serve.limits import Refusal


class Locked(NamedTuple):
    """A server with keys."""

    where: str
    serving: Any
    key: str  # of alice, without a limit
    few: str  # of bob, who may send two requests a minute
    file: Path

    def bearer(self, key: str | None = None) -> dict[str, str]:
        return {"Authorization": f"Bearer {key or self.key}"}


@pytest.fixture
def locked(library: None, runs: Path, tmp_path: Path) -> Iterator[Locked]:
    (key, line), (few, second) = new_key("alice"), new_key("bob")
    file = tmp_path / "keys.txt"
    file.write_text(f"# who may use it\n{line}\n\n{second}:2\n")
    serving = served(runs, Access(keys=Keys(file)))
    with listening(serving) as where:
        yield Locked(where, serving, key, few, file)


def test_no_address_but_the_open_ones_answers_without_a_key(locked: Locked) -> None:
    assert locked.key not in locked.file.read_text()
    paths = {route.path: route.methods for route in locked.serving.app.routes}
    assert set(paths) >= OPEN
    for path, methods in paths.items():
        for method in methods - {"HEAD"}:
            for sent in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic eDp5"}):
                reply = ask(locked.where + path, method=method, headers=sent)
                if path.startswith(SECRET):
                    assert reply.status in (404, 405), path
                elif path in OPEN:
                    assert reply.status not in (401, 403), path
                else:
                    assert reply.status == 401, (method, path, sent)
                    assert reply.headers["www-authenticate"] == "Bearer"
    assert ask(f"{locked.where}/nowhere").status == 401
    assert ask(f"{locked.where}/frontend/settings").body["keyRequired"] is True
    error = ask(f"{locked.where}/v1/models").body["error"]
    assert "Authorization: Bearer" in error["message"]


def test_a_key_is_accepted_as_a_header_and_as_a_field(locked: Locked) -> None:
    where, fields = f"{locked.where}/translate", {**ASKED, "api_key": locked.key}
    parts = "".join(
        f'--e\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in fields.items()
    )
    for reply in (
        post(where, ASKED, locked.bearer()),
        ask(f"{where}?{urlencode(ASKED)}", headers=locked.bearer()),
        post(where, fields),
        ask(where, urlencode(fields).encode(), "application/x-www-form-urlencoded"),
        ask(where, f"{parts}--e--\r\n".encode(), "multipart/form-data; boundary=e"),
        ask(f"{where}?{urlencode(fields)}"),
        ask(f"{where}?{urlencode(fields)}", b""),
    ):
        assert (reply.status, reply.body) == (200, {"translatedText": "uno"})
    assert post(where, {**ASKED, "api_key": "wrong"}).status == 403
    assert post(where, {**ASKED, "api_key": [locked.key]}).status == 401
    assert post(where, {**ASKED, "api_key": ""}).status == 401
    assert post(f"{locked.where}/predict", {"inputs": "x", "api_key": locked.key}).status == 401
    assert ask(f"{locked.where}/metrics", headers=locked.bearer()).status == 200


def test_the_libraries_send_keys_that_are_accepted(locked: Locked) -> None:
    openai = pytest.importorskip("openai", reason="openai is not installed: pip install --group serve-tests")
    with openai.OpenAI(base_url=f"{locked.where}/v1", api_key=locked.key, max_retries=0) as client:
        assert list(client.models.list()) == []
    with (
        openai.OpenAI(base_url=f"{locked.where}/v1", api_key="wrong", max_retries=0) as client,
        pytest.raises(openai.AuthenticationError),
    ):
        client.models.list()
    libre = pytest.importorskip(
        "libretranslatepy", reason="libretranslatepy is not installed: pip install --group serve-tests"
    )
    client = libre.LibreTranslateAPI(locked.where, api_key=locked.key)
    assert client.translate("alpha", "xx", "yy") == "uno"
    assert client.detect("alpha")[0]["language"] == "xx"
    assert client.languages()[0]["targets"] == ["yy"]


def test_a_key_may_be_limited_and_the_others_are_not(locked: Locked) -> None:
    where = f"{locked.where}/translate"
    assert post(where, ASKED, locked.bearer(locked.few)).status == 200
    assert post(where, {**ASKED, "api_key": locked.few}).status == 200
    for reply in (
        post(where, ASKED, locked.bearer(locked.few)),
        post(where, {**ASKED, "api_key": locked.few}),
    ):
        assert reply.status == 429
        assert 1 <= int(reply.headers["retry-after"]) <= 30
        assert "2 requests per minute" in reply.body["error"]
    assert (
        ask(f"{locked.where}/api/runs", headers=locked.bearer(locked.few)).status == 200
    )  # the page asks often
    assert post(where, ASKED, locked.bearer()).status == 200


def upload(locked: Locked, parts: list[bytes], size: int) -> bytes:
    """The reply to the beginning of a form of a larger size."""
    name = urlsplit(locked.where).hostname, urlsplit(locked.where).port
    with socket.create_connection(name, timeout=30) as line:  # type: ignore[arg-type]
        head = f"Content-Type: multipart/form-data; boundary=e\r\nContent-Length: {size}\r\n\r\n"
        line.sendall(f"POST /translate_file HTTP/1.1\r\nHost: localhost\r\n{head}".encode())
        with contextlib.suppress(OSError):  # it may refuse before it has read all
            for part in parts:
                line.sendall(part)
        return line.recv(65536)


def field(name: str, value: bytes, more: str = "") -> bytes:
    return f'--e\r\nContent-Disposition: form-data; name="{name}"{more}\r\n\r\n'.encode() + value + b"\r\n"


def test_the_key_of_an_upload_is_checked_before_a_large_file_is_read(locked: Locked) -> None:
    file = field("file", b"alpha\n" * 200_000, '; filename="a.txt"')
    assert upload(locked, [file], 9_000_000).startswith(b"HTTP/1.1 401 ")
    wrong = b"".join(
        [field("api_key", b"wrong"), field("file", b"alpha", '; filename="a.txt"'), b"--e--\r\n"]
    )
    assert upload(locked, [wrong], len(wrong)).startswith(b"HTTP/1.1 403 ")
    keyed = ask(
        f"{locked.where}/translate_file",
        file + b"--e--\r\n",
        "multipart/form-data; boundary=e",
        headers=locked.bearer(),
    )
    assert keyed.status == 400 and "source" in keyed.body["error"]  # all of it was read
    asked = [field("source", b"xx"), field("target", b"yy"), field("api_key", locked.key.encode())]
    small = field("file", b"alpha\n", '; filename="a.txt"')
    for parts in ([*asked, small], [small, *asked], [*asked, field("other", b"x" * 60_000), small]):
        body = b"".join(parts) + b"--e--\r\n"
        assert upload(locked, [body], len(body)).startswith(b"HTTP/1.1 200 ")
    body = b"".join([*asked, field("other", b"x" * 66_000), small]) + b"--e--\r\n"
    assert upload(locked, [body], len(body)).startswith(b"HTTP/1.1 401 ")
    limited = [field("api_key", locked.few.encode()), field("other", b"x" * 60_000), small, b"--e--\r\n"]
    statuses = [upload(locked, limited, len(b"".join(limited)))[9:12] for _ in range(3)]
    assert statuses == [b"400", b"400", b"429"]  # source is missing; each counts once


def test_only_the_beginning_of_a_body_is_read_without_a_key(locked: Locked) -> None:
    for path in ("/translate", "/detect", "/suggest", "/api/key"):
        reply = post(locked.where + path, {**ASKED, "key": locked.key, "other": "x" * 66_000})
        assert reply.status == 401 and "more than 65,536 bytes" in reply.body["error"], path
    long = {**ASKED, "api_key": locked.key, "other": "x" * 60_000}
    assert post(f"{locked.where}/translate", long).status == 200
    longer = {**ASKED, "other": "x" * 100_000}
    assert post(f"{locked.where}/translate", longer, locked.bearer()).status == 200
    assert post(f"{locked.where}/translate?api_key={locked.key}", longer).status == 200


def test_the_cookie_of_the_page_is_read_beside_others(locked: Locked) -> None:
    for cookies, status in (
        (f"a=b; weft_key={locked.key}", 200),
        (f'weft_key="{locked.key}"; c', 200),
        (f"weft_key=wrong; weft_key={locked.key};", 200),
        ("a=b", 401),
        (f"weft_key{locked.key}", 401),
        ('weft_key="' + '\\"' * 4000 + '"', 401),
    ):
        assert ask(f"{locked.where}/v1/models", headers={"Cookie": cookies}).status == status, cookies


def test_an_upload_in_another_form_is_no_longer_than_other_requests(locked: Locked) -> None:
    reply = ask(f"{locked.where}/translate_file", b" " * 2_000_000, "text/plain", headers=locked.bearer())
    assert reply.status == 413


def test_an_allowance_holds_for_all_processes_together(tmp_path: Path) -> None:
    key, line = new_key("alice")
    (tmp_path / "keys.txt").write_text(f"{line}:7\n")
    keys = Keys(tmp_path / "keys.txt")
    owner = keys.owner(key)
    assert owner is not None
    with TemporaryFile() as file:
        keys.share(file)
        for _ in range(3):
            keys.spend(owner)
        child = os.fork()
        if not child:
            spent = 0
            try:
                while spent < 9:
                    keys.spend(owner)
                    spent += 1
            finally:
                os._exit(spent)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 4
        with pytest.raises(Refusal, match="7 requests per minute"):
            keys.spend(owner)


def test_a_full_disk_locks_no_allowance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key, line = new_key("alice")
    (tmp_path / "keys.txt").write_text(f"{line}:7\n")
    keys = Keys(tmp_path / "keys.txt")
    owner = keys.owner(key)
    assert owner is not None

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with TemporaryFile() as file:
        keys.share(file)
        with monkeypatch.context() as patch, pytest.raises(Refusal, match="no disk space left"):
            patch.setattr(os, "pwrite", full)
            keys.spend(owner)
        os.pwrite(file.fileno(), b'[["alice", 3.0', 0)  # a worker that ended while it wrote
        child = os.fork()
        if not child:  # the lock is free for another process
            signal.alarm(20)
            try:
                keys.spend(owner)
            finally:
                os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        for _ in range(5):
            keys.spend(owner)
        with pytest.raises(Refusal, match="7 requests per minute"):
            keys.spend(owner)


def test_an_allowance_refills_evenly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from weft.serve import keys
    from weft.serve.limits import Refusal

    now = [1000.0]
    monkeypatch.setattr(keys.time, "monotonic", lambda: now[0])
    key, line = new_key("bob")
    (tmp_path / "keys.txt").write_text(f"{line}:3\n")
    found = Keys(tmp_path / "keys.txt")
    owner = found.owner(key)
    assert owner is not None

    def spent() -> int:
        count = 0
        try:
            while True:
                found.spend(owner)
                count += 1
        except Refusal as refusal:
            assert refusal.status == 429
        return count

    assert spent() == 3
    now[0] += 19.9  # three a minute are one in 20 seconds
    assert spent() == 0
    now[0] += 0.2
    assert spent() == 1
    now[0] += 3600
    assert spent() == 3


def emptied(file: Path, lines: list[str]) -> None:
    os.truncate(file, 0)


def deleted(file: Path, lines: list[str]) -> None:
    file.unlink()


def removed(file: Path, lines: list[str]) -> None:
    file.write_text(lines[1])


def of_the_same_size_and_time(file: Path, lines: list[str]) -> None:
    before = file.stat()
    file.write_text(lines[0].replace("alice", "alicf").replace(lines[0][-9:-1], "0" * 8) + lines[1])
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.stat().st_size == before.st_size


def replaced(file: Path, lines: list[str]) -> None:
    file.with_suffix(".new").write_text(lines[1])
    file.with_suffix(".new").replace(file)


def renamed(file: Path, lines: list[str]) -> None:
    file.rename(file.with_suffix(".old"))


def linked_elsewhere(file: Path, lines: list[str]) -> None:
    for name, content in (("1", "".join(lines)), ("2", lines[1])):
        (file.parent / name).write_text(content)
    file.unlink()
    file.symlink_to(file.parent / "1")
    file.with_suffix(".new").symlink_to(file.parent / "2")
    file.with_suffix(".new").replace(file)


def linked_to_itself(file: Path, lines: list[str]) -> None:
    file.unlink()
    file.symlink_to(file)


def a_directory(file: Path, lines: list[str]) -> None:
    file.unlink()
    file.mkdir()


def a_pipe(file: Path, lines: list[str]) -> None:
    file.unlink()
    os.mkfifo(file)


def mistyped(file: Path, lines: list[str]) -> None:
    file.write_text(lines[0].replace("alice:", "alice;") + lines[1])


def cut_short(file: Path, lines: list[str]) -> None:
    file.write_text(lines[1] + lines[0][:40])


def commented(file: Path, lines: list[str]) -> None:
    file.write_text(f" # {lines[0]}{lines[1]}")


def given_a_second_key(file: Path, lines: list[str]) -> None:
    file.write_text("".join(lines) + new_key("alice")[1])


def in_utf_16(file: Path, lines: list[str]) -> None:
    file.write_text("".join(lines), "utf-16")


def removed_with_a_mark(file: Path, lines: list[str]) -> None:
    file.write_text(lines[1].replace("\n", "\r\n"), "utf-8-sig", newline="")


GOOD = (removed, of_the_same_size_and_time, replaced, linked_elsewhere, commented, removed_with_a_mark)
ONE_LINE = (mistyped, cut_short, given_a_second_key)
NONE = (emptied,)
UNREADABLE = (deleted, renamed, linked_to_itself, a_directory, a_pipe, in_utf_16)


@pytest.mark.parametrize("change", [*GOOD, *ONE_LINE, *NONE, *UNREADABLE], ids=lambda change: change.__name__)
def test_a_withdrawn_key_is_refused_at_the_next_request(
    change: Callable[[Path, list[str]], None],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "keys.txt"
    (key, line), (other, second) = new_key("alice"), new_key("bob")
    lines = [f"{line}\n", f"{second}\n"]
    file.write_text("".join(lines))
    keys = Keys(file)
    assert keys.owner(key) and keys.owner(other)
    change(file, lines)
    if change in UNREADABLE:
        for one in (key, other, key):
            with pytest.raises(Refusal, match="keys of this server cannot be read") as refused_now:
                keys.owner(one)
            assert refused_now.value.status == 503
    else:
        assert keys.owner(key) is None and (keys.owner(other) is None) == (change in NONE)
        assert keys.owner(key) is None
    said = capfd.readouterr().err
    assert said.count("keys.txt") == said.count("\n") == (0 if change in GOOD else 1), said
    assert key not in said and line not in said
    if file.is_dir():
        file.rmdir()
    else:
        file.unlink(missing_ok=True)
    file.write_text("".join(lines))
    assert keys.owner(key) and keys.owner(other)


def test_a_large_file_is_read_quickly_for_each_request(tmp_path: Path) -> None:
    (key, line), (other, second) = new_key("alice"), new_key("bob")
    file = tmp_path / "keys.txt"
    file.write_text(line + "\n" + "".join(f"n{number}:{number:064x}\n" for number in range(20_000)))
    keys = Keys(file)
    begun = time.process_time()
    for _ in range(300):
        assert keys.owner(key) and keys.owner("wrong") is None
    assert time.process_time() - begun < 1.5
    file.write_text(second)
    assert [keys.owner(other) is None, keys.owner(key) is None] == [False, True]


def test_a_file_that_may_not_be_read_has_no_valid_key(tmp_path: Path) -> None:
    key, line = new_key("alice")
    file = tmp_path / "keys.txt"
    file.write_text(line)
    keys = Keys(file)
    file.chmod(0)
    if os.access(file, os.R_OK):
        pytest.skip("the superuser reads every file")
    with pytest.raises(Refusal):
        keys.owner(key)
    file.chmod(0o600)
    assert keys.owner(key)


def test_a_changed_file_counts_at_the_next_request(locked: Locked, capfd: pytest.CaptureFixture[str]) -> None:
    where = f"{locked.where}/metrics"
    locked.file.write_text("nonsense " + locked.key)
    assert ask(where, headers=locked.bearer()).status == 401
    assert post(f"{locked.where}/translate", {**ASKED, "api_key": locked.key}).status == 403
    assert ask(where, headers=locked.bearer()).status == 401
    said = capfd.readouterr().err
    assert said.count("keys.txt:1: expected NAME:SHA256") == 1
    assert locked.key not in said
    os.unlink(locked.file)
    for reply in (
        ask(where, headers=locked.bearer()),
        post(f"{locked.where}/translate", {**ASKED, "api_key": locked.key}),
        post(f"{locked.where}/api/key", {"key": locked.key}),
    ):
        assert reply.status == 503 and "API keys of this server cannot be read" in reply.body["error"]
    key, line = new_key("carol")
    locked.file.write_text(line)
    assert ask(where, headers=locked.bearer()).status == 401
    assert ask(where, headers=locked.bearer(key)).status == 200


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "expected at least one key"),
        ("# nobody\n", "expected at least one key"),
        ("bob:12\n", "keys.txt:1: expected NAME:SHA256 or"),
        (f"bob:{'a' * 64}:0\n", "keys.txt:1: expected"),
        (f"b b:{'a' * 64}\n", "keys.txt:1: expected"),
        (f"bob:{'a' * 64}\nbob:{'b' * 64}\n", "keys.txt:2: a second key of bob"),
    ],
)
def test_a_file_of_keys_is_checked_at_the_start(
    library: None, runs: Path, tmp_path: Path, text: str, sentence: str
) -> None:
    (tmp_path / "keys.txt").write_text(text)
    said = refused(weft("serve", runs / "toy", "--port", 0, "--api-keys", tmp_path / "keys.txt"))
    assert sentence in said
    assert "cannot be read" in refused(weft("serve", runs / "toy", "--api-keys", tmp_path / "none"))


def test_the_command_makes_a_key_that_works(library: None, tmp_path: Path) -> None:
    answer = weft("serve", "--new-key", "dora", code=0)
    assert answer.err.startswith("API key of dora, shown only now: weft_")
    (tmp_path / "keys.txt").write_text(answer.out)
    owner = Keys(tmp_path / "keys.txt").owner(answer.err.split()[-1])
    assert owner is not None and (owner.name, owner.per_minute) == ("dora", 0)
    assert weft("serve", "--new-key", "dora").out != answer.out
    assert "expected 1 to 64 letters" in refused(weft("serve", "--new-key", "a:b"))


def test_the_key_of_a_page_is_kept_in_a_cookie_that_scripts_cannot_read(locked: Locked) -> None:
    where = f"{locked.where}/api/key"
    assert post(where, {"key": "wrong"}).status == 403
    assert post(where, {"key": locked.key}, {"Origin": "https://evil.example"}).status == 403
    reply = post(where, {"key": locked.key})
    assert reply.status == 204
    cookie, *flags = reply.headers["set-cookie"].lower().split("; ")
    assert {"httponly", "samesite=strict", "path=/"} <= set(flags)
    name, _, _ = cookie.partition("=")
    sent = {"Cookie": f"{name}={locked.key}"}
    assert ask(f"{locked.where}/inspect?run=toy", headers=sent).status == 200
    assert ask(f"{locked.where}/api/runs", headers={"Cookie": f"{name}=wrong"}).status == 401


def test_the_page_asks_for_the_key_once(locked: Locked, browser: Browser) -> None:
    browser.screen(1000, 800)
    browser.open(f"{locked.where}/")
    browser.wait("!document.getElementById('key-form').hidden")
    browser.type("wrong")
    browser.press("Enter", 13, "\r")
    browser.wait("document.getElementById('status').textContent.startsWith('unknown API key')")
    browser.run("document.getElementById('key').value = ''")
    browser.type(locked.key)
    browser.press("Enter", 13, "\r")
    browser.wait("document.querySelectorAll('#first option').length === 1")
    assert browser.run("document.getElementById('key-form').hidden")
    assert browser.run("document.cookie") == ""
    browser.open(f"{locked.where}/?again")
    browser.wait("document.querySelectorAll('#first option').length === 1")
    browser.run("document.getElementById('text').focus()")
    browser.type("alpha beta")
    browser.press("Enter", 13, "\r")
    browser.wait("document.querySelectorAll('.target .word').length === 2")
