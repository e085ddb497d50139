"""Drawing: matrices, word maps, colours, fonts, files. Start with picture.py."""
