"""Public data sets: fetched from a local server, resumed, checked, converted; nothing is overwritten."""

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
from weft.config.shipped import data_source, shipped
from weft.data import sets
from weft.data.sets import CONVERSIONS, SetFile, data_sets, fetch
from weft.errors import DataError

ROOT = Path(__file__).resolve().parents[2]
TEXT = bytes(range(32, 127)) * 1000


class Server:
    """Serves `content`; `cut` bytes of the next answer only, and ranges unless told otherwise."""

    def __init__(self) -> None:
        self.content: dict[str, bytes] = {}
        self.cut: int | None = None
        self.ranges = True
        self.asked: list[str] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.asked.append(self.headers.get("Range", ""))
                whole = server.content.get(self.path)
                if whole is None:
                    return self.send_error(404)
                found = (
                    re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", "")) if server.ranges else None
                )
                start = int(found[1]) if found else 0
                if found and start >= len(whole):
                    return self.send_error(416)
                self.send_response(206 if found else 200)
                if found:
                    self.send_header("Content-Range", f"bytes {start}-{len(whole) - 1}/{len(whole)}")
                self.send_header("Content-Length", str(len(whole) - start))
                self.end_headers()
                cut, server.cut = server.cut, None
                self.wfile.write(whole[start:] if cut is None else whole[start : start + cut])
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


@pytest.mark.parametrize("ranges", [True, False], ids=["continued", "from the start"])
def test_an_interrupted_download_is_resumed(server: Server, tmp_path: Path, ranges: bool) -> None:
    file = server.file(TEXT)
    server.cut = 70_000
    with pytest.raises(DataError, match="run the same command again, it continues"):
        fetch(file, tmp_path)
    assert names(tmp_path) == ["a.txt.part"]
    server.ranges = ranges
    assert fetch(file, tmp_path)
    assert (tmp_path / "a.txt").read_bytes() == TEXT and names(tmp_path) == ["a.txt"]
    assert re.fullmatch(r"bytes=[1-9]\d*-", server.asked[1])


def test_what_is_there_is_not_overwritten(server: Server, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("mine")
    assert not fetch(server.file(TEXT), tmp_path)
    assert (tmp_path / "a.txt").read_text() == "mine" and server.asked == []


def test_a_download_is_not_written_through_a_link(server: Server, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "a.txt.part").symlink_to(tmp_path / "mine")
    with pytest.raises(DataError, match="is a link"):
        fetch(server.file(TEXT), tmp_path)
    with pytest.raises(OSError, match="symbolic link"):
        sets._receive(server.file(TEXT), tmp_path / "a.txt.part", 0)
    assert (tmp_path / "mine").read_text() == "mine"


def test_another_content_is_refused_and_removed(server: Server, tmp_path: Path) -> None:
    file = server.file(TEXT)
    server.content["/a"] = TEXT[::-1]
    with pytest.raises(DataError, match="digest"):
        fetch(file, tmp_path)
    assert names(tmp_path) == []


def test_more_than_was_told_is_not_stored(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="expected 10 bytes, got more"):
        fetch(server.file(TEXT, most=10), tmp_path)
    assert names(tmp_path) == []


def test_a_leftover_longer_than_the_file_is_dropped(server: Server, tmp_path: Path) -> None:
    file = server.file(TEXT, most=len(TEXT) + 100)
    (tmp_path / "a.txt.part").write_bytes(TEXT + b"more")
    with pytest.raises(DataError, match="416"):
        fetch(file, tmp_path)
    assert fetch(file, tmp_path) and (tmp_path / "a.txt").read_bytes() == TEXT


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


@pytest.mark.parametrize(
    ("members", "why"),
    [
        ({"../../../outside.txt": b"x", "/outside.txt": b"x"}, "no such file in the archive"),
        ({"rt-polarity.neg": b"\0" * (65 * 2**20), "rt-polarity.pos": b""}, "larger than 64 MiB"),
    ],
    ids=["names outside", "bomb"],
)
def test_a_hostile_archive_writes_nothing(
    server: Server, tmp_path: Path, members: dict[str, bytes], why: str
) -> None:
    folder = tmp_path / "deep" / "data"
    with pytest.raises(DataError, match=why):
        fetch(server.file(archive(members), to="a.tsv", convert="polarity"), folder)
    assert names(folder) == ["a.tsv.part"] and names(tmp_path) == ["deep"]


def test_what_is_no_archive_is_told(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"not a \.zip"):
        fetch(server.file(b"no archive", to="a.tsv", convert="polarity"), tmp_path)


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
