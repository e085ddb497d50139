"""An untrusted recipe: whatever it contains, the result is one error message, quickly, and no code runs.

Read next: weft/config/text.py.
"""

import string
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from weft.config import Entry, build, parse, read_recipe
from weft.config.recipe import MAX_BYTES
from weft.errors import ConfigError
from weft.nn.encoders.encoder import Encoder

BOMB = "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (BOMB, r"^x\.yaml:1: .*anchors such as &a"),
        ("a: 1\nb: *a", r"^x\.yaml:2: .*aliases such as \*a"),
        (
            "a: !!python/object/apply:os.system ['true']",
            r"^x\.yaml:1: ",
        ),
        ("a: !env HOME", r"^x\.yaml:1: .*'!env'"),
        ("a: !!str 3", r"^x\.yaml:1: .*'tag:yaml\.org,2002:str'"),
        ("a: 1\nb: 2\na: 3", r"^x\.yaml:3: a: .*at x\.yaml:1; remove one"),
        ("a: 1\n---\nb: 2", r"^x\.yaml:2: .*one document"),
        ("%YAML 1.1\n---\na: no", r"^x\.yaml:2: % directives"),
        ("%TAG ! tag:x,2000:\n---\na: no", r"^x.yaml:2: % directives"),
        ("1: a", r"^x\.yaml:1: .*got 1;"),
        ("? [a]\n: b", r"^x\.yaml:1: .*got a list;"),
        ("[" * 51 + "]" * 51, r"^x\.yaml:1: .*50 levels"),
        ("[" * 200_000, "50 levels"),
        ("{a: " * 50_000, "50 levels"),
        ("- " * 100_000, r"at most 50 levels"),
        (
            "b: 1\na: 'x\n\n",
            r"^x.yaml:4: this is not YAML: found unexpected end .* begins in line 2; look at quotes",
        ),
        ("a: b: c", r"^x.yaml:1: this is not YAML: mapping values are not allowed here"),
        ("a:\n\t- b", r"^x.yaml:2: this is not YAML"),
        ("a: \0", r"^x.yaml.*: this is not YAML"),
        ('a: "\\UFFFFFFFF"', r"^x.yaml.*: this is not YAML"),
        ("a: " + "9" * 5000, r"^x\.yaml:1: a: .*a number of 5000 digits"),
    ],
)
def test_what_a_recipe_may_not_use_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        parse(text, "x.yaml")


def test_a_number_too_large_for_a_float_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"dropout: "):
        build(parse("{use: recurrent, dropout: 1e999}", "x.yaml"), Encoder, in_size=3)


@pytest.mark.parametrize("size", [MAX_BYTES + 1, 40 * MAX_BYTES])
def test_a_huge_file_is_refused_unread(tmp_path: Path, size: int) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(b"#" * size)
    with pytest.raises(ConfigError, match=r"x.yaml: "):
        read_recipe(path)


def test_an_endless_file_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"/dev/zero: "):
        read_recipe("/dev/zero")


def test_files_that_are_no_recipe_are_refused(tmp_path: Path) -> None:
    for content, sentence in [
        (b"", r"x\.yaml:1: .*a table with sections such as data: and model"),
        (b"just words", r"x\.yaml:1: .*got 'just"),
        (b"- a\n", r"x.yaml:1: .*got a list"),
        (b"a: 1\nb: \xff\n", r"x.yaml:2: not UTF-8"),
        (b"\x7fELF\x02\x01\x01\0\0", r"x.yaml: this is not YAML"),
    ]:
        (tmp_path / "x.yaml").write_bytes(content)
        with pytest.raises(ConfigError, match=sentence):
            read_recipe(tmp_path / "x.yaml")
    with pytest.raises(ConfigError, match=r"none.yaml: no such file"):
        read_recipe(tmp_path / "none.yaml")
    with pytest.raises(ConfigError, match=r": .*got a directory"):
        read_recipe(tmp_path)
    with pytest.raises(ConfigError, match=r"cannot be read: "):
        read_recipe("a\0b")


def test_a_windows_recipe_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_bytes(b"\xef\xbb\xbfdata:\r\n  source: en\r\n")
    assert read_recipe(tmp_path / "x.yaml").plain() == {"data": {"source": "en"}}


yamlish = st.text(
    st.sampled_from(string.ascii_lowercase[:5] + "019.-+:,[]{}#&*!|>'\"%@`?~ \n\t\\\0\x85\u2028é")
)
phrases = st.lists(
    st.sampled_from(
        [
            "use: ",
            "recurrent",
            "sizes: ",
            "cell: ",
            "{",
            "}",
            "[",
            "]",
            ", ",
            "\n",
            "  ",
            "gru",
            "3",
            "- ",
            "!!",
            "&a",
        ]
    ),
    max_size=25,
).map("".join)


@given(st.text() | yamlish | phrases)
@example("0\n\n.")
@example('"\\x')
@example("%YAML 9999999999999999999.1\n--- a")
@example("%TAG")
@example("? ? ?")
@example("a: >99\n b")
def test_any_text_is_read_or_refused_in_one_sentence(text: str) -> None:
    try:
        entry = parse(text, "x.yaml")
    except ConfigError as error:
        assert str(error).isprintable() or "\n" not in str(error)
        return
    assert isinstance(entry, Entry)
    try:
        build(entry, Encoder, in_size=3)
    except ConfigError as error:
        assert str(error).startswith("x.yaml:") and "\n" not in str(error)


@given(st.lists(st.text() | yamlish | phrases.map("model.encoder={}".format), max_size=3))
def test_any_override_fits_or_is_refused_in_one_sentence(tmp_path_factory, overrides: list[str]) -> None:
    path = tmp_path_factory.getbasetemp() / "x.yaml"
    path.write_text("model: {encoder: recurrent}\n", encoding="utf-8")
    try:
        recipe = read_recipe(path, overrides)
        build(recipe.section("model"), lambda **_: None)
    except ConfigError as error:
        assert "\n" not in str(error)
