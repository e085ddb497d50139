"""The page in a real browser: typed into, clicked, driven by keys, on a phone, in the dark."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.serve.browser import Browser, found


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if found() is None:
        pytest.skip("no Chromium on this machine: apt install chromium")
    one = Browser(tmp_path_factory.mktemp("browser"))
    yield one
    one.close()


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
    browser.wait("/ all after|: \\d+ ms/.test(document.getElementById('status').textContent)")


def words(browser: Browser, panel: str = ".panel") -> list[str]:
    return browser.run(
        f"[...document.querySelectorAll('{panel} .target .word')].map((one) => one.textContent)"
    )


@pytest.fixture
def page(browser: Browser, address: str) -> Browser:
    browser.screen(1000, 800)
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
    page.wait("document.querySelector('.force button')")
    page.type("nove")
    page.press("Enter", 13, "\r")
    page.wait("document.querySelectorAll('.target .word')[1]?.textContent === 'nove'")
    assert words(page)[:2] == ["uno", "nove"]
    assert page.run("document.querySelectorAll('.candidate.best').length") >= 3
    assert {one.split("/")[2] for one in page.addresses()} == {address.split("/")[2]}
    assert page.complaints() == []


def test_two_runs_stand_side_by_side(page: Browser) -> None:
    choose(page, "label", "tags")
    enter(page, "this was great")
    assert page.run("document.querySelectorAll('.panel').length") == 2
    assert page.run("document.querySelector('.panel .answer').textContent") == "good"
    assert page.run("document.querySelectorAll('.panel .target .word small').length") == 3


def test_a_text_is_gone_on_with_and_curves_are_drawn(page: Browser) -> None:
    choose(page, "prose")
    enter(page, "the cat")
    assert page.run("document.querySelectorAll('.prose').length") == 1
    choose(page, "young")
    page.wait("document.querySelectorAll('#curves svg path').length >= 3")
    assert "in training" in page.run("document.getElementById('prompt').textContent").lower()


def test_a_refusal_is_a_sentence_and_the_page_lives_on(page: Browser) -> None:
    choose(page, "toy")
    page.run("document.getElementById('text').value = '  '")
    page.press("Enter", 13, "\r")
    page.wait("document.querySelector('.panel .error')?.textContent.includes('it is empty')")
    choose(page, "toy")
    enter(page, "<b>alpha</b> \U0001f4a5 अ")
    assert page.run("document.querySelectorAll('.panel b').length") == 0  # text stays text


def test_it_fits_a_phone_in_the_dark_and_needs_no_mouse(page: Browser, tmp_path: Path) -> None:
    page.screen(360, 740, dark=True, phone=True)
    choose(page, "toy")
    enter(page, "alpha beta gamma delta alpha beta")
    assert page.run("document.documentElement.scrollWidth") <= 360
    red, green, blue = page.run("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
    assert max(red, green, blue) < 64
    page.run("document.getElementById('go').focus()")
    page.press("Tab", 9)
    assert page.run(
        "document.activeElement.classList.contains('word')"
    )  # Stop is disabled, so it is left out
    assert page.picture().startswith(b"\x89PNG")
