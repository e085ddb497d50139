"""Forecasters, one a file: a past becomes features of each future step. Start with forecaster.py."""
