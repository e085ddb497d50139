"""What the task forecast is made of: data, model, scores. Start with data.py."""
