"""Shared by several tasks: writing (a text for a source), labels, pictures, context, inspected."""
