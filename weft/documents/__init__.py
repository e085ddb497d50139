"""Texts and files as sentences to translate, and the translations in their places. Start with segments.py."""
