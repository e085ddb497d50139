"""Read recipes: from YAML text to the parts it names, with file and line in every error.

    recipe = read_recipe("recipes/translate/help-gru-attention.yaml", ["training.max_updates=200"])
    settings = build(recipe.section("training"), Settings)
    encoder = build(recipe.section("model").section("encoder"), Encoder, in_size=256)

Read next: text.py, which reads a recipe into tables; building.py, which builds objects.
"""

from weft.config.building import build as build
from weft.config.building import built as built
from weft.config.building import described as described
from weft.config.building import named as named
from weft.config.recipe import changed as changed
from weft.config.recipe import read_recipe as read_recipe
from weft.config.text import Entry as Entry
from weft.config.text import PlacedError as PlacedError
from weft.config.text import Table as Table
from weft.config.text import dump as dump
from weft.config.text import parse as parse
