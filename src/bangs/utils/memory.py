"""How many bytes of memory this process may still allocate."""

import os
import resource
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")


def available_memory() -> int:
    """Bytes that the machine, the control group and the limit of the process all still allow."""
    return max(min(_machine(), _control_group(), _process_limit()), 0)


def ran_out(error: BaseException) -> bool:
    """Whether an error says that memory ran out; pyarrow then says that it could not start a thread."""
    return isinstance(error, MemoryError) or "Failed to launch worker thread" in str(error)


def gib(size: int) -> str:
    """A size as text: `1.5 GiB`."""
    return f"{size / 2**30:,.1f} GiB"


def _machine() -> int:
    for line in _lines(Path("/proc/meminfo")):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _control_group() -> int:
    """Bytes left below the limit of the container, by version 2 or 1 of Linux's control groups."""
    for folder, limit, used in (
        (_CGROUP, "memory.max", "memory.current"),
        (_CGROUP / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
    ):
        numbers = [next(iter(_lines(folder / name)), "max") for name in (limit, used)]
        if all(number.isdecimal() for number in numbers):
            cache = (line.split() for line in _lines(folder / "memory.stat"))
            reclaimable = next(
                (int(size) for name, size in cache if name in ("inactive_file", "total_inactive_file")), 0
            )
            return int(numbers[0]) - int(numbers[1]) + reclaimable
    return 2**62


def _process_limit() -> int:
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    pages = next(iter(_lines(Path("/proc/self/statm"))), "0").split()[0]
    return 2**62 if limit == resource.RLIM_INFINITY else limit - int(pages) * os.sysconf("SC_PAGE_SIZE")


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
