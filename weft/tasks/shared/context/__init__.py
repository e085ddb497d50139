"""What models of words in context share, and how other tasks stand on them (standing.py)."""
