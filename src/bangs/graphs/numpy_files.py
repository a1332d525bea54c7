"""Arrays: numpy files from strangers, with every size believed only after it was compared with the file's own."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any
from zipfile import ZipFile, ZipInfo

import numpy as np
import numpy.typing as npt

from bangs.errors import DataUnavailable, InvalidInput

Array = npt.NDArray[Any]

MOST_BYTES = 8 * 2**30  # of one file's arrays together, unpacked
_KINDS = "biuf"


def read_npz(path: Path, names: Iterable[str] | None = None) -> dict[str, Array]:
    """The arrays of an .npz file by name; of those named, the ones that are there."""
    wanted = None if names is None else set(names)
    arrays = {}
    try:
        with path.open("rb") as file, ZipFile(file) as archive:
            members = [member for member in archive.infolist() if _is_wanted(member, wanted)]
            if sum(member.file_size for member in members) > MOST_BYTES:
                raise InvalidInput(f"{path} unpacks to more than {MOST_BYTES >> 30} GiB; it is refused")
            for member in members:
                name = member.filename.removesuffix(".npy")
                with archive.open(member) as content:
                    arrays[name] = _read(content, member.file_size, f"array '{name}' of {path}")
    except InvalidInput:
        raise
    except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
        raise DataUnavailable(f"{path} cannot be read: {error.strerror}") from error
    except Exception as error:  # a broken archive raises whatever it likes
        raise InvalidInput(f"{path} is not a sound .npz file: {error}") from error
    return arrays


def read_npy(path: Path) -> Array:
    """The array of an .npy file."""
    try:
        with path.open("rb") as file:
            return _read(file, os.fstat(file.fileno()).st_size, str(path))
    except OSError as error:
        raise DataUnavailable(f"{path} cannot be read: {error.strerror or error}") from error


def _is_wanted(member: ZipInfo, wanted: set[str] | None) -> bool:
    return wanted is None or member.filename.removesuffix(".npy") in wanted


def map_npy(path: Path) -> Array:
    """The array of an .npy file of any size, mapped: only what is looked at is read."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            shape, fortran, dtype, count = _header(file, size, size, str(path))
            start = file.tell()
    except OSError as error:
        raise DataUnavailable(f"{path} cannot be read: {error.strerror or error}") from error
    if start + count * dtype.itemsize > size:
        raise InvalidInput(f"{path} ends after {size - start} of {count * dtype.itemsize} bytes; fetch the file again")
    if count == 0:
        return np.empty(shape, dtype)
    return np.memmap(path, dtype, mode="r", offset=start, shape=shape, order="F" if fortran else "C")


def _header(file: IO[bytes], size: int, most: int, what: str) -> tuple[tuple[int, ...], bool, Any, int]:
    """Shape, whether it is in Fortran's order, type and number of entries, none of which exceeds the file."""
    try:
        version = np.lib.format.read_magic(file)
        if version == (1, 0):
            shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
        else:
            shape, fortran, dtype = np.lib.format.read_array_header_2_0(file)
        shape = tuple(int(side) for side in shape)
    except Exception as error:  # numpy parses a header as Python source, and a broken one raises whatever it likes
        raise InvalidInput(f"{what} is not a numpy array: {error}") from error
    if dtype.kind not in _KINDS:
        raise InvalidInput(f"{what} must hold numbers or booleans, got dtype {dtype}; objects and text are not read")
    count = 1
    for side in shape:
        count *= side
    if any(side < 0 for side in shape) or count * dtype.itemsize > min(size, most):
        raise InvalidInput(
            f"{what} claims shape {shape} of {dtype}, but the file holds only {size} bytes; it is refused"
        )
    return shape, fortran, dtype, count


def _read(file: IO[bytes], size: int, what: str) -> Array:
    shape, fortran, dtype, count = _header(file, size, MOST_BYTES, what)
    raw = file.read(count * dtype.itemsize)
    if len(raw) != count * dtype.itemsize:
        raise InvalidInput(f"{what} ends after {len(raw)} of {count * dtype.itemsize} bytes; fetch the file again")
    try:
        array = np.frombuffer(raw, dtype=dtype).reshape(shape[::-1] if fortran else shape)
    except ValueError as error:  # an empty array of impossible sides
        raise InvalidInput(f"{what} claims shape {shape}, which no array has: {error}") from error
    return array.T if fortran else array
