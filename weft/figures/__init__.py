"""How things are drawn: matrices, maps of words, colours, fonts, files. Start with picture.py."""
