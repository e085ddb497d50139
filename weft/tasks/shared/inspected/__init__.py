"""What `weft inspect` shows: one input and the model's output. Start with decoded.py."""
