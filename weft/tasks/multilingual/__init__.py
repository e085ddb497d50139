"""One translator for many language pairs. Start with task.py."""
