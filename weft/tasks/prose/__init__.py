"""What the task `language` is made of: running text, its models, their use. Start with ../language.py."""
