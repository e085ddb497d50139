"""`weft demo` without a terminal: trains, scores, translates, draws, says what comes next; and goes on."""

from pathlib import Path

import pytest

from tests.commands.shell import refused, weft


@pytest.mark.slow
def test_the_demo_needs_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path / "cache"))
    run = tmp_path / "demo"
    answer = weft("demo", "--run", run, "--minutes", 0.02, "--source", "de", "--target", "pl", code=0)
    for shown in (
        "from de to pl",
        "greedy",
        "beam 5",
        "BLEU",
        "Translations:",
        "Try next:",
    ):
        assert shown in answer.out
    assert (run / "alignment.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (run / "alignment.svg").read_text("utf-8")
    assert (run / "README.md").exists()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--target", "en"), "'en' is the source too; name two languages"),
        (("--target", "xx"), "has no language 'xx'; choose two of en, de, es, fr, pl, ru"),
        (("--minutes", "-1"), "got -1"),
        (("--minutes", "0"), "got 0"),
    ],
)
def test_what_it_cannot_do_it_says_at_once(tmp_path: Path, options: tuple[str, ...], sentence: str) -> None:
    assert sentence in refused(weft("demo", "--run", tmp_path / "demo", *options))
    assert not (tmp_path / "demo").exists()
