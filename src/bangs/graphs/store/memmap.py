"""Mapping: arrays that live in files, and letting go of what was read of them."""

import mmap
from pathlib import Path
from typing import IO, Any
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt
from torch import Tensor

# the maps that are in use, by address: a tensor over a map does not know it, and other memory must not be let go
_maps: "WeakValueDictionary[int, np.memmap[Any, Any]]" = WeakValueDictionary()


def mapped(file: Path | IO[bytes], dtype: Any, shape: tuple[int, ...], mode: Any) -> npt.NDArray[Any]:
    """The array of a file, read where it is looked at."""
    found = np.memmap(file, dtype, mode=mode, shape=shape)
    _maps[found.ctypes.data] = found
    return found


def release(array: Tensor | npt.NDArray[Any]) -> None:
    """Let go of the pages of a mapped array that were read or written; the file has them. Others are left alone."""
    address = array.untyped_storage().data_ptr() if isinstance(array, Tensor) else array.ctypes.data
    found: Any = _maps.get(address)
    if found is not None and hasattr(mmap, "MADV_DONTNEED"):
        found._mmap.madvise(mmap.MADV_DONTNEED)
