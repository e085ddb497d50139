"""Recurrent layers over all steps: compiled code, torch's operations, a plain loop."""
