"""Files as LibreTranslate takes them: sent, translated, fetched; damaged, large and unknown ones refused."""

import asyncio
import errno
import io
import os
import secrets
import socket
import time
import zipfile
from dataclasses import replace
from logging import LogRecord
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import Any

import pytest

from tests.serve.client import Reply, ask, post
from weft.serve.batcher import BatchJob
from weft.serve.limits import Refusal
from weft.serve.translation import Shelf

PAGE = b"<h1>alpha</h1>\n<p>beta <b>gamma</b> delta. Eta</p><!-- eta -->\n"


FORM = "multipart/form-data; boundary=e"


def upload(data: bytes, name: str, **fields: str) -> bytes:
    parts = [
        f'--e\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{value}\r\n'.encode()
        for key, value in {"source": "xx", "target": "yy", **fields}.items()
    ]
    head = f'--e\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'.encode()
    return b"".join([*parts, head, data, b"\r\n--e--\r\n"])


def sent(address: str, data: bytes, name: str, **fields: str) -> Reply:
    return ask(f"{address}/translate_file", upload(data, name, **fields), FORM)


def test_a_file_is_translated_and_fetched(address: str) -> None:
    answer = sent(address, PAGE, "../my page.html")
    assert answer.status == 200
    where = answer.body["translatedFileUrl"]
    assert where.startswith(f"{address}/download_file/") and where.endswith(".my_page.yy.html")
    found = ask(where)
    assert found.body.startswith("<h1>uno</h1>\n<p>due <b>tre</b> quattro") and "<!-- eta -->" in found.body
    assert found.headers["content-disposition"] == 'attachment; filename="my_page.yy.html"'
    settings = ask(f"{address}/frontend/settings").body
    assert settings["filesTranslation"] and ".docx" in settings["supportedFilesFormat"]


def test_what_does_not_fit_is_refused_with_its_reason(address: str) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("x", "y")
    for data, name, fields, sentence in (
        (b"<tmx>\n<a>\n</tmx>", "a.tmx", {}, "a.tmx:3: expected well-formed XML"),
        (out.getvalue(), "a.docx", {}, "expected a Word document"),
        (b"%PDF-", "a.pdf", {}, "expected a document, got a PDF; convert it: pdftotext"),
        (b"x", "", {}, "file: expected"),
        (b"alpha\n" * 4001, "a.txt", {}, "expected at most 20,000 characters, got 20,005"),
        (b"x", "a.txt", {"target": "zz"}, "available: xx to yy"),
        (b"<!DOCTYPE t [<!ENTITY a 'b'>]><tmx>&a;</tmx>", "a.tmx", {}, "declares some"),
    ):
        answer = sent(address, data, name, **fields)
        assert answer.status == 400 and sentence in answer.body["error"], (name, answer)
    assert "file: expected a file" in post(f"{address}/translate_file", {"source": "xx"}).body["error"]
    assert sent(address, b"x" * 10_020_000, "a.txt").status == 413
    for name in ("x", "..%2Fetc%2Fpasswd", "a" * 32 + ".html"):
        assert ask(f"{address}/download_file/{name}").status == 404


def test_the_language_of_a_file_is_detected(address: str) -> None:
    unit = b'<tmx><body><tu><tuv xml:lang="%s"><seg>alpha</seg></tuv></tu></body></tmx>'
    pair = b'<tmx><body><tu><tuv xml:lang="XX-a"><seg>a</seg></tuv><tuv xml:lang="yy"><seg>b</seg></tuv></tu>'
    for data, name in ((b"alpha", "a.txt"), (pair + unit[11:] % b"xx", "a.tmx")):
        answer = sent(address, data, name, source="AUTO")
        assert answer.status == 200, answer
        assert "uno" in ask(answer.body["translatedFileUrl"]).body
    wrong = sent(address, b"<tmx><body></body></tmx>", "a.tmx", source="auto")
    assert wrong.status == 400 and "name the languages in the file" in wrong.body["error"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (b"\n" * 20_001, "expected at most 20,000 lines, got 20,001"),
        (b"\r" * 20_001, "expected at most 20,000 lines, got 20,001"),
        (b"a\n" * 2_001, "expected at most 2,000 sentences, got 2,001"),
    ],
)
def test_a_file_of_many_small_texts_is_refused(address: str, text: bytes, sentence: str) -> None:
    reply = sent(address, text, "a.txt")
    assert reply.status == 400 and sentence in reply.body["error"]


def test_a_form_that_cannot_be_read_writes_nothing_to_the_log(address: str, logged: list[LogRecord]) -> None:
    for body in (
        b"--x",
        b'--x\r\nContent-Disposition: form-data; name="q"',
        b"\r\n--xx\r\n\r\n\xff",
        b"--x--x--x",
    ):
        reply = ask(f"{address}/translate", body, "multipart/form-data; boundary=x")
        assert reply.status == 400
    assert not logged


def test_a_shelf_forgets_and_is_bounded(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "shelf", largest=10)
    first = shelf.put("a b.html", b"12345", "alice")
    assert first.endswith(".a_b.html") and shelf.get(first) == b"12345"
    assert (tmp_path / "shelf").stat().st_mode & 0o077 == 0
    with pytest.raises(Refusal, match="too many"):
        shelf.put("c.html", b"123456", "alice")
    other = shelf.put("c.html", b"123456", "bob")  # one client cannot fill the shelf of another
    assert shelf.get(other) == b"123456"
    with_tag = next(one.name for one in shelf.folder.iterdir())
    assert shelf.get(with_tag) is None and not {first, other} & set(os.listdir(shelf.folder))
    shelf.seconds = -1
    assert shelf.get(first) is None
    shelf.put("c.html", b"1234567890", "alice")
    assert len(list((tmp_path / "shelf").iterdir())) == 1
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(Refusal, match="another user"):
        Shelf(tmp_path / "link").put("a", b"")


class FullFile(SpooledTemporaryFile[bytes]):
    """A file on a full disk."""

    def write(self, _: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


def opened_on_a_full_disk(path: Path, mode: str = "r", *more: Any) -> Any:
    if mode != "xb":
        return open(path, mode, *more)
    path.touch()
    return FullFile()


@pytest.mark.parametrize(
    ("name", "full"),
    [("starlette.formparsers.SpooledTemporaryFile", FullFile), ("pathlib.Path.open", opened_on_a_full_disk)],
    ids=["upload", "translation"],
)
def test_a_full_disk_is_named_and_leaves_nothing(
    address: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], name: str, full: Any
) -> None:
    mine = secrets.token_hex(8)  # other processes of the tests keep files in the same folder
    with monkeypatch.context() as patch:
        patch.setattr(name, full)
        reply = sent(address, b"alpha\n", f"{mine}.txt")
    assert reply.status == 503 and "no disk space left" in reply.body["error"]
    assert reply.headers["retry-after"] == "60"
    assert "Traceback" not in capfd.readouterr().err
    assert not list(Shelf().folder.glob(f"*{mine}*"))
    assert sent(address, b"alpha\n", "a.txt").status == 200


def test_a_full_disk_in_a_batch_is_named_too(serving: Any) -> None:
    def work(items: list[Any], stopped: Any) -> list[Any]:
        raise OSError(errno.ENOSPC, "No space left on device")

    async def asked() -> None:
        await serving.batcher.ask(BatchJob("full", work, ["a"], 20))

    with pytest.raises(Refusal, match="no disk space left") as refused:
        asyncio.run(asked())
    assert refused.value.status == 503


def test_an_upload_that_takes_long_does_not_make_another_client_wait(
    monkeypatch: pytest.MonkeyPatch, serving: Any
) -> None:
    """Two documents of one client are opened one after the other; that of another client at once."""
    from weft.serve.translation import Documents

    async def opened() -> list[str]:
        documents = Documents(serving.translation, Shelf())
        slow, order = asyncio.Event(), list[str]()

        async def step(name: str) -> None:
            if name == "slow":
                await slow.wait()
            order.append(name)

        first = asyncio.ensure_future(documents._open("alice", step, "slow"))
        await asyncio.sleep(0)
        second = asyncio.ensure_future(documents._open("alice", step, "second"))
        await documents._open("bob", step, "bob")
        slow.set()
        await asyncio.gather(first, second)
        return order

    assert asyncio.run(opened()) == ["bob", "slow", "second"]


def test_a_client_that_leaves_frees_its_place_and_many_documents_are_refused(
    address: str, monkeypatch: pytest.MonkeyPatch, serving: Any
) -> None:
    from weft.serve import translation

    ended, count = [], []

    async def waiting(*_: Any) -> Any:
        count.append(1)
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(1)

    host, port = address.removeprefix("http://").split(":")
    body = upload(b"alpha", "a.txt")
    head = f"POST /translate_file HTTP/1.1\r\nHost: localhost\r\nContent-Type: {FORM}\r\n"
    with monkeypatch.context() as patch:
        patch.setattr(translation, "document_sentences", waiting)
        lines = []
        for n in range(translation.EACH + 2):
            lines.append(socket.create_connection((host, int(port)), timeout=20))
            lines[-1].sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            if n >= translation.EACH:
                assert b" 429 " in lines[-1].recv(100)
        for line in lines:
            line.close()
        until = time.monotonic() + 20
        while not ended and time.monotonic() < until:
            time.sleep(0.01)
        assert ended == [1] == count  # the others never began
    assert sent(address, b"alpha\n", "a.txt").status == 200


def test_a_document_waits_no_longer_than_the_deadline(serving: Any) -> None:
    from weft.serve.translation import Documents

    async def late() -> None:
        documents = Documents(serving.translation, Shelf())
        documents.limits = replace(documents.limits, deadline_seconds=0.05)
        for _ in range(4):
            await documents._opening.acquire()

        async def step() -> None:
            raise AssertionError

        await documents._open("alice", step)

    with pytest.raises(Refusal, match="documents of others") as refused:
        asyncio.run(late())
    assert refused.value.status == 503
