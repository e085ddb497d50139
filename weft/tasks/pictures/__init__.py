"""What the tasks of pictures are made of: `caption`, `images` and `draw`."""
