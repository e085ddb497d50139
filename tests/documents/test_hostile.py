"""Files of strangers that are made to cost time, memory or an error: answered or refused at once."""

import time

import pytest

from tests.documents.capitals import shouted, translated
from tests.slow import slow
from weft.documents.files import opened
from weft.documents.html import Html
from weft.errors import DataError
from weft.text.sentences import DocumentPlan

for _name in ("lxml", "markdown_it"):
    pytest.importorskip(_name, reason=f"{_name} is not installed: pip install -e .[documents]")


@pytest.mark.parametrize(
    "name", ["idna", "undefined", "punycode", "unicode_escape", "UTF-7", "zlib", "no-such"]
)
def test_a_page_in_no_encoding_of_pages_is_read_as_utf_8(name: str) -> None:
    page = f'<meta charset="{name}"><p>caf\u00e9 {"x" * 70}</p>'.encode()
    found = shouted(opened(page, "a.html", "en", "es")).decode()
    assert "<p>CAF\u00c9 X" in found and name in found


@pytest.mark.parametrize(
    "text",
    [
        "<b>" * 3001 + "alpha" + "</b>" * 3001,
        "alpha" + "</b>" * 3001,
        "<b>alpha</i>" * 3001,
        "<p><b>a</p></b>" * 3001,
    ],
    ids=["nested", "not open", "crossed", "over paragraphs"],
)
def test_tags_that_are_nested_without_end_are_kept(text: str) -> None:
    found = translated(text, "a.html")
    assert sorted(found.upper()) == sorted(text.upper())
    assert all(found.count(tag) == text.count(tag) for tag in ("<b>", "</b>", "</i>", "<p>", "</p>"))


def test_a_page_with_every_private_character_is_translated() -> None:
    private = "".join(map(chr, [*range(0xE000, 0xF900), *range(0xF0000, 0xF0100)]))
    assert translated(f'<img alt="a"><p>b{private}', "a.html") == f'<img alt="A"><p>B{private}'


@pytest.mark.parametrize("page", ["<p>&#{};", "<p class='&#{};'>a", "<p title='a&#{}'>a", "<script>&#{};"])
def test_a_character_by_a_number_of_thousands_of_digits_is_refused(page: str) -> None:
    with pytest.raises(DataError, match="got a number of 1,000 digits"):
        translated(page.format("9" * 5000), "a.html")
    assert translated(page.format("0" * 900 + "65"), "a.html")


XLIFF = "<xliff><file><trans-unit><source>{}</source></trans-unit></file></xliff>"


def seconds(data: str, name: str) -> float:
    begun = time.process_time()
    document = opened(data.encode(), name, "en", "es")
    DocumentPlan(document.segments, "en", "es")
    return time.process_time() - begun


@pytest.mark.parametrize(
    ("one", "name", "around"),
    [
        ("{{ a.%", "a.po", 'msgid "{}"\nmsgstr ""\n'),
        (" ", "a.html", "<p>a{}b</p>"),
        *slow(
            [
                ("*a* ", "a.md", "{}"),
                ("`a``", "a.md", "{}"),
                (
                    "<x/>a ",
                    "a.xlf",
                    "<xliff><file><trans-unit><source>{}</source></trans-unit></file></xliff>",
                ),
                ("<b>a</b>", "a.html", "{}"),
                ("\n", "a.txt", "{}"),
            ]
        ),
    ],
)
def test_four_times_the_text_takes_at_most_about_four_times_as_long(one: str, name: str, around: str) -> None:
    short = min(seconds(around.format(one * 4_000), name) for _ in range(3))
    long = min(seconds(around.format(one * 16_000), name) for _ in range(3))
    assert long < 10 * short + 0.3  # 16 times, if it were quadratic


def test_a_file_of_nothing_is_a_file_of_nothing_or_refused() -> None:
    for ending in ("txt", "html", "md", "srt"):
        assert shouted(opened(b"", f"a.{ending}", "en", "es")) == b""
    for ending in ("po", "xliff", "tmx", "docx", "odt"):
        with pytest.raises(DataError, match=f"a.{ending}"):
            opened(b"", f"a.{ending}", "en", "es")
    assert Html("").segments == []
