"""Recurrent layers over all steps: torch's operations, hand-written backward pass, compiled code, Triton."""
