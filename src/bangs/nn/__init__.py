"""Network architectures of R models at once; training is in `bangs.training`."""
