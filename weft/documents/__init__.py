"""Files as sentences to translate, and the translations in their places. Start with ../text/segments.py."""
