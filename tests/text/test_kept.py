"""Placeholders of messages survive their translation, or are named."""

import re

import numpy as np
import pytest

from tests.documents.capitals import translated
from weft.documents.files import opened
from weft.text.kept import (
    PORTABLE,
    differing,
    missing,
    placeholders,
    restored,
    spans,
    tagged,
    unbroken,
    untagged,
)
from weft.text.moving import laid
from weft.text.segments import Links, Mark, Segment, WrittenSentence
from weft.words import spans as words

for _name in ("lxml", "polib"):
    pytest.importorskip(_name, reason=f"{_name} is not installed: pip install -e .[documents]")


def test_placeholders_stay_where_their_words_are() -> None:
    """Capitals change each of them, as a model does."""
    texts = ("Open %s now", "%(count)d of %d {name}", "{0} or ${x}", "%1$s", "50% done, 3 %")
    for text in texts:
        wanted = "".join(
            one if re.fullmatch(FORM, one) else one.upper() for one in re.split(f"({FORM})", text)
        )
        assert f'msgstr "{wanted}"' in translated(f'msgid "{text}"\nmsgstr ""\n\n', "a.po")
        xliff = f"<xliff><file><trans-unit><source>{text}</source></trans-unit></file></xliff>"
        assert f">{wanted}</target>" in translated(xliff, "a.xlf")
    assert '"A"' in translated('msgid "a"\nmsgstr ""\n', "a.po")


FORM = r"%(?:\d\$|\(count\))?[sd]|\$?\{\w+\}"


def test_a_lost_placeholder_is_named_with_its_place() -> None:
    catalogue = (
        'msgid ""\nmsgstr ""\n\nmsgid "Open %s"\nmsgstr ""\n\nmsgid "%d file"\nmsgid_plural "%d files"\n'
    )
    xliff = """<xliff version="2.0" srcLang="en" trgLang="es"><file><unit>
<segment><source>Open %s</source></segment>
<segment><source>Open <pc>%d</pc></source></segment></unit></file></xliff>"""
    lost: list[str] = []
    document = opened(catalogue.encode(), "a.po", "en", "es", lost)
    kept = document.written(
        [WrittenSentence("Abra"), WrittenSentence("%d archivo"), WrittenSentence("%d archivos %s")]
    ).decode()
    assert lost == [
        "a.po:4: expected placeholders %s, got none; correct the translation",
        "a.po:7: expected placeholders %d, got %d %s; correct the translation",
    ]
    assert kept.count("#, fuzzy") == 2
    lost.clear()
    document = opened(xliff.encode(), "a.xlf", "en", "es", lost)
    spans = words(document.segments[1].text)
    links = Links(np.eye(len(spans)), spans, spans)
    there = document.written([WrittenSentence("Abra"), WrittenSentence("Abra %s", links)]).decode()
    assert lost == [
        "a.xlf:2: expected placeholders %s, got none; correct the translation",
        "a.xlf:3: expected placeholders %d, got %s; correct the translation",
    ]
    assert there.count('state="initial"') == 2 and "translated" not in there


FOUND = {
    "printf": ("%s %d %5.2f %1$s %%", ["%s", "%d", "%5.2f", "%1$s"]),
    "named": ("%(name)s {count} {0} {0!r:>5} ${x} %{y} {{ z }}", None),
    "templates": (
        "{{#each x}} {{ a|upper }} {% if x %} <%= x %> <?php x ?> $t(key)",
        ["{{#each x}}", "{{ a|upper }}", "{% if x %}", "<%= x %>", "<?php x ?>", "$t(key)"],
    ),
    "variables": (
        "#{name} { $var } $NAME$ %HOME% {1,10:C}",
        ["#{name}", "{ $var }", "$NAME$", "%HOME%", "{1,10:C}"],
    ),
    "messages": (
        "a {n, plural, one {# file of {x}} other {# files}} in {0,number,#.##}, {a, b}",
        ["{n, plural, one {# file of {x}} other {# files}}", "{0,number,#.##}"],
    ),
    "numbers of Qt": ("%n files, 5%n, %name", ["%n"]),
    "qt": ("%1 of %L2, 5%1", ["%1", "%L2"]),
    "tags": (
        "<g id=\"1\">a</g> <x/> <br> <b class='c'>",
        ['<g id="1">', "</g>", "<x/>", "<br>", "<b class='c'>"],
    ),
    "entities": ("a&nbsp;b &#160; &#xA0; & c; AT&T", ["&nbsp;", "&#160;", "&#xA0;"]),
    "escapes": (r"a\nb\tc", [r"\n", r"\t"]),
    "addresses": (
        "(see https://a.org/b?c=d%20e#f), www.a.org. mailto:x@a.org, me.too+1@a-b.co.uk!",
        ["https://a.org/b?c=d%20e#f", "www.a.org", "mailto:x@a.org", "me.too+1@a-b.co.uk"],
    ),
    "beside other scripts": ("请看https://a.org/b。", ["https://a.org/b"]),
    "paths": (r"Open C:\new\file.txt, then", [r"C:\new\file.txt"]),
    "flags": ("%'d bytes, % d of %'.2f, 3 % d'a, 5 % done", ["%'d", "% d", "%'.2f"]),
    "none": ("50% done, 3 % of {a b}, 5%-os, 1 < 2 > 0, a@b, & so on, {", []),
}


@pytest.mark.parametrize(("text", "wanted"), FOUND.values(), ids=FOUND)
def test_placeholders_are_found(text: str, wanted: list[str] | None) -> None:
    if wanted is None:
        wanted = ["%(name)s", "{count}", "{0}", "{0!r:>5}", "${x}", "%{y}", "{{ z }}"]
    assert placeholders(text) == wanted


def linked(source: str, target: str, *pairs: tuple[int, int]) -> WrittenSentence:
    """A translation whose words, by number, have all of their attention on words of the source."""
    read, there = words(source), words(target)
    weights = np.full((len(there), len(read)), 1 / len(read))
    for row, column in pairs:
        weights[row] = 0
        weights[row, column] = 1
    return WrittenSentence(target, Links(weights, read, there))


def test_a_lost_part_takes_the_place_of_the_words_it_became() -> None:
    source = "I like 🙂 very much"
    found = linked(source, "me gusta Ú mucho", (0, 0), (1, 1), (2, 2), (3, 4))
    assert restored(source, found, [(7, 8)]) == "me gusta 🙂 mucho"
    nobody = linked(source, "me gusta mucho", (0, 0), (1, 1), (2, 3))
    assert restored(source, nobody, [(7, 8)]) == "me gusta 🙂 mucho"  # before what follows it
    glued = linked("to me@a.org now", "a.b", (0, 0), (1, 1), (2, 2))
    assert restored("to me@a.org now", glued, [(3, 11)]) == "a me@a.org"


def test_a_part_after_a_full_stop_keeps_its_space() -> None:
    source = "Open it. 🙂"
    found = linked(source, "Ábralo.", (0, 0), (1, 2))
    assert restored(source, found, [(9, 10)]) == "Ábralo. 🙂"
    source = "🙂 Open it."
    found = linked(source, "¡Ábralo!", (0, 1), (1, 1), (2, 3))
    assert restored(source, found, [(0, 1)]) == "🙂 ¡Ábralo!"


def test_what_the_translation_has_is_not_replaced() -> None:
    source = "%d of %s"
    found = linked(source, "%d de", (0, 3), (1, 3), (2, 2))  # its attention is wrong
    assert restored(source, found, missing(source, found.text)) == "%d de %s"
    assert missing(source, "%s de %d") == []


def test_tags_go_around_what_their_words_became() -> None:
    line = 'Click <g id="1">Insert <b>Table</b></g><x/>, then'
    bare = untagged(line)
    assert bare is not None and bare.text == "Click Insert Table, then"
    found = linked(bare.text, "Pulse Tabla Insertar, y", *((n, m) for n, m in enumerate((0, 2, 1, 3, 4))))
    text = tagged(bare, found)
    assert text == 'Pulse <g id="1"><b>Tabla</b> Insertar</g><x/>, y'
    assert differing(line, text) == "" and untagged("1 < 2") is None


def test_an_address_may_follow_a_placeholder_at_once() -> None:
    assert placeholders("%sme@a.org") == ["%s", "me@a.org"]
    assert placeholders("%1$sa.b+c@d-e.f.g, x@y, %00d %-08.3f") == [
        "%1$s",
        "a.b+c@d-e.f.g",
        "%00d",
        "%-08.3f",
    ]


def test_no_markup_begins_or_ends_inside_a_placeholder() -> None:
    source = Segment("Open the file {{x}}", (Mark(5, 8, "b"), Mark(14, 14, "p")))
    text = "Abra {{x}} ahora"
    read, there = words(source.text), words(text)
    inside = [number for number, (begin, end) in enumerate(there) if begin < 10 and end > 5]
    assert len(inside) > 1  # its braces are words of their own
    weights = np.full((len(there), len(read)), 1 / len(read))
    weights[inside[0]] = np.eye(len(read))[1]  # "the" became the first brace
    weights[inside[-1]] = np.eye(len(read))[3]
    whole = unbroken(WrittenSentence(text, Links(weights, read, there)))
    assert whole.links.target[1] == (5, 10) and whole.links.weights.sum(1) == pytest.approx(1)
    assert whole.links.weights[1] == pytest.approx(weights[inside].mean(0))
    shown = "".join(one if isinstance(one, str) else "|" for one in flat(laid(source, whole)))
    assert "{{x}}" in shown


def flat(parts: list) -> list:
    """The texts of a translation, with a sign for each end of its markup."""
    found: list = []
    for one in parts:
        found += [one] if isinstance(one, str) else ["|", *flat(one.inner), "|"]
    return found


@pytest.mark.parametrize(
    "text",
    [
        "%1$s of %(all)d: {name}, {0:.2f}, ${x}, 50% done",
        '<b id="1">Mail</b>&nbsp;to me@a.org, or see https://a.org/?b=1.',
        "{count, plural, one {# file} other {# files}} %n of %L1 {{ x }} %d%% <x/> $t(a.b) {0,-3:N} \\n",
    ],
)
def test_exported_programs_find_the_same_placeholders(text: str) -> None:
    assert [found.span() for found in re.finditer(PORTABLE, text)] == spans(text)
