"""Write a store in a temporary folder that is renamed when it is complete."""

import os
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from bangs.errors import InvalidInput
from bangs.graphs.store.manifest import FILE, Array, Manifest
from bangs.graphs.store.store_folder import SCRATCH, check_replaceable, lock, move_into_place, recover
from bangs.utils.files import explain_write_errors, temporary_beside, write_atomic


class ArrayFile:
    """The file of an array; rows are appended, and `close` returns its shape and checksum."""

    def __init__(self, path: Path, dtype: str, sides: tuple[int, ...]):
        self.path, self.dtype, self.sides = path, dtype, sides
        self.rows = 0
        self.checksum = sha256()  # of what was written so far
        self._file = path.open("xb")

    def append(self, rows: npt.NDArray[Any]) -> None:
        """Append rows [n, *sides]."""
        rows = np.ascontiguousarray(rows, dtype=np.dtype(self.dtype).newbyteorder("<"))
        body = rows.data.cast("B") if rows.size else b""
        with explain_write_errors(self.path):
            self._file.write(body)
        self.checksum.update(body)
        self.rows += len(rows)

    def close(self) -> Array:
        with explain_write_errors(self.path):
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
        return Array(self.dtype, (self.rows, *self.sides), self.checksum.hexdigest())


class Writer:
    """A store that is being written. Leaving the block without `finish` removes what was written."""

    def __init__(self, out: Path, *, overwrite: bool = False):
        self.out = out
        if recover(out, clean=True) and not overwrite:
            raise InvalidInput(
                f"'{out}' is a complete store, which an interrupted conversion left unfinished; it is now in place. "
                "Use it, or add --overwrite to convert again"
            )
        check_replaceable(out, overwrite=overwrite)
        with explain_write_errors(out):
            out.parent.mkdir(parents=True, exist_ok=True)
            self.folder = temporary_beside(out)
            self.folder.mkdir()
        self._lock = lock(self.folder)  # held while the conversion runs, and free once it is killed
        self._placed = False
        self._files: dict[str, ArrayFile] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if not self._placed:
            shutil.rmtree(self.folder, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)

    def append(self, name: str, dtype: str, rows: npt.NDArray[Any]) -> None:
        """Append rows to an array of the store; the first call creates the array."""
        if name not in self._files:
            self._files[name] = ArrayFile(self.folder / f"{name}.bin", dtype, rows.shape[1:])
        self._files[name].append(rows)

    def drop_out_if_same(self) -> bool:
        """Remove the arrays `out.…` if they equal `in.…`, the edges by target; returns whether they did."""
        out = [name for name in self._files if name.startswith("out.")]
        checksums = {name: file.checksum.digest() for name, file in self._files.items()}
        if any(checksums[name] != checksums[f"in{name.removeprefix('out')}"] for name in out):
            return False
        for name in out:
            file = self._files.pop(name)
            file.close()
            file.path.unlink()
        return True

    def scratch(self, name: str) -> Path:
        """The path of a temporary file."""
        folder = self.folder / SCRATCH
        folder.mkdir(exist_ok=True)
        return folder / name

    def finish(self, *, nodes: int, edges: int, features: int, classes: tuple[str, ...], **facts: Any) -> Manifest:
        """Close every array, write the manifest and rename the folder: a reader sees all of the store or none."""
        arrays = {name: file.close() for name, file in self._files.items()}
        if "split" in arrays:  # it is written as one column, one split after the other
            split = arrays["split"]
            arrays["split"] = Array(split.dtype, (split.shape[0] // nodes, nodes), split.sha256)
        manifest = Manifest(nodes, edges, features, classes, arrays, **facts)
        shutil.rmtree(self.folder / SCRATCH, ignore_errors=True)
        write_atomic(self.folder / FILE, manifest.text())
        move_into_place(self.folder, self.out)
        self._placed = True
        return manifest
