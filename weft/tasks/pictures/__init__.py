"""Shared by tasks on pictures: the recipe's sections, files of pictures, checks."""
