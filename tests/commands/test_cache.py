"""The neural cache from the command line."""

from pathlib import Path

from tests.commands.prose import make
from tests.commands.shell import refused, weft


def test_a_cache_is_mixed_in(tmp_path: Path) -> None:
    recipe, run, text = make(tmp_path), tmp_path / "run", tmp_path / "other.txt"
    assert weft("train", recipe, "--run", run).code == 0
    text.write_text((tmp_path / "valid.txt").read_text())
    answer = weft("evaluate", run, "--split", "valid", "--set", "cache=20", "--set", "mixture=tuned", code=0)
    assert "of a mixture (the model, a cache of 20 tokens and KN5, weights of the cache " in answer.unfolded
    answer = weft("evaluate", run, "--data", text, "--set", "cache=20")
    assert "(the model and a cache of 20 tokens, weight of the cache " in answer.unfolded, answer.err
    assert "tuned on the validation text" in answer.unfolded
    answer = weft("predict", run, "--set", "cache=20", "--set", "mixture=0.2", stdin=b"the cat\n")
    assert answer.code == 0 and answer.out.startswith("the cat"), answer.err
    assert weft("train", recipe, "--run", run, "decoding.cache=20").code == 0
    said = refused(weft("export", run, "--to", "onnx", "--output", tmp_path / "exported"))
    assert "decoding.cache: --to onnx expects a search without it" in said
