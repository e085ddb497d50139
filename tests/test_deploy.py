"""Files of deploy/ name options, addresses, variables and versions that exist, and agree with each other."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from weft.commands.serve import LOOPBACK
from weft.commands.serve import command as serve
from weft.version import __version__

ROOT = Path(__file__).resolve().parents[1]
DEPLOY = ROOT / "deploy"
CONTAINER = (DEPLOY / "Containerfile").read_text("utf-8")
UNIT = (DEPLOY / "weft.service").read_text("utf-8")
FOREIGN = {"OMP_NUM_THREADS", "OMP_WAIT_POLICY", "MPLCONFIGDIR", "PATH", "PYTHONDONTWRITEBYTECODE"}
GUIDE = (ROOT / "docs" / "guides" / "deploy.md").read_text("utf-8")


def documents(name: str) -> list[Any]:
    return list(YAML(typ="safe", pure=True).load_all((DEPLOY / name).read_text("utf-8")))


def compose() -> Any:
    return documents("compose.yaml")[0]["services"]["weft"]


def pod() -> Any:
    return documents("kubernetes.yaml")[0]["spec"]["template"]["spec"]


def commands() -> dict[str, list[str]]:
    """What each file runs, without the program."""
    entry = re.search(r"^CMD \[(.*)\]$", CONTAINER, re.M)
    line = re.search(r"^ExecStart=(\S+) (.*)$", UNIT, re.M)
    assert entry and line and line[1] == "/opt/weft/bin/weft"
    return {
        "Containerfile": re.findall(r'"([^"]*)"', entry[1]),
        "weft.service": shlex.split(line[2]),
        "compose.yaml": compose()["command"],
        "kubernetes.yaml": pod()["containers"][0]["args"],
    }


def variables() -> dict[str, set[str]]:
    """The environment variables that each file sets."""
    block = re.search(r"^ENV ((?:.*\\\n)*.*)$", CONTAINER, re.M)
    assert block
    return {
        "Containerfile": set(re.findall(r"(\w+)=", block[1])),
        "weft.service": set(re.findall(r"(\w+)=", " ".join(re.findall(r"^Environment=(.*)$", UNIT, re.M)))),
        "compose.yaml": set(compose()["environment"]),
        "kubernetes.yaml": {one["name"] for one in pod()["containers"][0]["env"]},
    }


@pytest.mark.parametrize("name", sorted(commands()))
def test_every_command_is_one_that_weft_serve_accepts(name: str) -> None:
    words = commands()[name]
    assert words[0] == "serve"
    context = serve.make_context("serve", list(words[1:]))
    assert [path.name for path in context.params["runs"]] == ["demo-en-es"]
    assert context.params["port"] == 8000
    local = name == "weft.service"  # a container's own localhost cannot be reached from outside
    assert context.params["host"] == ("127.0.0.1" if local else "0.0.0.0")


@pytest.mark.parametrize("name", sorted(variables()))
def test_every_variable_is_read_by_weft_or_by_what_it_runs_on(name: str) -> None:
    source = "".join(path.read_text("utf-8") for path in (ROOT / "weft").rglob("*.py"))
    for variable in variables()[name]:
        assert variable in FOREIGN or f'"{variable}"' in source, variable


def test_every_address_is_one_of_the_server() -> None:
    pytest.importorskip("fastapi", reason="the extra serve is not installed")
    from weft.serve.app import Application
    from weft.serve.limits import ServerLimits

    serving = Application({}, ServerLimits())
    serving.drain()
    known = set(serving.description()["paths"])
    for path in DEPLOY.iterdir():
        text = path.read_text("utf-8")
        named = set(re.findall(r"(?:^|[\s:\d])(/(?:health|metrics)[\w/]*)", text))
        assert named <= known, path.name
    container = pod()["containers"][0]
    probes = {
        kind: container[f"{kind}Probe"]["httpGet"]["path"] for kind in ("startup", "liveness", "readiness")
    }
    assert probes == {"startup": "/health/live", "liveness": "/health/live", "readiness": "/health/ready"}
    assert "http://127.0.0.1:8000/health/ready" in CONTAINER


def test_the_container_agrees_with_the_project() -> None:
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    base = re.search(r"^ARG BASE=\S+/python:(3\.\d+)-slim$", CONTAINER, re.M)
    assert base and f'"Programming Language :: Python :: {base[1]}"' in project
    assert "[serve]" in CONTAINER and "\nserve = [" in project and 'weft = "weft.cli:main"' in project
    assert "constraints.txt" in CONTAINER and (ROOT / "constraints.txt").is_file()
    build = compose()["build"]
    assert (DEPLOY / build["context"] / build["dockerfile"]).resolve() == DEPLOY / "Containerfile"
    assert set(build["args"]) <= set(re.findall(r"^ARG (\w+)", CONTAINER, re.M))
    assert pod()["containers"][0]["image"] == f"weft:{__version__}"


def test_nothing_runs_as_root_or_writes_elsewhere() -> None:
    user = re.search(r"^USER (\d+):(\d+)$", CONTAINER, re.M)
    assert user and f"useradd --uid {user[1]} " in CONTAINER
    container, about = pod()["containers"][0], pod()["securityContext"]
    assert about["runAsNonRoot"] and (about["runAsUser"], about["runAsGroup"]) == (int(user[1]), int(user[2]))
    assert container["securityContext"]["readOnlyRootFilesystem"] and compose()["read_only"]
    assert container["securityContext"]["capabilities"]["drop"] == compose()["cap_drop"] == ["ALL"]
    assert {mount["mountPath"]: mount.get("readOnly", False) for mount in container["volumeMounts"]} == {
        "/runs": True,
        "/tmp": False,
        "/var/cache/weft": False,
    }
    assert compose()["volumes"] == ["../runs:/runs:ro"]
    assert [one.split(":")[0] for one in compose()["tmpfs"]] == ["/tmp", "/var/cache/weft"]
    written = dict(re.findall(r"(WEFT_CACHE|MPLCONFIGDIR)=(\S+)", CONTAINER))
    assert set(written) == {"WEFT_CACHE", "MPLCONFIGDIR"}
    assert all(place.startswith("/var/cache/weft") for place in written.values())
    assert "DynamicUser=yes" in UNIT and "ProtectSystem=strict" in UNIT and "CacheDirectory=weft\n" in UNIT
    assert all(place.startswith("/var/cache/weft") for place in re.findall(r"(?:CACHE|DIR)=(/\S+)", UNIT))


def test_stopping_leaves_the_time_that_the_server_takes() -> None:
    server = pytest.importorskip("weft.serve.server", reason="the extra serve is not installed")
    seconds = server.GRACE_SECONDS + server.END_SECONDS
    stop = re.search(r"^TimeoutStopSec=(\d+)$", UNIT, re.M)
    assert stop and int(stop[1]) > seconds
    assert pod()["terminationGracePeriodSeconds"] > seconds
    assert int(compose()["stop_grace_period"].removesuffix("s")) > seconds
    assert "STOPSIGNAL SIGTERM" in CONTAINER and "KillSignal=SIGTERM" in UNIT
    assert f"for up to {server.GRACE_SECONDS} seconds after SIGTERM, and after {seconds}" in GUIDE


def test_the_guide_has_the_limits_of_the_proxy_and_of_the_server() -> None:
    nginx, words = (DEPLOY / "nginx.conf").read_text("utf-8"), " ".join(GUIDE.split())
    for setting, sentence in {
        "rate=10r/s;": "10 requests a second and 20 connections for each address",
        "burst=40 ": "| 10, and 40 at once |",
        "limit_conn weft_connections 20;": "| 20 for each address |",
        "client_header_timeout 10s;": "| ended by nginx after 10 and 30 |",
        "keepalive_timeout 30s;": "| ended by nginx after 10 and 30 |",
        "client_body_timeout 10s;": "10 seconds between two parts",
        "send_timeout 30s;": "30 between two reads |",
    }.items():
        assert setting in nginx and sentence in words, setting
    module = pytest.importorskip("weft.serve.limits", reason="the extra serve is not installed")
    limits = module.ServerLimits()
    assert f"closed after {limits.header_seconds:g} and 5 seconds" in words
    assert f"| {limits.body_seconds:g} seconds | nginx" in words


def test_only_this_machine_is_answered_unless_another_address_is_named() -> None:
    assert serve.make_context("serve", ["run"]).params["host"] in LOOPBACK


def test_what_is_not_pinned_is_said() -> None:
    said, base = (ROOT / "SECURITY.md").read_text("utf-8"), re.search(r"^ARG BASE=(\S+)$", CONTAINER, re.M)
    assert base and ("@sha256:" in base[1]) != ("names its base image by a tag" in said)
    setup = (ROOT / "Makefile").read_text("utf-8").partition("\nsetup:")[2].partition("\n\n")[0]
    assert setup and ("--require-hashes" in setup) != ("`make setup` takes the newest pip" in said)
