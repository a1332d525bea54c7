"""What is left of memory is the smallest of what machine, container and process allow."""

import os
import resource
from pathlib import Path

import pytest

from bangs.utils import memory
from bangs.utils.memory import available_memory, gib


def test_some_memory_is_free_and_no_more_than_the_machine_has() -> None:
    assert 0 < available_memory() <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def test_a_container_and_a_limit_of_the_process_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, content in (("memory.max", "5000"), ("memory.current", "4000"), ("memory.stat", "inactive_file 500\n")):
        (tmp_path / name).write_text(content)
    monkeypatch.setattr(memory, "_CGROUP", tmp_path)
    assert available_memory() == 1500
    (tmp_path / "memory.max").write_text("max")
    assert available_memory() > 1500
    monkeypatch.setattr(resource, "getrlimit", lambda _: (0, 0))
    assert available_memory() == 0


def test_sizes_are_shown_in_gib() -> None:
    assert gib(3 * 2**29) == "1.5 GiB"
