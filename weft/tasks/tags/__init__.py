"""Parts of tagging. Start with data.py."""
