"""Keep glibc from returning freed memory to the system between epochs."""

import torch

BLOCK_BYTES = 31 * 2**20  # glibc adapts to freed blocks of up to 32 MiB


def keep_freed_memory() -> None:
    """Let glibc keep up to 62 MiB of freed memory.

    glibc keeps twice the largest block that was ever freed, so this allocates and frees one without writing to it.
    Without this the system would clear every page anew in every epoch.
    """
    torch.empty(BLOCK_BYTES, dtype=torch.uint8)
