"""What `weft inspect` looks at: one input and what a model made of it. Start with inspected.py."""
