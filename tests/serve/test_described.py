"""The interface tested from its own description by schemathesis: what fits it is answered, the rest is
refused, and every response is one that it describes.

Source: schemathesis.readthedocs.io. Skipped, and said so, where it is not installed.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from tests.serve.conftest import listening, served
from weft.serve.app import Application
from weft.serve.guard import Access, is_open
from weft.serve.keys import Keys, new_key
from weft.serve.limits import ServerLimits
from weft.serve.openapi import EVERYWHERE

schemathesis = pytest.importorskip(
    "schemathesis", reason="schemathesis is not installed: pip install --group test --group serve-tests"
)


def described(runs: dict[str, Any], access: Access | None = None) -> dict[str, Any]:
    serving = Application(runs, ServerLimits(), access)
    serving.drain()
    return serving.description()


PATHS = described({})["paths"]
OPERATIONS = [(path, method) for path, methods in PATHS.items() for method in methods]
FED = [  # any text fits a name in a path, so nothing can be wrong with it
    (path, method)
    for path, method in OPERATIONS
    if "requestBody" in PATHS[path][method]
    or any(each["in"] == "query" for each in PATHS[path][method].get("parameters", ()))
]
FILES = {"/translate_file"}
"""No schema says which files are documents, so a file that fits the description may be refused."""
SLOW = {"/inspect"}
"""Answers that take a second and more."""


@pytest.fixture(scope="module")
def schema(address: str) -> Any:
    return schemathesis.openapi.from_url(f"{address}/openapi.json")


def fuzz(schema: Any, path: str, method: str, mode: Any, count: int) -> None:
    """Ask so many times, with all checks of schemathesis: statuses, types, headers, schemas, refusals."""
    operation = schema[path][method]

    @settings(max_examples=count, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(operation.as_strategy(generation_mode=mode))
    def asked(case: Any) -> None:
        case.call_and_validate(timeout=60)

    asked()


@pytest.mark.parametrize("count", [3, pytest.param(15, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("path", "method"), [one for one in OPERATIONS if one[0] not in FILES])
def test_what_fits_the_description_is_answered(schema: Any, path: str, method: str, count: int) -> None:
    fuzz(schema, path, method, schemathesis.GenerationMode.POSITIVE, 3 if path in SLOW else count)


@pytest.mark.parametrize("count", [4, pytest.param(20, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("path", "method"), FED)
def test_what_does_not_fit_is_refused_and_the_server_lives_on(
    schema: Any, path: str, method: str, count: int
) -> None:
    fuzz(schema, path, method, schemathesis.GenerationMode.NEGATIVE, 3 if path in SLOW else count)


def test_every_address_is_described(serving: Any) -> None:
    files = {"/", "/index.html", "/page.css", "/page.js", "/key.js", "/draw.js", "/edits.js", "/curves.js"}
    files |= {"/common.js", "/translators.js", "/training.html", "/training.js"}
    files |= {"/openapi.json", "/spec"}
    methods: dict[str, set[str]] = {}
    for route in serving.app.routes:
        methods.setdefault(route.path, set()).update({one.lower() for one in route.methods} - {"head"})
    assert {path: found for path, found in methods.items() if path not in files} == {
        path: set(found) for path, found in PATHS.items()
    }


@pytest.mark.parametrize("keyed", [False, True])
def test_every_response_has_a_schema(keyed: bool, tmp_path: Path) -> None:
    (tmp_path / "keys.txt").write_text(new_key("alice")[1])
    access = Access(keys=Keys(tmp_path / "keys.txt")) if keyed else None
    for path, methods in described({}, access)["paths"].items():
        for operation in methods.values():
            assert set(EVERYWHERE) < set(operation["responses"])
            assert ("401" in operation["responses"]) == (keyed and not is_open(path))
            for status, response in operation["responses"].items():
                assert status == "204" or all(one["schema"] for one in response["content"].values())


def test_the_description_has_the_languages_of_the_runs(serving: Any) -> None:
    fields = serving.description()["components"]["schemas"]["Translate"]["properties"]
    assert (fields["source"]["enum"], fields["target"]["enum"]) == (["auto", "xx"], ["yy"])
    assert fields["domain"]["enum"] == [""]  # no run has domains


def test_a_run_that_has_other_addresses_does_not_fit_predict(serving: Any) -> None:
    import jsonschema_rs  # comes with schemathesis

    for name, fits in (("toy", False), ("label", True)):
        runs = {name: serving.runs[name]}
        about = described(runs)["components"]["schemas"]["Predict"]
        found = jsonschema_rs.validator_for(about)
        assert found.is_valid({"run": name, "inputs": ["a"]}) is fits
        assert found.is_valid({"inputs": ["a"]})


@pytest.mark.slow
def test_its_command_finds_no_fault_in_a_server_with_keys(library: None, runs: Path, tmp_path: Path) -> None:
    key, line = new_key("alice")
    (tmp_path / "keys.txt").write_text(line)
    with listening(served(runs, Access(keys=Keys(tmp_path / "keys.txt")))) as where:
        command = [str(Path(sys.executable).with_name("schemathesis")), "run", f"{where}/openapi.json"]
        command += [
            "--header",
            f"Authorization: Bearer {key}",
            "--max-examples",
            "10",
            "--continue-on-failure",
            *(word for path in FILES for word in ("--exclude-path", path)),
        ]
        found = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=900)
    assert found.returncode == 0, found.stdout
