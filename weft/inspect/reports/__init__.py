"""Pictures of evaluations (`weft evaluate --plot`), a file a task, named as it. Start with report.py."""
