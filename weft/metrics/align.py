"""Word alignment between a hypothesis and a reference, for METEOR.

Each word has at most one link. Among alignments with the most links we prefer the fewest crossings, then
the fewest chunks. A word that occurs equally often on both sides leaves no choice; only surplus repetitions
("the" three times against two) need a search. It reads the hypothesis from left to right and keeps the
best WIDTH partial alignments. Read next: meteor.py.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

WIDTH = 40


class _Partial(NamedTuple):
    crossings: int
    chunks: int
    used: int  # bit j is set if reference word j is linked
    adjacent: int  # the reference word that would continue the chunk, -1 if none
    links: tuple[tuple[int, int], ...]


def align(hypothesis: Sequence[str], reference: Sequence[str], links: Mapping[int, int]) -> dict[int, int]:
    """Link equal words and keep the links of earlier stages.

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
    """Ways to link, or skip, one hypothesis word.

    Equal words are linked in order, because crossing two equal words never reduces the crossings.

    Args:
        partial: the alignment so far.
        i: the hypothesis position.
        places: positions of this word in the reference.
        wanted: links of this word in the finished alignment.
        ahead: later occurrences of this word in the hypothesis.
    """
    done = [place for place, j in enumerate(places) if partial.used >> j & 1]
    missing = wanted - len(done)
    first = done[-1] + 1 if done else 0
    last = len(places) - missing  # leave enough places for the remaining links
    options = [_link(partial, i, j) for j in places[first : last + 1]] if missing else []
    if ahead >= missing:
        options.append(partial._replace(adjacent=-1))
    return options
