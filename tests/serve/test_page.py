"""The page in a real browser: typed into, clicked, driven by keys, on a phone, in the dark."""

import json
from pathlib import Path

import pytest

from tests.serve.browser import Browser


def choose(browser: Browser, first: str, second: str = "") -> None:
    for place, name in (("first", first), ("second", second)):
        browser.run(
            f"(() => {{ const box = document.getElementById('{place}'); box.value = '{name}';"
            "box.dispatchEvent(new Event('change')); })()"
        )
    browser.run("document.getElementById('text').value = ''; document.getElementById('text').focus()")


def enter(browser: Browser, text: str) -> None:
    browser.run("document.getElementById('panels').replaceChildren()")
    browser.type(text)
    browser.press("Enter", 13, "\r")
    browser.wait("/ complete after|: \\d+ ms/.test(document.getElementById('status').textContent)")


def words(browser: Browser, panel: str = ".panel") -> list[str]:
    return browser.run(
        f"[...document.querySelectorAll('{panel} .target .word')].map((one) => one.textContent)"
    )


@pytest.fixture
def page(browser: Browser, address: str) -> Browser:
    browser.screen(1000, 800)
    browser.events.clear()  # of pages that other tests opened
    browser.open(f"{address}/")
    browser.wait("document.querySelectorAll('#first option').length === 5")
    return browser


def test_a_sentence_is_translated_looked_at_and_forced(page: Browser, address: str) -> None:
    choose(page, "toy")
    enter(page, "alpha beta gamma")
    assert words(page) == ["uno", "due", "tre"]
    page.point(".target .word:nth-child(2)")
    page.wait("document.querySelector('.source .word[title]:not([title=\"\"])')")
    weights = page.run("[...document.querySelectorAll('.source .word')].map((one) => parseFloat(one.title))")
    assert len(weights) == 3
    assert sum(weights) <= 100.5  # the rest looked at the end
    page.point(".target .word:nth-child(2)", click=True)
    page.wait("document.querySelector('.force .row button')")  # whole words, in place of the chosen one
    assert "due" not in page.run("document.querySelector('.force').textContent").partition(":")[2].split()
    page.type("nove")
    page.press("Enter", 13, "\r")
    page.wait("document.querySelectorAll('.target .word')[1]?.textContent === 'nove'")
    assert words(page)[:2] == ["uno", "nove"]
    assert page.run("document.querySelectorAll('.candidate.best').length") >= 3
    assert {one.split("/")[2] for one in page.addresses()} == {address.split("/")[2]}
    assert page.complaints() == []


def test_of_several_sentences_each_can_be_looked_at(page: Browser) -> None:
    choose(page, "toy")
    enter(page, "Alpha beta. Gamma alpha.")
    shown = page.run("[...document.querySelectorAll('.sentences button')].map((one) => one.textContent)")
    assert len(shown) == 2
    assert page.run("document.querySelector('.answer').textContent") == " ".join(shown)
    page.point(".sentences li:nth-child(2) button", click=True)
    page.wait("document.querySelector('.tree')")
    assert page.run("document.getElementById('text').value") == "Gamma alpha."
    tree = shown[1].removesuffix(".")  # which the vocabulary lacks and the answer copies
    assert "".join(words(page)) == tree.replace(" ", "")
    assert page.complaints() == []


def settled(browser: Browser) -> None:
    browser.wait("/ complete after|: \\d+ ms/.test(document.getElementById('status').textContent)")


def test_a_unit_is_dropped_by_keys_and_what_changed_is_told(page: Browser) -> None:
    choose(page, "toy")
    enter(page, "alpha beta gamma")
    page.run("document.querySelector('.edits').open = true")
    layers = page.run("[...document.querySelectorAll('.edits option')].map((one) => one.textContent)")
    assert layers[0] == "decoder, layer 1, forward (GRU), 17 units"
    assert layers[-1].startswith("encoder, layer 2, backward (GRU), ")
    for unit in range(3):
        page.run(
            "(() => { const box = document.querySelector('.edits input');"
            f"box.focus(); box.value = '{unit}'; }})()"
        )
        page.press("Enter", 13, "\r")
        page.wait(f"document.querySelectorAll('.change').length === {unit + 1}")
        settled(page)
    assert page.run("document.querySelector('.before').textContent").startswith("Before: uno due tre")
    told = page.run("document.querySelector('.changed').textContent")
    count = page.run("document.querySelectorAll('.target .word.new').length")
    assert told == "The answer is the same." if not count else told.startswith(f"{count} of ")
    while page.run("document.querySelectorAll('.change').length"):
        left = page.run("document.querySelectorAll('.change').length")
        page.point(".change", click=True)
        page.wait(f"document.querySelectorAll('.change').length === {left - 1}")
        settled(page)
    assert words(page) == ["uno", "due", "tre"]
    assert page.run("document.querySelector('.before')") is None
    assert page.complaints() == []


def test_a_word_is_made_to_look_elsewhere(page: Browser) -> None:
    choose(page, "toy")
    enter(page, "alpha beta gamma")
    page.point(".target .word:nth-child(2)", click=True)
    page.wait("document.querySelectorAll('.looks button').length === 3")
    page.point(".looks button:nth-child(3)", click=True)  # not beta but gamma
    page.wait("document.querySelector('.change')")
    settled(page)
    assert page.run("document.querySelector('.change').textContent") == "“due” attends to “gamma” ×"
    assert words(page)[0] == "uno"
    page.run("document.querySelector('.target .word:nth-child(2)').focus()")
    looked = page.run("[...document.querySelectorAll('.source .word')].map((one) => parseFloat(one.title))")
    assert looked == [0, 0, 100]
    page.press("ArrowLeft", 37)
    assert page.run("document.activeElement === document.querySelector('.target .word')")
    page.point(".change", click=True)
    page.wait("!document.querySelector('.change')")
    settled(page)
    assert words(page) == ["uno", "due", "tre"]


def test_a_unit_of_a_tagger_is_dropped_too(page: Browser) -> None:
    choose(page, "tags")
    enter(page, "this was great")
    page.run("document.querySelector('.edits').open = true")
    page.point(".edits .drop", click=True)
    page.wait("document.querySelector('.change')")
    settled(page)
    assert page.run("document.querySelector('.before').textContent").count("/") == 3


def test_two_runs_stand_side_by_side(page: Browser) -> None:
    choose(page, "label", "tags")
    enter(page, "this was great")
    assert page.run("document.querySelectorAll('.panel').length") == 2
    assert page.run("document.querySelector('.panel .answer').textContent") == "good"
    assert page.run("document.querySelectorAll('.panel .target .word small').length") == 3


def test_the_range_of_an_axis_holds_all_values_and_blows_nothing_up(page: Browser) -> None:
    assert page.run("ticks([0.3, 4])") == [0, 1, 2, 3, 4]
    assert page.run("ticks([98, 61])") == [60, 70, 80, 90, 100]
    low, *_, high = page.run("ticks([2.001, 2.002])")
    assert low < 2.001 and high > 2.002 and high - low >= 0.1  # a twentieth of 2.002
    assert page.run("ticks([0, 0])")[0] < 0 < page.run("ticks([0, 0])")[-1]
    assert page.run("ticks([-3, 1])") == [-3, -2, -1, 0, 1]


def test_an_example_is_a_click_and_its_answer_can_be_copied(page: Browser) -> None:
    choose(page, "toy")
    page.wait("document.querySelectorAll('.example').length === 3")
    text = page.run("document.querySelector('.example').title")
    page.point(".example", click=True)
    settled(page)
    assert page.run("document.getElementById('text').value") == text
    assert len(words(page)) >= 1
    page.run("navigator.clipboard.writeText = (text) => { window.taken = text; return Promise.resolve(); }")
    page.point(".copy", click=True)
    page.wait("document.querySelector('.copy').textContent === 'Copied'")
    assert page.run("window.taken").split() == words(page)
    assert page.complaints() == []


def test_a_link_carries_a_text(page: Browser, address: str) -> None:
    page.open(f"{address}/health/live")
    page.open(f"{address}/#text=alpha%20beta")
    page.wait("document.querySelectorAll('.target .word').length")
    assert page.run("at('text').value") == "alpha beta"
    assert "or drop it anywhere" in page.run("at('drop').textContent")


def test_languages_have_names(page: Browser) -> None:
    said = page.run("['es', 'de', 'xx', 'no code'].map(language)")
    assert said == ["Spanish (es)", "German (de)", "xx", "no code"]


def test_a_text_file_is_opened_and_answered(page: Browser, tmp_path: Path) -> None:
    choose(page, "toy")
    assert page.run("document.getElementById('open').textContent") == "Open a text or a document"
    assert page.run("document.getElementById('go').textContent") == "Translate"
    (tmp_path / "mine.txt").write_text("alpha beta\n")
    page.upload("#file", tmp_path / "mine.txt")
    settled(page)
    assert words(page) == ["uno", "due"]


def test_a_file_that_is_no_text_is_refused(page: Browser, tmp_path: Path) -> None:
    choose(page, "toy")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    page.upload("#file", tmp_path / "picture.png")
    page.wait("document.querySelector('.panel .error')")
    said = page.run("document.querySelector('.panel .error').textContent")
    assert said.startswith("picture.png: expected a text") and page.run("at('text').value") == ""
    (tmp_path / "wide.txt").write_text("the cat", "utf-16")
    page.upload("#file", tmp_path / "wide.txt")
    page.wait("at('text').value === 'the cat'")


def test_a_text_is_gone_on_with_and_curves_are_drawn_on_their_own_page(page: Browser, address: str) -> None:
    choose(page, "prose")
    enter(page, "the cat")
    assert page.run("document.querySelectorAll('.prose').length") == 1
    choose(page, "young")
    assert "still training" in page.run("document.getElementById('prompt').textContent").lower()
    page.open(f"{address}/training.html#young")
    page.wait("document.querySelectorAll('#curves svg path').length >= 3")
    axis = "[...document.querySelector('#curves svg').querySelectorAll('text')].map((one) => one.textContent)"
    *levels, first, last, across = page.run(axis)
    assert len(levels) >= 3 and (levels, across) == (sorted(levels, key=float), "updates")
    assert float(first) < float(last)
    assert page.run("document.getElementById('which').value") == "young"
    assert page.complaints() == []


def test_terms_are_required_and_kept_for_the_language(page: Browser, address: str) -> None:
    choose(page, "toy")
    assert page.run("document.getElementById('source').textContent") == "xx"
    page.run(
        "document.getElementById('terms').value = 'beta = nove\\n';"
        "document.getElementById('terms').dispatchEvent(new Event('input'))"
    )
    assert page.run("document.getElementById('terms-count').textContent") == " (1)"
    pairs = page.run(r"""JSON.stringify(pairs_of('a, b = c, d\n"e";"f, g"\n\nh\nno =\ni\tj'))""")
    assert json.loads(pairs) == [["a, b", "c, d"], ["e", "f, g"], ["i", "j"]]
    page.run("document.getElementById('text').focus()")
    enter(page, "alpha beta gamma")
    shown = page.run("document.querySelector('.panel').textContent")
    placed = "With what is kept of the text: uno nove tre" in shown  # the words are as the model wrote
    assert (placed or "nove" in words(page)) and "Required terms: nove." in shown
    page.open(f"{address}/")
    page.wait("document.getElementById('terms').value === 'beta = nove\\n'")
    page.run("document.getElementById('terms').value = ''; terms_changed()")
    assert page.complaints() == []


def test_a_document_is_translated_to_a_download(page: Browser, tmp_path: Path) -> None:
    choose(page, "toy")
    page.wait("endings.length")
    (tmp_path / "mine.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nalpha beta\n")
    page.upload("#file", tmp_path / "mine.srt")
    page.wait("document.querySelector('.panel a')?.download === 'mine.yy.srt'")
    text = page.run("fetch(document.querySelector('.panel a').href).then((came) => came.text())")
    assert "00:00:01,000 --> 00:00:02,000\nuno due\n" in text


def test_languages_are_swapped_where_a_run_translates_back(page: Browser) -> None:
    choose(page, "toy")
    enter(page, "alpha beta gamma")
    assert page.run("document.getElementById('swap').disabled")
    page.run("runs.push({ ...run('toy'), name: 'back', directions: [['yy', 'xx']], targets: ['xx'] })")
    page.run("document.getElementById('first').append(new Option('back', 'back')); choose()")
    page.run("window.ask = () => {}")
    page.point("#swap", click=True)
    assert page.run("document.getElementById('source').textContent") == "yy"
    assert page.run("document.getElementById('text').value") == "uno due tre"
    assert page.run("document.getElementById('first').value") == "back"


def test_a_refusal_is_a_sentence_and_the_page_lives_on(page: Browser) -> None:
    choose(page, "toy")
    page.run("document.getElementById('text').value = '  '")
    page.press("Enter", 13, "\r")
    page.wait("document.querySelector('.panel .error')?.textContent.includes('empty')")
    choose(page, "toy")
    enter(page, "<b>alpha</b> \U0001f4a5 अ")
    assert page.run("document.querySelectorAll('.panel b').length") == 0  # text stays text


def test_it_fits_a_phone_in_the_dark_and_needs_no_mouse(page: Browser, tmp_path: Path) -> None:
    page.screen(360, 740, dark=True, phone=True)
    page.send("Emulation.setTouchEmulationEnabled", enabled=True)
    choose(page, "toy")
    below = "at('go').getBoundingClientRect().bottom"
    assert page.run(f"{below} < at('examples').getBoundingClientRect().top && {below} < innerHeight")
    enter(page, "alpha beta gamma delta alpha beta")
    assert "Tap a word to see its attention" in page.run("document.querySelector('.panel').textContent")
    page.send("Emulation.setTouchEmulationEnabled", enabled=False)
    assert page.run("document.documentElement.scrollWidth") <= 360
    red, green, blue = page.run("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
    assert max(red, green, blue) < 64
    page.run("document.getElementById('go').focus()")
    for _ in range(1 + page.run("document.querySelectorAll('#examples button').length") + 2):
        page.press("Tab", 9)  # Open, the examples, Terms
    assert page.run("document.activeElement.classList.contains('word')")
    assert page.picture().startswith(b"\x89PNG")
