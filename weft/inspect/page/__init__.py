"""The page of `weft inspect`: html.py puts views into one file, the renderers are the .js beside it."""
