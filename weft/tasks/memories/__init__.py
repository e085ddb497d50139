"""What the task `memory` is made of: its data, its model, its lines of text, its evaluation."""
