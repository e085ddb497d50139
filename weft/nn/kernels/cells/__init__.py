"""Recurrent layers over all steps: by torch, by hand-written back-propagation, compiled, by Triton."""
