"""Forecasters, one per file: from a past to features of each future step. Start with forecaster.py."""
