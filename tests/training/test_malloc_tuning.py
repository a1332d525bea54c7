"""glibc keeps freed memory."""

import platform
import resource

import pytest
import torch

from bangs.training.malloc_tuning import keep_freed_memory


def pages(times: int) -> int:
    """How many pages of 20 MB the system had to bring, over so many turns of taking and freeing."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(times):
        [torch.ones(5 * 2**18) for _ in range(4)]
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another allocator, other habits")
def test_the_system_brings_pages_once():
    keep_freed_memory()
    pages(2)
    assert pages(10) < 10_000  # 10 · 5,120 where they are given back; other code of this process takes some too
