"""Words in context, by a language model of both directions. Start with task.py."""
