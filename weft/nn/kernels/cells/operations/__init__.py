"""One recurrent cell over all steps as one differentiable operation, one file per cell."""
