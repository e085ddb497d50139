"""Reads the report of an export."""

import re


def report(text: str) -> tuple[float, ...]:
    """Nats, equal outputs of greedy and of beam search, and those that differ because they were cut."""
    nats = re.search(r"at most (\S+) nats", text)
    equal = re.search(r"greedy (\d+) of 20, beam 3: (\d+) of 20(?:, (\d+) of the others)?", text)
    assert nats and equal, text
    return (float(nats[1]), *(int(one) for one in equal.groups() if one))
