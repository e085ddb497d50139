"""Recordings to text: data, model, search and scores of the task speech."""
