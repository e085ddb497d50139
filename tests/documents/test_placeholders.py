"""Placeholders of messages survive their translation, or are named."""

import re

import numpy as np
import pytest

from tests.documents.capitals import translated
from weft.documents.files import opened
from weft.documents.links import Links
from weft.documents.segments import WrittenSentence
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
