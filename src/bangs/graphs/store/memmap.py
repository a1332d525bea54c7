"""Memory maps: arrays in files, and freeing the memory of what was read."""

import mmap
from pathlib import Path
from typing import IO, Any
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt
from torch import Tensor

# maps in use, by address: a tensor over a map does not know it, and other memory must not be released
_maps: "WeakValueDictionary[int, np.memmap[Any, Any]]" = WeakValueDictionary()


def mapped(file: Path | IO[bytes], dtype: Any, shape: tuple[int, ...], mode: Any) -> npt.NDArray[Any]:
    """The memory-mapped array of a file."""
    found = np.memmap(file, dtype, mode=mode, shape=shape)
    _maps[found.ctypes.data] = found
    return found


def release(array: Tensor | npt.NDArray[Any]) -> None:
    """Free the memory of the pages of a mapped array that were read; other arrays are left alone."""
    address = array.untyped_storage().data_ptr() if isinstance(array, Tensor) else array.ctypes.data
    found: Any = _maps.get(address)
    if found is not None and hasattr(mmap, "MADV_DONTNEED"):
        found._mmap.madvise(mmap.MADV_DONTNEED)
