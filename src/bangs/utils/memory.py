"""Memory that is left: how many bytes this process may still take."""

import os
import resource
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")


def available_memory() -> int:
    """The smallest of what the machine, the control group and the limit of the process still allow, in bytes."""
    return max(min(_machine(), _control_group(), _own_limit()), 0)


def ran_out(error: BaseException) -> bool:
    """Whether an error says that memory ran out; pyarrow says so of a thread that could not start in its own way."""
    return isinstance(error, MemoryError) or "Failed to launch worker thread" in str(error)


def gib(size: int) -> str:
    """A size in words: `1.5 GiB`."""
    return f"{size / 2**30:,.1f} GiB"


def _machine() -> int:
    for line in _lines(Path("/proc/meminfo")):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _control_group() -> int:
    """What is left of the limit of the container, by version 2 or 1 of Linux's control groups."""
    for folder, most, used in (
        (_CGROUP, "memory.max", "memory.current"),
        (_CGROUP / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
    ):
        words = [next(iter(_lines(folder / name)), "max") for name in (most, used)]
        if all(word.isdecimal() for word in words):
            cache = (line.split() for line in _lines(folder / "memory.stat"))
            freed = next((int(size) for name, size in cache if name in ("inactive_file", "total_inactive_file")), 0)
            return int(words[0]) - int(words[1]) + freed
    return 2**62


def _own_limit() -> int:
    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    pages = next(iter(_lines(Path("/proc/self/statm"))), "0").split()[0]
    return 2**62 if most == resource.RLIM_INFINITY else most - int(pages) * os.sysconf("SC_PAGE_SIZE")


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
