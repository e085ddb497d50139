"""The page of `weft inspect`: html.py writes views into one file, the .js files next to it draw them."""
