"""The modes of torch that training and inference need, whatever the caller has set."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch


@contextmanager
def default_torch_modes() -> Iterator[None]:
    """Inside, gradients are recorded, nothing is autocast, and new tensors are float32 on the CPU.

    It undoes `torch.no_grad`, `torch.inference_mode`, `torch.autocast`, `torch.set_default_dtype` and
    `torch.set_default_device`, and restores them at the end. Also a decorator.
    """
    with ExitStack() as modes:
        modes.enter_context(torch.inference_mode(False))
        modes.enter_context(torch.enable_grad())
        for kind in ("cpu", "cuda"):
            if torch.is_autocast_enabled(kind):
                modes.enter_context(torch.autocast(kind, enabled=False))
        if torch.get_default_device().type != "cpu":  # a device context slows down every call of torch
            modes.enter_context(torch.device("cpu"))
        dtype = torch.get_default_dtype()
        modes.callback(torch.set_default_dtype, dtype)
        torch.set_default_dtype(torch.float32)
        yield
