"""What several tasks share: writing (a text for a source), labels, pictures, context, inspected."""
