"""One gated cell over all steps as one differentiable operation, a file a cell."""
