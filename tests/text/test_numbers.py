"""A translation has the numbers of its source, in a form of its language, or what is wrong is named."""

import re

import numpy as np
import pytest

from weft.text.kept import CODES, codes, expressions, numbers, replaced, stand_ins, wrong_numbers
from weft.text.segments import Links, WrittenSentence, proportional
from weft.words import spans

ENGLISH_SPANISH = ("en", "es")

FOUND = {
    "keys": ("F1 F12 Ctrl+Shift+F5 Ctrl + F5", ["F1", "F12", "F5", "F5"]),
    "keys of letters": ("Alt+F4 or Cmd+Q, Ctrl + Shift + A and A + B", ["F4", "Q", "A"]),
    "fractions": ("½ of 1¾", ["½", "1¾"]),
    "temperatures": ("-12.5 °C to 90°F, 45° C", ["-12.5 °C", "90 °F", "45 °C"]),
    "codes": ("A4 UTF-8 XK-2000-3 v2.0.1 MP3", ["A4", "UTF-8", "XK-2000-3", "v2.0.1", "MP3"]),
    "cells": ("$A$1:B5", ["$A$1", "B5"]),
    "amounts": ("19.99 EUR, €19.99, $5", ["19.99 EUR", "19.99 EUR", "5 USD"]),
    "groups": ("1,250 and 1,250,000.50", ["1250", "1250000.50"]),
    "dates": ("2024-05-12 12/5/2024", ["2024-05-12", "12/5/2024"]),
    "times": ("3:30 23:59:01", ["3:30", "23:59:01"]),
    "versions": ("7.2 and 7.2.1", ["7.2", "7.2.1"]),
    "signs": ("-5 (−3) 3-5", ["-5", "-3", "3", "5"]),
    "in words": ("2nd 10MB Sheet1 array_1d", ["2", "10", "1", "1"]),
    "other digits": ("٣٫٥ १२", ["3.5", "12"]),
    "placeholders": ("%1$s of {0} at https://a.org/7", []),
}  # fmt: skip


@pytest.mark.parametrize(("text", "values"), FOUND.values(), ids=FOUND)
def test_numbers_are_found(text: str, values: list[str]) -> None:
    assert [one.value for one in numbers(text, "en")] == values


@pytest.mark.parametrize(
    ("languages", "source", "target", "same"),
    [
        (ENGLISH_SPANISH, "1,250 files", "1.250 archivos", True),
        (ENGLISH_SPANISH, "1,250 files", "1 250 archivos", True),
        (ENGLISH_SPANISH, "1,250 files", "1,250 archivos", True),  # a copy
        (ENGLISH_SPANISH, "1,250 files", "1,25 archivos", False),
        (ENGLISH_SPANISH, "19.99 EUR", "19,99 €", True),
        (ENGLISH_SPANISH, "19.99", "1.999", False),
        (("en", "zh"), "19.99", "19,99", False),
        (("de", "en"), "1.250,5", "1,250.5", True),
        (("", "es"), "1.250,5", "1,250.5", True),  # no language, so that either may be meant
        (ENGLISH_SPANISH, "F1", "F11", False),
        (ENGLISH_SPANISH, "Press F5", "Pulse F5Ctrl + F5", False),
        (ENGLISH_SPANISH, "rows", "2 filas", False),
        (ENGLISH_SPANISH, "2nd row of 3", "3 filas, la 2.ª", True),
        (ENGLISH_SPANISH, "Shift+F5 or F5", "Mayús+F5 o F5", True),
        (ENGLISH_SPANISH, "Ctrl+Shift+Q", "Ctrl + Mayús + Q", True),
        (("en", "de"), "Press Cmd+Q", "Drücken Sie Cmd+.", False),
        (("en", "de"), "-12.5 °C", "-12,5°C", True),
        (("en", "de"), "-12.5 °C", "-12,5 ×C", False),
    ],
)  # fmt: skip
def test_forms_of_a_number_follow_its_language(
    languages: tuple[str, str], source: str, target: str, same: bool
) -> None:
    assert (wrong_numbers(source, target, languages) == "") == same


def test_wrong_numbers_become_those_that_their_words_look_at() -> None:
    source, target = "Page 14 of 250", "250 páginas, la 144"
    read, there = spans(source), spans(target)
    weights = np.zeros((len(there), len(read)))
    weights[[0, 1, 2, 3, 4], [3, 0, 0, 2, 1]] = 1
    found = WrittenSentence(target, Links(weights, read, there))
    assert replaced(source, found, ENGLISH_SPANISH).text == "250 páginas, la 14"
    weights[:] = 1 / len(read)  # looks everywhere: the only number that is wrong
    assert replaced(source, found, ENGLISH_SPANISH).text == "250 páginas, la 14"
    source, target = "Press F5 to go.", "Presione5 para ir."
    assert replaced(source, WrittenSentence(target, proportional(source, target)), ENGLISH_SPANISH).text == (
        "Presione F5 para ir."
    )


def test_what_makes_it_worse_is_left_out() -> None:
    found = WrittenSentence("dos filas", proportional("rows: 2", "dos filas"))
    assert replaced("no rows", found, ENGLISH_SPANISH).text == "dos filas"
    assert wrong_numbers("2 rows", "dos filas", ENGLISH_SPANISH) == (
        "expected the number 2, got none; correct the translation"
    )
    assert "got also 7" in wrong_numbers("rows", "7 filas", ENGLISH_SPANISH)


def test_stand_ins_are_put_back_where_each_is_there_once() -> None:
    found = stand_ins("Page 14 of 250, 3 rows for 19.99 EUR, Ctrl+F12", "en")
    assert found is not None and found.text == "Page 2 of 4, 3 rows for 5, F6"
    assert found.put_back("F6: 3 filas por 5, página 2 de 4", "es") == (
        "Ctrl+F12: 3 filas por 19.99 EUR, página 14 de 250"
    )
    assert found.put_back("F6: 3 filas por 5, página 2 de 44", "es") is None
    assert stand_ins("no number", "en") is None
    assert stand_ins(" ".join(map(str, range(10, 30))), "en") is None  # more than there are


def test_a_number_that_is_put_in_has_the_form_of_the_source() -> None:
    """Not that of the target language, and such an answer is not named, as the guide says."""
    source, target = "It needs 1,250 bolts.", "Necesita 1,250 pernos."
    found = stand_ins(source, "en")
    assert found is not None and found.put_back("Necesita 2 pernos.", "es") == target
    assert not wrong_numbers(source, target, ENGLISH_SPANISH)


def test_a_number_that_no_word_stands_for_is_put_before_the_next_word_and_named() -> None:
    source, target = "Styles (F11) open", "Estilos abrir"
    read, there = spans(source), spans(target)
    links = Links(np.eye(len(read))[[0, 4]], read, there)
    found = replaced(source, WrittenSentence(target, links), ENGLISH_SPANISH)
    assert found.text == "Estilos F11 abrir" and [one.text for one in found.guessed] == ["F11"]


EXPRESSIONS = {
    "6 + 1 = 7 (0110 ^ 1010)": ["6 + 1 = 7", "0110 ^ 1010"],
    "5% of #12, rows 3-5 and 8:00-17:00": ["5%", "#12", "3-5", "8:00-17:00"],
    "Key A-4/B, SN:4711-AB/7, ISO 9001:2015": ["A-4/B", "SN:4711-AB/7", "9001:2015"],
    "Step 1: 5 rows. In 1.5.The 3-inch end": ["1", "5", "1.5", "3"],
    "10^-3 and $5–$10, A1+B2": ["10^-3", "$5–$10", "A1+B2"],
}


@pytest.mark.parametrize(("text", "whole"), EXPRESSIONS.items())
def test_numbers_with_only_signs_between_them_are_one(text: str, whole: list[str]) -> None:
    assert [one.text for one in expressions(text)] == whole


def test_a_formula_is_one_stand_in_of_digits_that_the_model_reads() -> None:
    found = stand_ins("=BITXOR(6;10) is F12 (0110 ^ 1010 = 1100)", "en", "2345".__contains__)
    assert found is not None and found.text == "=BITXOR(2) is 3 (4)"
    assert found.put_back("(4): 3 es 2", "es") == "(0110 ^ 1010 = 1100): F12 es 6;10"


def test_codes_need_no_library_in_an_exported_program() -> None:
    text = "F1, Ctrl+Shift+F5, A4, UTF-8, 19.99 EUR, Cmd+Q, 4 °C and Sheet1, 14, Rows"
    plain = [found.span() for found in re.finditer(CODES, text)]
    assert plain == codes(text) and "".join(text[slice(*one)] for one in plain) == (
        "F1Ctrl+Shift+F5A4UTF-819.99 EURCmd+Q4 °C"
    )
