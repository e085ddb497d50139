"""A recipe's text with other values keeps its comments."""

from weft.config.text import edited

TEXT = """\
# a tagger
task: tag
model:
  encoder: {use: recurrent, sizes: [7, 7], dropout: 0.4}   # two layers
  pool: mean
training:
  lr: 1e-3  # per update
"""


def test_values_change_and_comments_stay() -> None:
    changes = {"model.encoder.sizes": [5], "training.lr": 0.02, "training.seed": 3}
    assert edited(TEXT, changes).replace("      #", "   #").splitlines() == [  # comments keep their column
        "# a tagger",
        "task: tag",
        "model:",
        "  encoder: {use: recurrent, sizes: [5], dropout: 0.4}   # two layers",
        "  pool: mean",
        "training:",
        "  lr: 0.02  # per update",
        "  seed: 3",
    ]


def test_a_name_becomes_a_table_where_a_setting_inside_changes() -> None:
    changes = {"model.pool.dropout": 0.1, "decoding.beam": 2, "model.encoder": {"use": "bag", "none": None}}
    lines = edited(TEXT, changes).splitlines()
    assert "  pool: {use: mean, dropout: 0.1}" in lines
    assert lines[-1] == "decoding: {beam: 2}"
    assert any(line.startswith("  encoder: {use: bag, none: null} ") for line in lines)
