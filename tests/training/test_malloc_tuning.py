"""glibc keeps freed memory."""

import platform
import subprocess
import sys

import pytest

# in a process of its own, as glibc never forgets what it has adapted to
TAKEN = """
import ctypes
from bangs.training.malloc_tuning import keep_freed_memory

libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]

class Facts(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in "arena ordblks smblks hblks hblkhd u f w fordblks keepcost".split()]

libc.mallinfo2.restype = Facts

def memory_from_system():
    before = libc.mallinfo2()
    block = libc.malloc(20 * 2**20)
    during = libc.mallinfo2()
    libc.free(block)
    after = libc.mallinfo2()
    return during.hblks - before.hblks, (during.arena - after.arena) // 2**20

keep_freed_memory()
print(*memory_from_system())
"""


@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc" or tuple(map(int, platform.libc_ver()[1].split("."))) < (2, 33),
    reason="another allocator, or one that tells nothing",
)
@pytest.mark.parametrize(("tuned", "mapped"), [(True, "0"), (False, "1")])
def test_a_large_block_comes_from_the_heap_and_stays_there(tuned: bool, mapped: str) -> None:
    """Counting the pages a process is brought is no proof: where a small object lies above them, glibc keeps them."""
    script = TAKEN if tuned else TAKEN.replace("\nkeep_freed_memory()", "")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [mapped, "0"]  # mapped by the system; MiB of the heap given back
