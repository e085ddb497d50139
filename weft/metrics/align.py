"""Which word of a hypothesis stands for which word of a reference, for METEOR.

As many links as possible, each word in one at most; among those the fewest crossings; among those the
fewest chunks. Words seen as often on both sides leave no choice; only surplus repetitions ("the" three
times against two) open a search, which goes over the hypothesis from left to right and keeps the best
WIDTH partial alignments. Read next: meteor.py.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

WIDTH = 40


class _Partial(NamedTuple):
    crossings: int
    chunks: int
    used: int  # bit j is set where reference word j is taken
    adjacent: int  # the reference word that would continue the chunk, -1 for none
    links: tuple[tuple[int, int], ...]


def align(hypothesis: Sequence[str], reference: Sequence[str], links: Mapping[int, int]) -> dict[int, int]:
    """Link equal words; links of an earlier stage stay.

    Args:
        hypothesis, reference: words, or their stems in a later stage.
        links: hypothesis position -> reference position, from earlier stages.

    Returns:
        All links, old and new.

    Example:
        >>> align(["the", "cat"], ["the", "dog", "the", "cat"], {})
        {0: 2, 1: 3}
    """
    taken = set(links.values())
    places: dict[str, list[int]] = defaultdict(list)
    for j, word in enumerate(reference):
        if j not in taken:
            places[word].append(j)
    ahead = Counter(word for i, word in enumerate(hypothesis) if i not in links and word in places)
    wanted = {word: min(count, len(places[word])) for word, count in ahead.items()}

    beam = [_Partial(0, 0, 0, -1, ())]
    for i, word in enumerate(hypothesis):
        if i in links:
            options = [_link(partial, i, links[i]) for partial in beam]
        elif word in places:
            ahead[word] -= 1
            options = [
                option
                for partial in beam
                for option in _choices(partial, i, places[word], wanted[word], ahead[word])
            ]
        else:
            options = [partial._replace(adjacent=-1) for partial in beam]
        best: dict[tuple[int, int], _Partial] = {}
        for option in sorted(options):
            best.setdefault((option.used, option.adjacent), option)
        beam = list(best.values())[:WIDTH]
    return dict(beam[0].links)


def chunks(links: Mapping[int, int]) -> int:
    """Runs of links that are adjacent on both sides.

    Example:
        >>> chunks({0: 2, 1: 3, 2: 0})
        2
    """
    return sum(links.get(i - 1, -2) != j - 1 for i, j in links.items())


def _link(partial: _Partial, i: int, j: int) -> _Partial:
    return _Partial(
        partial.crossings + (partial.used >> (j + 1)).bit_count(),
        partial.chunks + (j != partial.adjacent),
        partial.used | 1 << j,
        j + 1,
        (*partial.links, (i, j)),
    )


def _choices(partial: _Partial, i: int, places: list[int], wanted: int, ahead: int) -> list[_Partial]:
    """Ways to go on at a word with `ahead` more of its kind to come, of which `wanted` are linked in all.

    Equal words are linked in the order they stand: crossing two equal words never lowers the crossings.
    """
    done = [place for place, j in enumerate(places) if partial.used >> j & 1]
    missing = wanted - len(done)
    first = done[-1] + 1 if done else 0
    last = len(places) - missing  # leave room for the links still to come
    options = [_link(partial, i, j) for j in places[first : last + 1]] if missing else []
    if ahead >= missing:
        options.append(partial._replace(adjacent=-1))
    return options
