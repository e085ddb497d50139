"""Counts in messages: 1 line, 2 lines."""


def plural(count: int, noun: str) -> str:
    """A count and its noun, in the plural unless the count is 1.

    Args:
        count: the number; thousands are separated by commas.
        noun: its singular, perhaps after an adjective: "line", "unknown word", "series".

    Example:
        >>> [plural(1, "line"), plural(1200, "unknown word"), plural(2, "class"), plural(3, "summary")]
        ['1 line', '1,200 unknown words', '2 classes', '3 summaries']
        >>> [plural(0, "line"), plural(2, "hypothesis"), plural(2, "series"), plural(2, "day")]
        ['0 lines', '2 hypotheses', '2 series', '2 days']
    """
    return f"{count:,} {noun if count == 1 else _several(noun)}"


def _several(noun: str) -> str:
    if noun.endswith("series"):
        return noun
    if noun.endswith("sis"):
        return f"{noun[:-2]}es"
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("s", "x", "ch", "sh")) else f"{noun}s"
