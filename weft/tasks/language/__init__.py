"""Language models: text continued and scored. Start with task.py."""
