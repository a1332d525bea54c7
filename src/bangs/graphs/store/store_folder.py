"""Recognise the folder of a store, and replace it by a new one; only files of the store are removed."""

import contextlib
import ctypes
import fcntl
import os
import re
import shutil
from collections.abc import Collection
from pathlib import Path

from bangs.errors import BangsError, InvalidInput
from bangs.graphs.store.manifest import FILE, read_manifest, sealed_arrays
from bangs.utils.files import explain_write_errors, sync_folder, temporary_beside

SCRATCH = "scratch"
_STORE_FILE = re.compile(r"[a-z]+(\.[a-z]+)?\.bin|manifest\.json|\.manifest\.json\.[0-9a-f]{16}\.tmp")
_SCRATCH_FILE = re.compile(r"[a-z]+\.\d+\.(keys|values)")
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


def is_store(path: Path | str) -> bool:
    """Whether a path is a folder with a manifest, valid or not.

    If a conversion was killed while it replaced a store, the complete store beside the path is first moved there.
    """
    path = Path(path)
    try:
        return (path / FILE).is_file() or (not os.path.lexists(path) and recover(path, clean=False))
    except (OSError, ValueError):  # a name too long to be one, or with a null byte
        return False


def lock(folder: Path) -> int | None:
    """A file descriptor that locks the folder until it is closed; None if another process has the lock."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # held by a conversion that runs, or a disk without locks
        os.close(descriptor)
        return None
    return descriptor


def check_replaceable(out: Path, *, overwrite: bool) -> list[str]:
    """The files of the store at `out` that will be removed; raises if anything at `out` is not part of a store."""
    if not os.path.lexists(out):
        return []
    if not overwrite:
        raise InvalidInput(
            f"'{out}' exists already; name another folder, or add --overwrite if it is a store to be replaced"
        )
    only = f"--overwrite replaces a store and nothing else, and '{out}'"
    if out.is_symlink() or not out.is_dir():
        reason = "is a symbolic link" if out.is_symlink() else "is not a folder"
        raise InvalidInput(f"{only} {reason}; name another folder")
    with explain_write_errors(out):
        present = sorted(entry.name for entry in os.scandir(out))
    if not present:
        return []
    try:
        written = {FILE, *(f"{name}.bin" for name in sealed_arrays(out))}
    except (BangsError, FileNotFoundError) as error:
        raise InvalidInput(f"{only} is not a store that bangs wrote ({error}); name another folder") from error
    foreign = [name for name in present if name not in written or not _is_regular(out / name)]
    if foreign:
        raise InvalidInput(
            f"{only} also holds {', '.join(map(repr, foreign[:5]))}{' …' * (len(foreign) > 5)}, which is not part of "
            "the store; move it elsewhere, or name another folder"
        )
    return present


def move_into_place(new: Path, out: Path) -> None:
    """Rename the folder `new` to `out`, then remove the store that was at `out`.

    If the system supports it, the two folders are exchanged in one step. Otherwise the old one is renamed first, and
    `recover` completes the exchange after a kill between the two renames.
    """
    old_files = check_replaceable(out, overwrite=True)
    with explain_write_errors(out):
        if not old_files:  # nothing there, or an empty folder, which a rename replaces
            os.rename(new, out)
        elif _exchange(new, out):
            _remove(new, old_files)
        else:
            moved = temporary_beside(out)
            descriptor = lock(out)
            os.rename(out, moved)
            os.rename(new, out)
            _remove(moved, old_files)
            if descriptor is not None:
                os.close(descriptor)
        sync_folder(out.parent)


def recover(out: Path, *, clean: bool) -> bool:
    """Finish a killed conversion to `out`; returns whether a complete store was moved to `out`.

    If nothing is at `out`, the newest complete store among the temporary folders goes there. With `clean`, the other
    temporary folders are removed. Folders of running conversions, and folders with other files, are left alone.
    """
    pattern = re.compile(re.escape(f".{out.name}.") + r"[0-9a-f]{16}\.tmp")
    placed = False
    try:
        leftovers = [entry for entry in os.scandir(out.parent) if pattern.fullmatch(entry.name)]
    except OSError:
        return False
    folders = [Path(entry.path) for entry in leftovers if entry.is_dir(follow_symlinks=False)]
    for folder in sorted(folders, key=_written_at, reverse=True):
        with contextlib.suppress(OSError):
            descriptor = lock(folder)
            if descriptor is None:
                continue
            try:
                if not os.path.lexists(out) and _is_complete(folder):
                    os.rename(folder, out)
                    placed = True
                elif clean and _has_only_store_files(folder):
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(descriptor)
    return placed


def _written_at(folder: Path) -> float:
    try:
        return (folder / FILE).stat().st_mtime_ns
    except OSError:
        return -1


def _is_complete(folder: Path) -> bool:
    try:
        read_manifest(folder)
        return bool(sealed_arrays(folder))
    except (BangsError, OSError):
        return False


def _has_only_store_files(folder: Path) -> bool:
    """Whether a folder holds only files that a conversion writes."""
    scratch = folder / SCRATCH
    within = os.listdir(scratch) if scratch.is_dir() and not scratch.is_symlink() else []
    files = [name for name in os.listdir(folder) if name != SCRATCH or not scratch.is_dir()]
    return all(_STORE_FILE.fullmatch(name) and _is_regular(folder / name) for name in files) and all(
        _SCRATCH_FILE.fullmatch(name) and _is_regular(scratch / name) for name in within
    )


def _remove(folder: Path, names: Collection[str]) -> None:
    """Remove these files, then the folder; it stays if it holds anything else."""
    with contextlib.suppress(OSError):
        for name in names:
            os.unlink(folder / name)
        os.rmdir(folder)


def _is_regular(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _exchange(first: Path, second: Path) -> bool:
    """Swap two folders in one step, by Linux's renameat2; False where it is not supported."""
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    paths = os.fsencode(first), os.fsencode(second)
    return call is not None and call(_AT_FDCWD, paths[0], _AT_FDCWD, paths[1], _RENAME_EXCHANGE) == 0
