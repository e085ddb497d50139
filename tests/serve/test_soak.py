"""A short soak: the server keeps its memory and answers everything; soak.py is the long one."""

from pathlib import Path

import pytest

from tests.serve.soak import soak


@pytest.mark.slow
def test_two_minutes_of_mixed_requests_cost_no_memory_and_no_failure(library: None, runs: Path) -> None:
    report = soak(runs, 120)
    assert report.unasked == []
    assert {kind for kind, _ in report.requests} == {*report_kinds()}
    assert report.last_mib < 1.25 * report.first_mib + 50, (report.first_mib, report.last_mib)
    assert report.p99() < 20
    assert report.left < 45


def report_kinds() -> list[str]:
    from tests.serve.soak import Client

    return list(Client("", "", 0).kinds)
