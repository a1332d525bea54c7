"""Triton kernels for a GPU that fuse several steps of torch; everything also works without them.

BANGS_KERNELS=0 in the environment switches them off.
"""

import logging
import os
from functools import cache

import torch
from torch import Tensor

log = logging.getLogger(__name__)


def serves(*tensors: Tensor) -> bool:
    """Whether these tensors are on a GPU for which the kernels can be built."""
    return all(tensor.is_cuda and tensor.dtype in (torch.float32, torch.int64) for tensor in tensors) and ready()


@cache
def ready() -> bool:
    """Whether the kernels can be built; tries one, since Triton comes with torch for CUDA but needs a C compiler."""
    if os.environ.get("BANGS_KERNELS") == "0":
        return False
    try:
        from bangs.kernels.dropout import mask

        mask(
            torch.zeros(1, dtype=torch.int64, device="cuda"), torch.zeros((), dtype=torch.int64, device="cuda"), 1, 0.5
        )
    except Exception as reason:  # whatever a missing compiler, driver or package raises
        log.debug("Triton kernels are not used: %s", reason)
        return False
    return True
