"""Shared by the recipes of `weft init`: training length, values as YAML, recipes for pictures."""
