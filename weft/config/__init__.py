"""Read recipes: from YAML text to the parts it names, with file and line in every error.

    recipe = read_recipe("recipes/translate/help-gru-attention.yaml", ["training.max_updates=200"])
    settings = build(recipe.section("training"), Settings)
    encoder = build(recipe.section("model").section("encoder"), Encoder, in_size=256)

Read next: table.py, a recipe in memory; text.py, which reads it; building.py, which builds objects.
"""

from weft.config.building import build, built, described, named
from weft.config.recipe import changed, read_recipe
from weft.config.table import Entry, PlacedError, Table
from weft.config.text import dump, parse

__all__ = [
    "Entry",
    "PlacedError",
    "Table",
    "build",
    "built",
    "changed",
    "described",
    "dump",
    "named",
    "parse",
    "read_recipe",
]
