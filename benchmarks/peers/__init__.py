"""One adapter a peer; each runs in the peer's own virtual environment and knows nothing of the others."""
