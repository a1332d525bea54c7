"""The environment of a run: versions, commit, device and threads."""

import functools
import os
import platform
from importlib import metadata
from typing import Any

import torch

from bangs.utils.git_version import describe


def environment(device: torch.device | str = "cpu") -> dict[str, Any]:
    """Versions, commit, device and threads; without the names of the user, the machine or a path."""
    device = torch.device(device)
    named = device.type == "cuda" and torch.cuda.is_available()
    return {
        "python": platform.python_version(),
        **{package: _version(package) for package in ("torch", "torch-geometric", "numpy", "bangs")},
        "commit": _commit(),
        "device": torch.cuda.get_device_name(device) if named else device.type,
        "cuda": torch.version.cuda,
        "threads": torch.get_num_threads(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "platform": f"{platform.system()} {platform.machine()}",
    }


@functools.cache
def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "unknown"


@functools.cache
def _commit() -> str | None:
    """The commit of the git checkout, with -dirty if files changed; None outside of a checkout."""
    if commit := os.environ.get("BANGS_COMMIT"):  # for a copy without its repository, such as on a cluster
        return commit
    return describe("--abbrev=40", "--exclude=*")
