"""The processes that share one run under torchrun."""
