"""Forking: the environment of programs that fork while they work."""

import os

# one thread, since a pool of them does not survive a fork; no card, since where one is seen autograd has threads too
FORKING = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
