"""What of a table its answers keep: delimiter, byte order mark, line ends and decimal commas."""

from pathlib import Path

import pytest

from weft.data.table_style import TableStyle, style_of
from weft.data.tables import TableFile

EXCEL = TableStyle(";", begin="\ufeff", end="\r\n", comma=True)


@pytest.mark.parametrize(
    ("name", "content", "style"),
    [
        ("a.csv", b"a,b\n1.5,2\n", TableStyle()),
        ("a.csv", b"\xef\xbb\xbfa;b\r\nx;60,94\r\n", EXCEL),
        ("a.csv", b'\xef\xbb\xbf"a\nb";c\r\nx;"1.234,5 \xe2\x82\xac"\r\ny;n/a\r\n', EXCEL),
        ("a.csv", "\ufeffa;b\r\nx;60,94\r\n".encode("utf-16-le"), EXCEL),
        ("a.csv", b"a;b;c\n60,94;21.06.2025;1.5\n", TableStyle(";", comma=True)),
        ("a.csv", b"a;b;c\n60,94;2.5;1.5\n", TableStyle(";")),
        ("a.csv", b'a,b\n"60,94",x\n', TableStyle(comma=True)),
        ("a.csv", b'a,b\n"1,234",x\n"1,234,567",y\n', TableStyle()),
        ("a.csv", b'a,b\n"x\r\ny",2\n', TableStyle()),
        ("a.tsv", b'a\tb\r\n5" disk\t2,5\r\n', TableStyle("\t", quoted=False, end="\r\n", comma=True)),
        ("a.jsonl", b'{"a": "1,5"}\n', TableStyle()),
    ],
)
def test_a_table_tells_how_it_is_written(
    name: str, content: bytes, style: TableStyle, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    assert style_of(TableFile(tmp_path / name)) == style
