"""The page's own laws: what is packed comes out, sizes hold, curves survive a resumed training."""

import base64
import json
import re
import time
from types import SimpleNamespace

import numpy as np
import pytest

from weft.figures.records import plane
from weft.inspect.page.html import LARGEST, PageHead, document, pack
from weft.inspect.views.curves import CurvesView, charts_of, read_curves
from weft.inspect.views.embedding import nearest
from weft.inspect.views.view import chart, matrix, plain, said, series
from weft.inspect.views.words import CopiedView


def words(count):
    return [f"word{n}" for n in range(count)]


def heat(rows, columns, items=1, groups=1):
    chance = np.random.default_rng(rows)
    made = [
        matrix(f"m{n}", chance.dirichlet(np.ones(columns), rows), words(rows), words(columns))
        for n in range(items)
    ]
    return {
        "kind": "matrices",
        "pick": "a",
        "each": "b",
        "groups": [{"name": str(n), "items": made} for n in range(groups)],
    }


@pytest.mark.parametrize("bits", [8, 16])
def test_packed_matrices_come_back_to_half_a_step(bits):
    values = np.random.default_rng(3).normal(size=(7, 11)).astype(np.float32)
    packed = pack(values, bits)
    whole = np.frombuffer(base64.b64decode(packed["data"]), "<u2" if bits == 16 else "u1").reshape(
        packed["shape"]
    )
    step = (packed["high"] - packed["low"]) / (2**bits - 1)
    assert np.abs(packed["low"] + whole * step - values).max() <= step * 0.5001


def test_two_hundred_by_two_hundred_is_a_page_in_two_seconds():
    start = time.process_time()
    page = document(PageHead("t", []), [("Alignment", [heat(200, 200, items=1, groups=5)])])
    assert time.process_time() - start < 2
    assert len(page.encode()) < 3_000_000


def test_far_too_many_heat_maps_are_cut_and_it_is_said():
    page = document(PageHead("t", []), [("Alignment", [heat(200, 200, items=13, groups=7)])])
    assert len(page.encode()) <= LARGEST
    assert "heat maps, to keep the page small" in page


def test_nothing_of_a_text_is_read_as_markup():
    page = document(
        PageHead("<b>t</b>", [("a", "<i>")], "</script><p>", "<!--DATA-->"), [("V", [said("</script>")])]
    )
    assert page.count("</script>") == 2
    assert "<b>t</b>" not in page and "<i>" not in page.split("<dl>")[1].split("</dl>")[0]


def test_a_resumed_training_replaces_what_it_had_logged_later(tmp_path):
    path = tmp_path / "metrics.jsonl"
    events = [{"event": "update", "update": n, "loss": float(n), "lr": 0.1} for n in (10, 20, 30)]
    events += [{"event": "update", "update": n, "loss": 100.0 + n, "lr": 0.1} for n in (20, 30)]
    events += [{"event": "monitor", "update": 30, "values": {"enc/reach_1": 0.5, "enc/reach_10": 0.01}}]
    path.write_text("\n".join(map(json.dumps, events)) + '\n{"event": "upd')
    found = read_curves(path)
    assert found["update"]["loss"] == [(10, 10.0), (20, 120.0), (30, 130.0)]
    assert [chart["title"] for chart in charts_of(found, unit="nats")] == [
        "Loss",
        "Learning rate",
        "Gradient reach of enc",
    ]
    assert read_curves(tmp_path / "nothing")["update"] == {}


def test_the_table_of_charts_has_a_row_for_each_point():
    rows = list(CurvesView([chart("Loss", "update", "nats", [series("training", [1, 2], [3, 4])])]).table())
    assert rows[1:] == [("Loss", "training", 1.0, 3.0), ("Loss", "training", 2.0, 4.0)]


def test_copied_words_have_their_shares():
    subject = SimpleNamespace(copied=np.array([0.25, 1.0]), hypotheses=[SimpleNamespace(pieces=["a", "b"])])
    rows = list(CopiedView.collect(None, subject).table())
    assert rows == [("position", "word", "share copied"), (1, "a", 0.25), (2, "b", 1.0)]


def test_the_seconds_of_a_date_stay_exact_on_the_page():
    hours = 1_712_361_600 + 3600 * np.arange(5)
    line = series("measured", hours, [0.5, 1 / 3, 2.0, 0.1, 7.0])
    page = document(PageHead("t", []), [("Forecast", [chart("wave", "time", "value", [line], dates=True)])])
    found = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    (drawn,) = json.loads(found.group(1))[0]["blocks"][0]["series"]
    assert drawn["x"] == hours.tolist() and drawn["y"][1] == 0.333333


def test_curves_name_a_layer_as_other_views_do():
    values = {"enc.forwards.0/reach_1": [(1, 0.5)], "enc.forwards.0/forget_gate_shut": [(1, 0.1)]}
    events = {"update": {}, "validation": {}, "monitor": values}
    titles = {"enc.forwards.0": "enc, layer 1 (LSTM)"}
    reach, shut = charts_of(events, unit="nats", titles=titles)
    assert reach["title"] == "Gradient reach of enc, layer 1 (LSTM)"
    assert [one["name"] for one in shut["series"]] == ["enc, layer 1 (LSTM): forget gate"]


def test_the_plane_keeps_distances_of_what_lies_in_a_plane():
    chance = np.random.default_rng(7)
    flat = chance.normal(size=(11, 2))
    turned = np.linalg.qr(chance.normal(size=(5, 5)))[0][:2]
    found, share = plane(flat @ turned + 3.0)
    distances = [np.linalg.norm(one[:, None] - one[None], axis=2) for one in (flat, found)]
    assert np.abs(distances[0] - distances[1]).max() < 1e-10 and share == pytest.approx(1)


def test_neighbours_are_those_of_the_largest_cosine():
    table = np.random.default_rng(11).normal(size=(17, 5))
    cosines = [
        (table[3] @ table[n] / np.linalg.norm(table[3]) / np.linalg.norm(table[n]), n)
        for n in range(17)
        if n != 3
    ]
    wanted = [n for _, n in sorted(cosines, reverse=True)[:4]]
    assert [n for n, _ in nearest(table, [3], 4)[0]] == wanted


def test_what_is_not_finite_is_null():
    assert plain({"a": np.array([1.0, np.nan]), "b": (np.float32(2), np.int64(3))}) == {
        "a": [1.0, None],
        "b": [2.0, 3],
    }
