"""One file per format; `weft export --to NAME` finds it by its file name."""
