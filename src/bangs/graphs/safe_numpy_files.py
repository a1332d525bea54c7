"""Read numpy files safely: regular files only, and sizes are checked before anything is unpacked."""

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from math import prod
from pathlib import Path
from typing import IO, Any
from zipfile import ZipFile, ZipInfo

import numpy as np
import numpy.typing as npt

from bangs.errors import BangsError, DataUnavailable, InvalidInput, OutOfMemory
from bangs.utils.files import open_to_read
from bangs.utils.memory import available_memory, gib

Array = npt.NDArray[Any]

MAX_BYTES = 8 * 2**30  # of one file's arrays together, unpacked
_BLOCK = 2**24
_KINDS = "biuf"


@dataclass(frozen=True)
class Header:
    """The shape and type of an array, known before its numbers are read."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    fortran: bool

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * self.dtype.itemsize


def npz_headers(path: Path, names: Collection[str]) -> dict[str, Header]:
    """The headers of those of the named arrays that an .npz file has, by name."""
    headers = {}
    with _archive(path, names) as (archive, members):
        for name, member in members.items():
            with archive.open(member) as content:
                headers[name] = _header(content, member.file_size, f"array '{name}' of {path}")
    return headers


def read_npz(path: Path, names: Collection[str]) -> dict[str, Array]:
    """Those of the named arrays that an .npz file has, by name."""
    with _archive(path, names) as (archive, members):
        check_room(sum(member.file_size for member in members.values()), str(path))
        arrays = {}
        for name, member in members.items():
            with archive.open(member) as content:
                arrays[name] = _read(content, member.file_size, f"array '{name}' of {path}")
        return arrays


def read_npy(path: Path) -> Array:
    """The array of an .npy file."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        check_room(size, str(path))
        return _read(file, size, str(path))


def map_npy(path: Path) -> Array:
    """The array of an .npy file of any size, mapped: only what is used is read."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        header = _header(file, size, str(path))
        start = file.tell()
        if start + header.nbytes > size:
            raise InvalidInput(f"{path} ends after {size - start} of {header.nbytes} bytes; fetch the file again")
        if header.nbytes == 0:
            return np.empty(header.shape, header.dtype)
        order: Any = "F" if header.fortran else "C"
        return np.memmap(file, header.dtype, mode="r", offset=start, shape=header.shape, order=order)


@contextmanager
def open_regular(path: Path) -> Iterator[BufferedReader]:
    """A regular file, or a link to one, open for reading; a pipe or device is refused before it can hang."""
    try:
        with open_to_read(path, follow=True) as file:
            yield file
    except BangsError:
        raise
    except OSError as error:
        raise DataUnavailable(f"{path} cannot be read: {error.strerror or error}") from error


def check_room(size: int, what: str) -> None:
    """Raises if arrays of this size in bytes, and copies of them, do not fit into the free memory."""
    if size > MAX_BYTES:
        raise InvalidInput(f"{what} unpacks to {gib(size)}, more than the {gib(MAX_BYTES)} allowed; it is refused")
    free = available_memory()
    if 2 * size > free:
        raise OutOfMemory(
            f"{what} unpacks to {gib(size)} and needs twice that; {gib(free)} of memory are free. Free some memory, or "
            "save the arrays as .npy files in a folder and run `bangs convert`"
        )


@contextmanager
def _archive(path: Path, names: Collection[str]) -> Iterator[tuple[ZipFile, dict[str, ZipInfo]]]:
    """An open .npz file, and its members with the named arrays, by name."""
    with open_regular(path) as file:
        try:
            with ZipFile(file) as archive:
                members = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
                yield archive, {name: member for name, member in members.items() if name in names}
        except (BangsError, MemoryError):
            raise
        except Exception as error:  # a broken archive may raise any error
            raise InvalidInput(f"{path} is not a valid .npz file: {error}") from error


def _header(file: IO[bytes], size: int, what: str) -> Header:
    """The header of an array that must fit into a file of `size` bytes."""
    try:
        version = np.lib.format.read_magic(file)
        if version == (1, 0):
            shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
        else:
            shape, fortran, dtype = np.lib.format.read_array_header_2_0(file)
        header = Header(tuple(int(side) for side in shape), dtype, fortran)
    except Exception as error:  # numpy parses a header as Python source, and a broken one may raise any error
        raise InvalidInput(f"{what} is not a numpy array: {error}") from error
    if dtype.kind not in _KINDS:
        raise InvalidInput(f"{what} must hold numbers or booleans, got dtype {dtype}; objects and text are not read")
    if any(side < 0 for side in header.shape) or header.nbytes > size:
        raise InvalidInput(
            f"{what} claims shape {header.shape} of {dtype}, but the file holds only {size} bytes; it is refused"
        )
    return header


def _read(file: IO[bytes], size: int, what: str) -> Array:
    header = _header(file, size, what)
    raw = np.empty(header.nbytes, np.uint8)  # filled in place, since a copy would double the memory
    done = 0
    while done < len(raw) and (block := file.read(min(_BLOCK, len(raw) - done))):
        raw[done : done + len(block)] = np.frombuffer(block, np.uint8)
        done += len(block)
    if done < len(raw):
        raise InvalidInput(f"{what} ends after {done} of {len(raw)} bytes; fetch the file again")
    try:
        return raw.view(header.dtype).reshape(header.shape, order="F" if header.fortran else "C")
    except ValueError as error:  # an empty array of an impossible shape
        raise InvalidInput(f"{what} claims shape {header.shape}, which no array has: {error}") from error
