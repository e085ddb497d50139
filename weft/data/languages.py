"""Names of languages, and which of two a text is in by its most frequent words.

That is enough to notice that two files were swapped, but it is not language identification.
Read next: check.py.
"""

import re
from collections.abc import Mapping

NAMES = {
    "ar": "Arabic", "cs": "Czech", "da": "Danish", "de": "German", "el": "Greek", "en": "English",
    "es": "Spanish", "fi": "Finnish", "fr": "French", "hr": "Croatian", "hu": "Hungarian", "it": "Italian",
    "ja": "Japanese", "ko": "Korean", "nl": "Dutch", "no": "Norwegian", "pl": "Polish", "pt": "Portuguese",
    "ro": "Romanian", "ru": "Russian", "sk": "Slovak", "sl": "Slovene", "sr": "Serbian", "sv": "Swedish",
    "tr": "Turkish", "uk": "Ukrainian", "zh": "Chinese",
}  # fmt: skip
"""English names of languages by their codes."""

WORDS = {
    "cs": "a je se na to že v s do o jsem ale jako by za pro který jsou byl tak není jeho když",
    "da": "og det at en den til er som på de med han af for ikke der var jeg et har hun men",
    "de": "der die und in das den nicht zu ist von mit es sich ein eine auf dem für auch er sie wir",
    "en": "the of and to a in is that it you for was on with he as are this be have not they we",
    "es": "de la que el en y a los se las un por con una no es para su lo como más pero al del",
    "fr": "de la le et les des en un une est que dans pour qui il sur pas au plus ne se par vous",
    "hr": "je i u se na da su za od ne to s kao o bi koji što ili ali sam iz nije bila više",
    "it": "di che è la il un non per una in sono mi ho lo si ha con le come ma dei della anche",
    "nl": "de het een en van in is dat op te zijn niet met voor er ik die aan was ook maar je",
    "pl": "w i na z się nie do to że jest o jak po ale co za od dla są czy przez tym był tylko",
    "pt": "de a o que e do da em um para com não uma os no se na por mais as dos como mas foi",
    "ru": "в и на не что с по он как это но из к за от для его все так же бы у был быть",
    "sl": "je in v na da se so za s z ki ne pa to bi kot po tudi ali od iz če bil še",
    "sr": "je i u se na da su za od ne to sa kao o bi koji što ili ali sam iz nije bila više",
    "sv": "och i att det som en på är av för med den till inte har de ett om var jag men han",
    "uk": "в і на не що з до як це у за та від для його але був він вона бути або",
}
_CODES = {
    **{name.lower(): code for code, name in NAMES.items()}, "slovenian": "sl",
    "čeština": "cs", "dansk": "da", "deutsch": "de", "español": "es", "français": "fr", "hrvatski": "hr",
    "italiano": "it", "nederlands": "nl", "polski": "pl", "português": "pt", "русский": "ru",
    "slovenščina": "sl", "srpski": "sr", "svenska": "sv", "українська": "uk",
}  # fmt: skip
"""Codes by the names of languages in English and in themselves."""

CODE = re.compile(r"[a-z]{2,3}([-_][A-Za-z]{2,8})?")  # a language code, such as en or pt-BR

SIDES = ("source", "target", "src", "tgt", "trg")  # common names of the two sides of a pair


def code_of(name: str) -> str | None:
    """The code of a language that has a word list, or None.

    Its name may be a code, also with a region (de_AT), or be in English or in the language (German, Deutsch).
    """
    lower = name.lower()
    code = _CODES.get(lower, lower.replace("_", "-").partition("-")[0])
    return code if code in WORDS else None


def share(counts: Mapping[str, int], code: str) -> float:
    """The share of a text's words that are frequent words of a language."""
    frequent = set(WORDS[code].split())
    return sum(count for word, count in counts.items() if word in frequent) / max(1, sum(counts.values()))
