"""The interface fuzzed from its own description: what fits it and what does not, and never a 5xx.

Source: schemathesis.readthedocs.io. Skipped, and said so, where it is not installed.
"""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from weft.serve.openapi import description

schemathesis = pytest.importorskip(
    "schemathesis", reason="schemathesis is not installed: pip install -e .[test,serve-tests]"
)

PATHS = description()["paths"]
OPERATIONS = [(path, method) for path, methods in PATHS.items() for method in methods]
FED = [  # any text fits a name in a path, so nothing can be wrong with it
    (path, method)
    for path, method in OPERATIONS
    if "requestBody" in PATHS[path][method]
    or any(each["in"] == "query" for each in PATHS[path][method].get("parameters", ()))
]
SLOW = {"/inspect"}
"""Answers that take a second and more."""


@pytest.fixture(scope="module")
def schema(address: str) -> Any:
    return schemathesis.openapi.from_url(f"{address}/openapi.json")


def fuzz(schema: Any, path: str, method: str, mode: Any, count: int) -> None:
    """Ask so many times; every answer has a status that the description names."""
    named = {int(status) for status in PATHS[path][method]["responses"]}
    operation = schema[path][method]

    @settings(max_examples=count, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(operation.as_strategy(generation_mode=mode))
    def asked(case: Any) -> None:
        reply = case.call(timeout=60)
        assert reply.status_code < 500, (case, reply.text)
        # An address with another name in it, or another method, is none of the description's.
        assert reply.status_code in named | {404, 405}, (case, reply.status_code)

    asked()


@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_what_fits_the_description_is_answered(schema: Any, path: str, method: str) -> None:
    fuzz(schema, path, method, schemathesis.GenerationMode.POSITIVE, 3 if path in SLOW else 15)


@pytest.mark.parametrize(("path", "method"), FED)
def test_what_does_not_fit_is_refused_and_the_server_lives_on(schema: Any, path: str, method: str) -> None:
    fuzz(schema, path, method, schemathesis.GenerationMode.NEGATIVE, 3 if path in SLOW else 25)


def test_every_address_is_described(serving: Any) -> None:
    files = {
        "/",
        "/index.html",
        "/page.css",
        "/page.js",
        "/key.js",
        "/draw.js",
        "/edits.js",
        "/curves.js",
        "/openapi.json",
        "/spec",
    }
    assert {route.path for route in serving.app.routes} - files == set(PATHS)
