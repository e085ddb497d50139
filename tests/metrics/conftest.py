"""Artificial outputs with repetitions, missing words and empty lines."""

import random
from collections.abc import Callable

import pytest

WORDS = [
    "the",
    "a",
    "cat",
    "dog",
    "sat",
    "on",
    "mat",
    ",",
    ".",
    "walked",
    "walking",
    "never",
    "not",
    "7",
    "Über",
]


def _sentences(count: int, seed: int, longest: int = 23) -> list[str]:
    generator = random.Random(seed)
    return [" ".join(generator.choices(WORDS, k=generator.randint(1, longest))) for _ in range(count)]


def _damaged(lines: list[str], seed: int, rate: float) -> list[str]:
    generator = random.Random(seed)
    return [
        " ".join(
            generator.choice(WORDS) if generator.random() < rate else word
            for word in line.split()
            if generator.random() > rate / 2
        )
        for line in lines
    ]


@pytest.fixture(scope="session")
def sentences() -> Callable[..., list[str]]:
    return _sentences


@pytest.fixture(scope="session")
def damaged() -> Callable[..., list[str]]:
    return _damaged


@pytest.fixture(scope="session")
def references() -> list[str]:
    return _sentences(211, seed=1)


@pytest.fixture(scope="session")
def good(references: list[str]) -> list[str]:
    return _damaged(references, seed=2, rate=0.3)
