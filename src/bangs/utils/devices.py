"""Devices: from a name such as "auto" or "cuda:1" to a torch device."""

import torch

from bangs.errors import InvalidInput, UnknownName
from bangs.utils.threads import guard_forks


def choose_device(name: str) -> torch.device:
    """The device of that name; `auto` is a GPU if there is one.

    A GPU with a number becomes the current one of the process, on which our kernels and captured graphs run. The caller
    is about to compute, so forks are guarded from here on.
    """
    guard_forks()
    has_gpu = torch.cuda.is_available()
    if isinstance(name, str) and name == "auto":  # NA compares oddly
        return torch.device("cuda" if has_gpu else "cpu")
    kind, _, number = str(name).partition(":")
    if kind not in ("cpu", "cuda") or str(name).endswith(":") or (number and not number.isdecimal()):
        raise UnknownName("device", str(name), ("auto", "cpu", "cuda"))
    if kind == "cuda" and not has_gpu:
        raise InvalidInput(f"device '{name}' asks for a GPU, but torch sees none here; take 'cpu' or 'auto'")
    if kind == "cuda" and number and int(number) >= torch.cuda.device_count():
        raise InvalidInput(f"device '{name}' is not here; torch sees {torch.cuda.device_count()}, counted from 0")
    if kind == "cuda" and number:
        torch.cuda.set_device(int(number))
    return torch.device(name)
