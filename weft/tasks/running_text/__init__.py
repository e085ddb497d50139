"""Shared by tasks that predict running text: its section `data`, its sentences, perplexities by context."""
