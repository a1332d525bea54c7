"""One run shared by several processes under torchrun."""
