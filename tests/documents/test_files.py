"""Files: layout survives, markup moves with its words, damaged and hostile files are refused."""

import io
import sys
import zipfile
from collections.abc import Mapping

import pytest

from tests.documents.capitals import shouted, translated
from weft.documents import office
from weft.documents.files import opened
from weft.documents.plain import _broken
from weft.errors import ConfigError, DataError, WeftError

for _name in ("lxml", "polib"):
    pytest.importorskip(_name, reason=f"{_name} is not installed: pip install -e .[documents]")


def zipped(files: Mapping[str, str | bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as found:
        for name, content in files.items():
            found.writestr(name, content)
    return out.getvalue()


def part(data: bytes, name: str) -> str:
    return zipfile.ZipFile(io.BytesIO(data)).read(name).decode()


def test_text_keeps_its_lines_and_byte_order_mark() -> None:
    data = b"\xef\xbb\xbfOne.\r\n\r\n  two\r\n"
    assert shouted(opened(data, "a.TXT", "en", "es")) == b"\xef\xbb\xbfONE.\r\n\r\n  TWO\r\n"


def test_a_page_keeps_the_encoding_that_it_names() -> None:
    page = '<meta charset="iso-8859-1"><p>é <b>x</b></p>'
    found = shouted(opened(page.encode("latin-1"), "a.htm", "en", "es"))
    assert found.decode("latin-1") == '<meta charset="iso-8859-1"><p>É <b>X</b></p>'


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_xml_keeps_its_declaration_and_its_line_ends(end: str) -> None:
    text = (
        '\ufeff<?xml version="1.0" encoding="utf-8" ?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n'
        '<tmx version="1.4"><header srclang="en"/><body><tu>\n<tuv xml:lang="en"><seg>a</seg></tuv>NEW</tu>'
        "</body></tmx>\n\n"
    ).replace("\n", end)
    new = '<tuv xml:lang="es"><seg>A</seg></tuv>'
    assert translated(text.replace("NEW", ""), "a.tmx") == text.replace("NEW", f"{end}{new}")


MARKDOWN = {
    "# The *first* one #\n": "# THE *FIRST* ONE #\n",
    'One **b** [link](http://x/a_b "T")\nand `c`.  \n> not\n': None,
    "- [ ] task\n  more\n\n1. one\n": "- [ ] TASK MORE\n\n1. ONE\n",
    "> a\n> > b\n": "> A\n> > B\n",
    "| a | b \\| c |\n|---|:-:|\n| **x** | 7 |\n": "| A | B \\| C |\n|---|:-:|\n| **X** | 7 |\n",
    "---\ntitle: x\n---\nSet\n===\n\n```\ncode\n```\n\n    more code\n\n<div>2</div>\n": (
        "---\ntitle: x\n---\nSET\n===\n\n```\ncode\n```\n\n    more code\n\n<div>2</div>\n"
    ),
    "one  \ntwo\\\nthree ![alt](p.png) <http://x>\n": "ONE  \nTWO\\\nTHREE ![alt](p.png) <http://x>\n",
    "2 \\* 3 &amp; a_b\n": "2 \\* 3 & A_B\n",
    "+++\ntitle = 'x'\n+++\n\na\n": "+++\ntitle = 'x'\n+++\n\nA\n",
    "# A b {#a-b}\n\nTerm\n:   one\n:   two\n": "# A B {#a-b}\n\nTERM\n:   ONE\n:   TWO\n",
    ":::note[x]\na\n:::\n\n> [!NOTE]\n> b\n": ":::note[x]\nA\n:::\n\n> [!NOTE]\n> B\n",
    '!!! note "T"\n    a *b*\n\n    - c\n\nd\n': '!!! note "T"\n    A *B*\n\n    - C\n\nD\n',
    'a\n??? tip\n    b\n=== "T"\n    c\n\n        d\n': 'A\n??? tip\n    B\n=== "T"\n    C\n\n        d\n',
    "{{< note >}}\na {{< ref x >}}\n{{< /note >}}\n": "{{< note >}}\nA {{< ref x >}}\n{{< /note >}}\n",
    'import X from "x"\nexport const a\n\nimport it\n': 'import X from "x"\nexport const a\n\nIMPORT IT\n',
    "a\n\n$$\nx_1\n$$\n": "A\n\n$$\nx_1\n$$\n",
    "a\n:::tip\nb $x_1$ :smile:\n:::\n": "A\n:::tip\nB $x_1$ :smile:\n:::\n",
    "costs $5 and $6 at 10:30:20\n": "COSTS $5 AND $6 AT 10:30:20\n",
    "<details>\n<summary>a</summary>\n\nb\n\n</details>\n<!-- c -->\n": (
        "<details>\n<summary>A</summary>\n\nB\n\n</details>\n<!-- c -->\n"
    ),
    "text[^n]: a\n\n- b[^n]\n\n  [^n]: c *d*\n[^x]: e\n  f\n\ng\n": (
        "TEXT[^n]: A\n\n- B[^n]\n\n  [^n]: C *D*\n[^x]: E F\n\nG\n"
    ),
}


@pytest.mark.parametrize("text", MARKDOWN)
def test_markdown_keeps_everything_but_its_texts(text: str) -> None:
    found = translated(text, "a.md")
    assert MARKDOWN[text] is None or found == MARKDOWN[text]
    again = translated(found, "a.md")
    assert again == found


CUES = {
    "no empty line between": (
        "a.srt",
        "1\n00:00:01,000 --> 00:00:02,000\nOpen it.\n2\n00:00:02,500 --> 00:00:03,000\nSave 2\nof it.\n",
        "Open it Save of it",
    ),
    "no numbers": (
        "a.srt",
        "00:00:01,000 --> 00:00:02,000\nOpen it.\n00:00:02,500 --> 00:00:03,000\nSave it.\n",
        "Open it Save it",
    ),
    "styles, and an empty line inside": (
        "a.srt",
        "\ufeff1\r\n00:00:01,000 --> 00:00:02,000 X1:10\r\n{\\an8}<i>Open</i>\r\n{\\i1}it{\\i0} & go\r\n\r\n"
        "2\r\n00:00:03,000 --> 00:00:04,000\r\nOne\r\n\r\nmore\r\n\r\n\r\n3\r\n"
        "00:00:05,000 --> 00:00:06,000\r\n\r\n",
        "Open it go One more",
    ),
    "a line of spaces is a part of a text": (
        "a.vtt",
        "WEBVTT\nKind: captions\n\n00:00.000 --> 00:02.000 align:start\n \nopen the file\n\n"
        "00:02.000 --> 00:02.010\nsave\n \n\n00:02.010 --> 00:04.000\nit\n",
        "open the file save it",
    ),
    "blocks": (
        "a.vtt",
        "WEBVTT - film\n\nSTYLE\n::cue { color: red }\n\nREGION\nid:fred\n\nNOTE a\nb\n\n"
        "NOTES\n00:01.000 --> 00:02.000 line:0\n<v.loud Ann>NOTE it</v>\n",
        "it",
    ),
}
"""Subtitles, and the words of their texts."""


@pytest.mark.parametrize("case", CUES)
def test_subtitles_keep_all_but_the_words_of_their_texts(case: str) -> None:
    name, text, words = CUES[case]
    wanted, at = text, 0
    for word in words.split():
        at = wanted.index(word, at)
        wanted = f"{wanted[:at]}{word.upper()}{wanted[at + len(word) :]}"
    assert translated(text, name) == wanted


def test_a_translation_has_as_many_plural_forms_as_its_language() -> None:
    rules = {
        ("nplurals=1; plural=0;", "ja"): ["%d FILES"],
        ("", "zh_Hans"): ["%d FILES"],
        ("", "es"): ["ONE FILE", "%d FILES"],
        ("nplurals=2; plural=n != 1;", "es"): ["ONE FILE", "%d FILES"],
        ("nplurals=2; plural=(n > 1);", "fr"): ["%d FILES"] * 2,  # the first is for 0, too
        ("nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : 1);", "hr"): ["%d FILES"] * 3,
        ("nplurals=6; plural=n==0 ? 0 : n==1 ? 1 : 2;", "ar"): ["ONE FILE", *["%d FILES"] * 5],
    }
    for (rule, language), forms in rules.items():
        text = (
            f'msgid ""\nmsgstr "Plural-Forms: {rule}\\n"\n\n'
            'msgid "one file"\nmsgid_plural "%d files"\nmsgstr[0] ""\nmsgstr[1] ""\n'
        )
        found = shouted(opened(text.encode(), "a.po", "en", language)).decode()
        assert found.count("msgstr[") == len(forms), rule
        assert all(f'msgstr[{n}] "{form}"' in found for n, form in enumerate(forms)), rule
    half = 'msgid "a"\nmsgid_plural "%d b"\nmsgstr[0] "x"\nmsgstr[1] ""\n'
    found = translated(half, "a.po")
    assert 'msgstr[0] "x"' in found and 'msgstr[1] "%d B"' in found


def test_obsolete_and_fuzzy_entries_and_contexts_stay() -> None:
    text = (
        'msgid ""\nmsgstr "Language: es\\n"\n\n'
        '#, fuzzy\n#| msgid "old"\nmsgid "new"\nmsgstr "nuevo"\n\nmsgctxt "menu"\nmsgid "open"\n'
        'msgstr ""\n\nmsgctxt "door"\nmsgid "open"\nmsgstr ""\n\n#~ msgid "gone"\n#~ msgstr "ido"\n'
    )
    wanted = text.replace("msgctxt", "#, fuzzy\nmsgctxt").replace(
        '"open"\nmsgstr ""', '"open"\nmsgstr "OPEN"'
    )
    assert translated(text, "a.po") == wanted


def test_what_xliff_protects_stays_and_a_marked_copy_of_the_source_is_translated() -> None:
    unit = '<trans-unit id="1"><source>{}</source>{}</trans-unit>'
    whole = (
        '<xliff version="1.2"><file source-language="en" target-language="es"><body>{}</body></file></xliff>'
    )
    protected = unit.format('Press <mrk mtype="protected">CtrlKey</mrk> now', "")
    assert ">CtrlKey</mrk> NOW</target>" in translated(whole.format(protected), "a.xlf")
    for state, there in (("needs-translation", "X"), ("new", "X"), ("final", "x"), ("translated", "x")):
        found = translated(whole.format(unit.format("x", f'<target state="{state}">x</target>')), "a.xlf")
        assert f">{there}</target>" in found, state
    lost: list[str] = []
    message = unit.format("{n, plural, one {# file} other {# files}}", "")
    shouted(opened(whole.format(message).encode(), "a.xlf", "en", "es", lost))
    assert lost == ["a.xlf:1: the ICU message is not translated; translate its branches"]


def test_choices_of_a_page_are_texts() -> None:
    page = '<p>Choose <select><option value="k">One<option>a &amp; b</select> now <kbd>Ctrl</kbd></p>'
    wanted = page.replace("Choose", "CHOOSE ").replace("One", "ONE").replace("a &amp; b", "A &amp; B")
    assert translated(page, "a.html") == wanted.replace(" now ", " NOW  ").replace("NOW  ", "NOW ")


def test_the_text_of_fields_of_word_is_named() -> None:
    name = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    run = "<w:r><w:{}</w:r>"
    field = "".join(
        run.format(one)
        for one in (
            't xml:space="preserve">Go </w:t>', 'fldChar w:fldCharType="begin"/>',
            "instrText> HYPERLINK </w:instrText>", 'fldChar w:fldCharType="separate"/>',
            "t>our site</w:t>", 'fldChar w:fldCharType="end"/>',
        )
    )  # fmt: skip
    body = f'<w:document xmlns:w="{name}"><w:body><w:p>{field}</w:p></w:body></w:document>'
    lost: list[str] = []
    found = shouted(opened(zipped({"word/document.xml": body}), "a.docx", "en", "es", lost))
    assert ">GO </w:t>" in part(found, "word/document.xml") and ">our site</w:t>" in part(
        found, "word/document.xml"
    )
    assert lost[0].startswith("a.docx: the text of fields stays as it is: 'our site'; in Word, F9 updates")


def test_an_icu_message_keeps_its_elements() -> None:
    message = '{N, plural, =0 {now} other {<x id="I"/> minutes by <x id="S"/>Ann<x id="E"/>}}'
    for source, target in ((message, message), (f"Saved {message} today", f"SAVED  {message} TODAY")):
        text = f"<xliff><file><trans-unit><source>{source}</source></trans-unit></file></xliff>"
        assert f">{target}</target>" in translated(text, "a.xlf")


def test_subtitles_keep_times_lines_and_speakers() -> None:
    text = (
        "1\r\n00:00:01,000 --> 00:00:02,000\r\nOpen the <i>file</i> &\r\nsave it.\r\n\r\n"
        "2\r\n00:00:03,000 --> 00:00:04,000\r\n{\\an8}- Hi.\r\n- Bye < you.\r\n\r\n"
        "3\r\n0:0:5.0 --> 0:0:6.0\r\n\r\n"
    )
    document = opened(text.encode(), "film.srt", "en", "es")
    assert [one.text for one in document.segments] == ["Open the file & save it.", "Hi.", "Bye < you."]
    assert shouted(document).decode() == (
        text.replace("Open the <i>file</i> &\r\nsave it.", "OPEN THE <i>FILE</i>\r\n& SAVE IT.")
        .replace("Hi", "HI")
        .replace("Bye < you", "BYE < YOU")
    )


@pytest.mark.parametrize(
    ("source", "target", "lines"),
    [
        (
            ["Replace the pump B77-123.", "The valve needs 25 bolts."],
            "Sustituya la bomba B77-123. La válvula necesita 25 pernos.",
            ["Sustituya la bomba B77-123.", "La válvula necesita 25 pernos."],
        ),
        (["Go now.", "I will come"], "Ve. Yo", ["Ve.", "Yo"]),
        (["<i>Stop!</i>", "Who is", "it?"], "<i>¡Alto!</i> ¿Quién va?", ["<i>¡Alto!</i>", "¿Quién", "va?"]),
        (["He said: go. It", "is 12.5 kg."], "Dijo: ve. Son 12.5 kg.", ["Dijo: ve.", "Son 12.5 kg."]),
        (["Stop.", "Go to the pump."], "Alto y vaya a la bomba.", ["Alto y vaya", "a la bomba."]),
        (["Stop.", "Go."], "停。走吧。", ["停。", "走吧。"]),
        (["He said “Stop!”", "Go."], "他说「停！」走吧！！", ["他说「停！」", "走吧！！"]),
        (["Wait...", "Go (now).", "I go."], "Espera... Ve (ya). Voy.", ["Espera...", "Ve (ya).", "Voy."]),
        (["- One. Two.", "Three."], "- Uno, el primero. Dos. Tres.", ["- Uno, el primero. Dos.", "Tres."]),
    ],
)  # fmt: skip
def test_a_line_that_ends_with_a_sentence_does_so_again(
    source: list[str], target: str, lines: list[str]
) -> None:
    assert _broken(target, source) == lines


def test_webvtt_keeps_all_but_its_texts() -> None:
    text = (
        "WEBVTT - a film\nKind: captions\n\nSTYLE\n::cue { color: red }\n\nNOTE not this\nnor this\n\n"
        "intro\n00:00.500 --> 00:02.000 align:start\n<v Ann>Open the <i>file</i> &amp; save it.\n\n"
        "01:00:02.000 --> 01:00:04.000\n- Two <c.red>words</c> here.\n- Bye &lt; you.\n"
    )
    document = opened(text.encode(), "film.vtt", "en", "es")
    said = ["Open the file & save it.", "Two words here.", "Bye < you."]
    assert [one.text for one in document.segments] == said
    changed = ["Open the", "file", " save it", "Two", "words", "here", "Bye", "you"]
    for one in changed:
        text = text.replace(one, one.upper())
    assert shouted(document).decode() == text
    timed = opened(b"WEBVTT\n\n00:01.0 --> 00:02.0\nOne <00:01.5>two.", "a.vtt", "en", "es")
    assert [one.text for one in timed.segments] == ["One two."]


def test_a_catalogue_gets_what_it_lacks_and_marks_it() -> None:
    head = 'msgid ""\nmsgstr ""\n"Language: es\\n"\n"Content-Type: text/plain; charset=UTF-8\\n"\n\n'
    text = f'{head}#: a.c:1\nmsgid "Open"\nmsgstr ""\n\nmsgid "Done"\nmsgstr "Hecho"\n\n'
    plural = 'msgid "a file"\nmsgid_plural "files"\nmsgstr[0] ""\nmsgstr[1] ""\n'
    assert translated(text + plural, "a.po") == (
        f'{head}#: a.c:1\n#, fuzzy\nmsgid "Open"\nmsgstr "OPEN"\n\nmsgid "Done"\nmsgstr "Hecho"\n\n'
        '#, fuzzy\nmsgid "a file"\nmsgid_plural "files"\nmsgstr[0] "A FILE"\nmsgstr[1] "FILES"\n'
    )


XLIFF = """<?xml version='1.0' encoding='UTF-8'?>
<xliff xmlns="urn:oasis:names:tc:xliff:document:1.2" version="1.2">
  <file source-language="en-US" target-language="es" datatype="x" original="y"><body>
    <trans-unit id="1">
      <source>Click <g id="1">Insert</g><x id="2"/> now.</source>{target}
    </trans-unit>
    <trans-unit id="2"><source>Done</source><target>Hecho</target></trans-unit>
    <trans-unit id="3" translate="no"><source>Weft</source></trans-unit>
  </body></file>
</xliff>
"""


def test_xliff_gets_targets_with_the_inline_elements_of_the_source() -> None:
    target = (
        '\n      <target state="needs-review-translation">CLICK <g id="1">INSERT</g><x id="2"/> NOW.</target>'
    )
    assert translated(XLIFF.format(target=""), "a.xlf") == XLIFF.format(target=target)


def test_xliff_2_gets_targets() -> None:
    text = (
        '<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en" trgLang="es">'
        '<file id="f"><unit id="u"><segment{state}><source>One <pc id="1">two</pc></source>{target}'
        "</segment></unit></file></xliff>"
    )
    found = translated(text.format(state="", target=""), "a.xliff").split("\n", 1)[1]
    there = text.format(state=' state="translated"', target='<target>ONE <pc id="1">TWO</pc></target>')
    assert found == there


def test_a_memory_gets_the_variants_it_lacks() -> None:
    text = """<?xml version='1.0' encoding='UTF-8'?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header srclang="en"/><body>
  <tu>
    <tuv xml:lang="EN-us"><seg>Open <hi>it</hi>.</seg></tuv>{new}
  </tu>
  <tu><tuv xml:lang="en"><seg>A</seg></tuv><tuv xml:lang="es"><seg>B</seg></tuv></tu>
</body></tmx>"""
    new = '\n    <tuv xml:lang="es"><seg>OPEN <hi>IT</hi>.</seg></tuv>'
    assert translated(text.format(new=""), "a.tmx") == text.format(new=new)


W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def docx(body: str) -> bytes:
    return zipped({"[Content_Types].xml": "<a/>", "word/document.xml": f'<w:d xmlns:w="{W}">{body}</w:d>'})


def test_word_keeps_formats_breaks_links_and_fields() -> None:
    bold = "<w:r><w:rPr><w:b/></w:rPr>{}</w:r>"
    field = '<w:r><w:fldChar w:fldCharType="{}"/></w:r>'
    body = (
        "<w:p><w:pPr><w:jc/></w:pPr><w:r><w:t>Click the </w:t></w:r>"
        + bold.format("<w:t>Ins</w:t>")
        + bold.format("<w:t>ert</w:t>")
        + "<w:r><w:t> tab</w:t><w:br/><w:t>Now </w:t></w:r>"
        + "<w:hyperlink w:id='1'><w:r><w:t>go</w:t></w:r></w:hyperlink>"
        + field.format("begin")
        + "<w:r><w:t>left alone</w:t></w:r>"
        + field.format("end")
        + "</w:p>"
    )
    document = opened(docx(body), "a.docx", "en", "es")
    assert [one.text for one in document.segments] == ["Click the Insert tab", "Now go"]
    found = part(shouted(document), "word/document.xml").replace(' xml:space="preserve"', "")
    assert (
        "<w:p><w:pPr><w:jc/></w:pPr><w:r><w:t>CLICK THE </w:t></w:r>"
        "<w:r><w:rPr><w:b/></w:rPr><w:t>INSERT</w:t></w:r><w:r><w:t> TAB</w:t></w:r><w:r><w:br/></w:r>"
        '<w:r><w:t>NOW </w:t></w:r><w:hyperlink w:id="1"><w:r><w:t>GO</w:t></w:r></w:hyperlink>'
    ) in found
    assert "left alone" in found and found.count("fldChar ") == 2


def test_a_text_box_of_word_is_translated_inside_its_paragraph() -> None:
    box = "<w:r><w:pict><w:txbxContent><w:p><w:r><w:t>inner</w:t></w:r></w:p></w:txbxContent></w:pict></w:r>"
    document = opened(docx(f"<w:p><w:r><w:t>outer</w:t></w:r>{box}</w:p>"), "a.docx", "en", "es")
    assert sorted(one.text for one in document.segments) == ["inner", "outer"]
    found = part(shouted(document), "word/document.xml")
    assert "OUTER" in found and "INNER" in found and "inner" not in found


def test_headers_footers_and_notes_of_word_are_translated() -> None:
    parts = ("header1", "footer2", "footnotes", "endnotes")
    made = {
        f"word/{name}.xml": f'<w:x xmlns:w="{W}"><w:p><w:r><w:t>in {name}</w:t></w:r></w:p></w:x>'
        for name in parts
    }
    table = "<w:tbl><w:tr><w:tc><w:p><w:r><w:t>cell</w:t></w:r></w:p></w:tc></w:tr></w:tbl>"
    body = f'<w:d xmlns:w="{W}">{table}</w:d>'
    document = opened(
        zipped({"[Content_Types].xml": "<a/>", "word/document.xml": body, **made}), "a.docx", "en", "es"
    )
    data = shouted(document)
    assert "CELL" in part(data, "word/document.xml")
    for name in parts:
        assert f"IN {name.upper()}<" in part(data, f"word/{name}.xml")


def test_opendocument_keeps_spans_notes_and_line_breaks() -> None:
    space = 'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"'
    body = (
        '<text:p>One <text:span text:style-name="B">two</text:span>'
        "<text:note><text:p>note</text:p></text:note>."
        "<text:line-break/>Three</text:p><text:h>Four</text:h>"
    )
    files = {"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": f"<o {space}>{body}</o>"}
    data = shouted(opened(zipped(files), "a.odt", "en", "es"))
    wanted = body
    for word in ("One", "two", "note<", "Three", "Four"):
        wanted = wanted.replace(word, word.upper())
    assert wanted in part(data, "content.xml")
    first = zipfile.ZipFile(io.BytesIO(data)).infolist()[0]
    assert (first.filename, first.compress_type) == ("mimetype", zipfile.ZIP_STORED)


BOMB = (
    "<!DOCTYPE tmx [<!ENTITY a 'x'>"
    + "".join(f"<!ENTITY a{n} '&a;&a;'>" for n in range(9))
    + "]><tmx>&a8;</tmx>"
)


@pytest.mark.parametrize(
    ("name", "data", "sentence"),
    [
        ("a.txt", b"one\ntw\xffo\n", r"a\.txt:2: expected text in utf-8, got the byte 0xff"),
        ("a.txt", b"one\n\0\n", r"a\.txt:2: .*NUL"),
        ("a.md", b"one\n\n\xff", r"a\.md:3: "),
        ("a.srt", b"1\n00:01 --> 00:02\nx\n\ntwo\n00:03 --> 00:04\n", r"a\.srt:5: expected the num"),
        ("a.srt", b"1\nsoon\nx\n", r"a\.srt:2: expected times"),
        ("a.po", b'msgid "a"\nmsgstr "b"\n\nfoo bar\n', r"a\.po:4: expected gettext"),
        ("a.po", b'msgid "a"\nmsgstr "b"\n\nmsgid "c\nmsgstr ""\n', r"a\.po:4: expected msgid"),
        ("a.po", b'msgid "a"\nmsgstr ""\n"b" c"\n', r"a\.po:3: expected msgid"),
        ("a.po", b"/etc/passwd", r"a\.po:1: expected entries"),
        ("a.tmx", b"<tmx>\n<body>\n</tmx>", r"a\.tmx:3: expected well-formed XML"),
        ("a.tmx", b"<tmx><body>\n<tu><tuv><seg>x</seg></tuv></tu></body></tmx>", r"a\.tmx:2: expected a tuv"),
        ("a.tmx", b"<html/>", r"a\.tmx:1: expected an element tmx, got html"),
        ("a.tmx", b"<tmx><tu><tuv lang='de'><seg>x</seg></tuv></tu></tmx>", "expected texts in 'en'"),
        ("a.xlf", b"<xliff>\n<trans-unit/></xliff>", r"a\.xlf:2: expected a source"),
        ("a.xlf", b"<xliff>\n<file source-language='de'/></xliff>", r"a\.xlf:2: .*'en' as .* got 'de'"),
        ("a.tmx", BOMB.encode(), "declares some|well-formed"),
        ("a.tmx", b"<!DOCTYPE t [<!ENTITY a SYSTEM 'file:///etc/passwd'>]><tmx>&a;</tmx>", "declares some"),
        ("a.tmx", b"<!DOCTYPE t [<!ENTITY % p SYSTEM 'http://127.0.0.1:9/'> %p;]><tmx/>", "declares some"),
        ("a.docx", b"PK\x03\x04", "not a readable archive"),
        ("a.docx", zipped({"x": "y"}), "expected a Word document"),
        ("a.docx", zipped({"word/document.xml": "<a>\n<b>"}), r"a\.docx:2: word/document.xml: exp"),
        ("a.odt", zipped({"x": "y"}), "expected an OpenDocument text"),
        ("a.pdf", b"%PDF", r"expected a file that ends in \.txt, .* got \.pdf; .* pdftotext a\.pdf"),
        ("a.vtt", b"1\n00:00:01.000 --> 00:00:02.000\nx\n", r"a\.vtt:1: expected the line WEBVTT"),
        ("a.vtt", b"WEBVTT\n\nintro\nx\n", r"a\.vtt:4: expected times"),
        ("a.po", b'msgid "caf\xe9"\nmsgstr ""\n', r"a\.po:1: .* 0xe9; .* msgconv -t UTF-8 a\.po"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_with_its_place(name: str, data: bytes, sentence: str) -> None:
    with pytest.raises(WeftError, match=sentence):
        opened(data, name, "en", "es")


def test_a_zip_bomb_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(office, "LARGEST", 100_000)
    bomb = zipped({"word/document.xml": b"0" * 60_000, "x": b"0" * 60_000})
    with pytest.raises(DataError, match=r"more than .* unpacked"):
        opened(bomb, "a.docx", "en", "es")
    monkeypatch.setattr(office, "MOST", 3)
    with pytest.raises(DataError, match="at most 3 files"):
        opened(zipped(dict.fromkeys("abcd", b"")), "a.odt", "en", "es")


def test_a_missing_library_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polib", None)
    with pytest.raises(ConfigError, match=r"polib is not installed; pip install 'weft-seq\[documents\]'"):
        opened(b'msgid "a"\nmsgstr ""\n', "a.po", "en", "es")
