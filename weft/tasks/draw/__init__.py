"""Pictures for texts. Start with task.py."""
