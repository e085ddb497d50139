"""Public data sets: fetched from a local server, checked, converted; nothing is overwritten."""

import gzip
import hashlib
import io
import json
import re
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.commands.shell import refused, weft
from weft.config.recipe import data_source, shipped
from weft.data import sets
from weft.data.sets import CONVERSIONS, SetFile, data_sets, fetch
from weft.errors import DataError

ROOT = Path(__file__).resolve().parents[2]
TEXT = bytes(range(32, 127)) * 1000


class Server:
    """Serves `content`, or its first `cut` bytes."""

    def __init__(self) -> None:
        self.content: dict[str, bytes] = {}
        self.cut: int | None = None
        self.asked = 0
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.asked += 1
                whole = server.content.get(self.path)
                if whole is None:
                    return self.send_error(404)
                self.send_response(200)
                self.send_header("Content-Length", str(len(whole)))
                self.end_headers()
                self.wfile.write(whole[: server.cut])
                return None

            def log_message(self, *words: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.http.serve_forever, args=[0.01], daemon=True)
        self.thread.start()

    def file(self, content: bytes, *, to: str = "a.txt", convert: str = "", most: int = 0) -> SetFile:
        self.content["/a"] = content
        address = f"http://127.0.0.1:{self.http.server_port}/a"
        digest = "sha256:" + hashlib.sha256(content).hexdigest()
        return SetFile(to, address, most or len(content), digest, convert)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    one = Server()
    yield one
    one.http.shutdown()
    one.http.server_close()
    one.thread.join()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_machine_without_a_network_is_told_where_to_fetch(server: Server, tmp_path: Path) -> None:
    file = server.file(TEXT)._replace(address="http://server.invalid/a.txt")
    with pytest.raises(DataError, match="may have no network; run the same command on one that has"):
        fetch(file, tmp_path)


def test_an_interrupted_download_leaves_nothing(server: Server, tmp_path: Path) -> None:
    file = server.file(TEXT)
    server.cut = 70_000
    with pytest.raises(DataError, match="run the same command again"):
        fetch(file, tmp_path)
    assert names(tmp_path) == []
    server.cut = None
    assert fetch(file, tmp_path) and (tmp_path / "a.txt").read_bytes() == TEXT


def test_what_is_there_is_not_overwritten(server: Server, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("mine")
    assert not fetch(server.file(TEXT), tmp_path)
    assert (tmp_path / "a.txt").read_text() == "mine" and not server.asked


def test_another_content_is_refused(server: Server, tmp_path: Path) -> None:
    file = server.file(TEXT)
    server.content["/a"] = TEXT[::-1]
    with pytest.raises(DataError, match="digest"):
        fetch(file, tmp_path)
    assert names(tmp_path) == []


def test_more_than_was_told_is_not_stored(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="expected 10 bytes, got more"):
        fetch(server.file(TEXT, most=10), tmp_path)
    assert names(tmp_path) == []


def test_no_file_and_no_server_are_told(server: Server, tmp_path: Path) -> None:
    file = server.file(TEXT)
    server.content.clear()
    with pytest.raises(DataError, match="the server answers 404"):
        fetch(file, tmp_path)
    closed = file._replace(address="http://127.0.0.1:1/a")
    with pytest.raises(DataError, match="the connection failed"):
        fetch(closed, tmp_path)


def test_a_folder_that_is_a_file_is_told(server: Server, tmp_path: Path) -> None:
    (tmp_path / "b").write_text("")
    with pytest.raises(DataError, match="cannot be written"):
        fetch(server.file(TEXT), tmp_path / "b")


def test_what_is_fetched_plain_is_compressed_if_its_name_says_so(server: Server, tmp_path: Path) -> None:
    assert fetch(server.file(TEXT, to="a.txt.gz"), tmp_path)
    assert gzip.decompress((tmp_path / "a.txt.gz").read_bytes()) == TEXT


def test_conversions(server: Server, tmp_path: Path) -> None:
    def made(content: bytes, convert: str, to: str) -> str:
        fetch(server.file(content, to=to, convert=convert), tmp_path)
        return (tmp_path / to).read_text("utf-8")

    questions = "NUM:count How many ?\nLOC:city Where is Orl\xe9ans ?\n".encode("latin-1")
    assert made(questions, "questions", "q") == (
        "coarse\tfine\ttext\nNUM\tNUM:count\tHow many ?\nLOC\tLOC:city\tWhere is Orl\xe9ans ?\n"
    )
    assert made(b"1 good film .\n0 bad .\n", "labelled", "l") == "label\ttext\n1\tgood film .\n0\tbad .\n"
    both = archive({"rt-polarity.neg": b"dull . \n", "rt-polarity.pos": b"fine . \n"})
    assert made(both, "polarity", "p") == "label\ttext\n0\tdull .\n1\tfine .\n"


def archive(members: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(f"sentence_polarity/{name}", content)
    return out.getvalue()


def test_the_id_of_a_file_in_git_is_a_digest(server: Server, tmp_path: Path) -> None:
    # printf hello | git hash-object --stdin
    file = server.file(b"hello")._replace(digest="git:b6fc4c620b67d95f953a5c1c1230aaab5db5a1b0")
    assert fetch(file, tmp_path)


def test_the_command_lists_and_fetches(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = server.file(TEXT)
    none = "none stated; " * 9 + "repository MIT"
    table = {"trec": {"about": "Letters", "source": "here", "licence": none, "files": [one._asdict()]}}
    (tmp_path / "sets.json").write_text(json.dumps(table), "utf-8")
    monkeypatch.setattr(sets, "TABLE", tmp_path / "sets.json")
    listed = weft("data", "get").lines
    assert listed[0].startswith("trec ") and "repository MIT" in listed[-1]
    assert max(map(len, listed)) <= 80
    done = weft("data", "get", "trec", "--folder", tmp_path / "here")
    assert done.code == 0 and done.lines == [str(tmp_path / "here" / "a.txt")]
    assert "data.folder=" in done.err
    assert "exists and is left unchanged" in weft("data", "get", "trec", "--folder", tmp_path / "here").out
    assert "no data set is called 'nosuch'; known are trec" in refused(weft("data", "get", "nosuch"))


def test_addresses_are_of_one_commit_and_conversions_are_known() -> None:
    for name, one in data_sets().items():
        assert one.licence and one.about, name
        for file in one.files:
            assert re.fullmatch(
                r"https://raw\.githubusercontent\.com/[^/]+/[^/]+/[0-9a-f]{40}/.+", file.address
            )
            assert re.fullmatch(r"sha256:[0-9a-f]{64}|git:[0-9a-f]{40}", file.digest)
            assert file.convert in {"", *CONVERSIONS} and Path(file.to).name == file.to
            assert one.source.partition("github.com/")[2] in file.address


def test_every_recipe_that_needs_files_says_what_to_type() -> None:
    known, page = data_sets(), (ROOT / "docs" / "guides" / "data-sets.md").read_text("utf-8")
    for recipe in shipped():
        if source := data_source(recipe):
            fetched = re.match(r"weft data get (\S+), ", source)
            assert fetched or re.search(r"python recipes/\S+\.py|docs/guides/data-sets\.md", source), recipe
            if fetched:
                assert {file.to for file in known[fetched[1]].files} and f"`{fetched[1]}`" in page, recipe
