"""Ranks that wait, under torchrun: rank 0 inside gloo for rank 1, which works on for ever; each says its number."""

import time

import torch

from bangs.distributed import ranks
from bangs.utils.signals import check, graceful

with ranks.process_group(torch.device("cpu")), graceful():
    print(f"rank {ranks.rank()}\n", end="", flush=True)  # in one piece: both write into one stream
    while ranks.rank() == 1:
        check()
        time.sleep(0.02)
    ranks.all_reduce(torch.zeros(1))
