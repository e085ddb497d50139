"""Parts of classification, and what it shares with tagging. Start with batch.py."""
