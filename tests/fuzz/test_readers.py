"""Files that readers once failed on, and new ones in each run; for longer: python -m tests.fuzz 60."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from tests.fuzz.__main__ import SEEDS
from tests.fuzz.harm import harmed, tried
from tests.fuzz.readers import READERS

pytestmark = pytest.mark.filterwarnings("ignore::weft.errors.DataWarning")

FOUND = sorted(path.relative_to(SEEDS) for path in SEEDS.glob("*/*"))


@pytest.mark.parametrize("name", READERS)
def test_the_files_that_harm_begins_with_are_read(name: str, tmp_path: Path) -> None:
    reader = READERS[name]
    reader.beside(tmp_path)
    for data in reader.seeds:
        (tmp_path / reader.name).write_bytes(data)
        reader.read(tmp_path / reader.name)


@pytest.mark.parametrize("seed", FOUND, ids=str)
def test_what_was_found_is_refused_in_a_sentence_or_read(seed: Path, tmp_path: Path) -> None:
    reader = READERS[seed.parent.name]
    reader.beside(tmp_path)
    tried(reader, tmp_path, (SEEDS / seed).read_bytes())


@pytest.mark.parametrize("name", READERS)
def test_a_harmed_file_is_refused_in_a_sentence_or_read(
    name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    reader = READERS[name]
    folder = tmp_path_factory.mktemp("harmed")
    reader.beside(folder)

    @settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(harmed(reader.seeds))
    def survives(data: bytes) -> None:
        tried(reader, folder, data)

    survives()
