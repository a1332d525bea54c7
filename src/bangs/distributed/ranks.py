"""The collective operations of the processes that share one run under torchrun; without torchrun they do nothing."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from bangs.distributed.watchdog import watchdog
from bangs.errors import BangsError
from bangs.utils import signals

T = TypeVar("T")

JOIN_TIMEOUT = timedelta(minutes=10)  # for ranks that are still starting
COLLECTIVE_TIMEOUT = timedelta(minutes=30)  # for a rank that still computes while the others wait


class RankLost(BangsError):
    """Another rank of this run has died or does not answer; torchrun decides whether to restart."""

    def __init__(self, why: object):
        reason = re.sub(r"^\[\S*\] ", "", str(why)).partition(". ")[0]  # gloo begins with a line of its source code
        super().__init__(
            f"the ranks of this run have lost each other ({reason[:200]}); torchrun restarts them while "
            "--max-restarts allows, afterwards continue with --resume"
        )


_attempt = 1  # how often all ranks have been started, this time included


def world_size() -> int:
    """The number of processes that share the run."""
    return dist.get_world_size() if _initialized() else 1


def rank() -> int:
    """The number of this process, from 0."""
    return dist.get_rank() if _initialized() else 0


def is_first() -> bool:
    """Whether this process is rank 0, the one that prints and writes files."""
    return rank() == 0


def launched() -> int:
    """The number of processes torchrun has started for this run; 1 without torchrun."""
    return int(os.environ.get("WORLD_SIZE", "1")) if "MASTER_ADDR" in os.environ else 1


def restarted() -> bool:
    """Whether torchrun has restarted this run after losing a rank; valid inside `process_group`."""
    return launched() > 1 and (_attempt > 1 or int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0)


@contextmanager
def process_group(device: torch.device) -> Iterator[None]:
    """Inside, the processes that torchrun started for this run form one process group.

    Each process takes the GPU of its local rank. The backend is nccl if every process has a GPU to itself, else gloo.
    A process that receives a stop signal, or whose torchrun has died, ends within `watchdog.GRACE`, even while it
    waits for others. Without torchrun this does nothing.
    """
    if launched() == 1 or _initialized():
        yield
        return
    with watchdog():
        _join(backend(device))
        try:
            yield
        except BaseException:
            if dist.get_backend() == "gloo":  # nccl would wait for ranks that may be gone
                dist.destroy_process_group()  # gloo's threads would abort the process before it prints the error
            raise
        dist.destroy_process_group()


def backend(device: torch.device) -> str:
    """The backend for processes on such a device, nccl or gloo; also selects the GPU of the local rank."""
    if device.type != "cuda":
        return "gloo"
    cards, local = torch.cuda.device_count(), int(os.environ.get("LOCAL_RANK", "0"))
    torch.cuda.set_device(local % cards)
    return "nccl" if int(os.environ.get("LOCAL_WORLD_SIZE", "1")) <= cards else "gloo"


def shard(count: int) -> range:
    """The items of 0 … count − 1 that belong to this process."""
    return range(rank(), count, world_size())


def all_reduce(x: Tensor) -> Tensor:
    """The sum of x over all processes; x itself if there is only one."""
    if world_size() == 1:
        return x
    message = _message(x)
    with _collective():
        dist.all_reduce(message)
    return message.to(x.device)


def all_gather(x: Tensor) -> Tensor:
    """The rows of x [n, …] of all processes, in the order of their ranks; n may differ."""
    if world_size() == 1:
        return x
    counts = torch.zeros(world_size(), dtype=torch.long)
    counts[rank()] = len(x)
    counts = all_reduce(counts)
    rows = x.new_zeros(int(counts.sum()), *x.shape[1:])
    start = int(counts[: rank()].sum())
    rows[start : start + len(x)] = x
    return all_reduce(rows)


def sum_gradients(weights: Iterable[Tensor]) -> None:
    """Replace every weight's gradient by its sum over all processes, in one message; no gradient counts as zero."""
    if world_size() == 1:
        return
    weights = list(weights)
    gradients = [torch.zeros_like(weight) if weight.grad is None else weight.grad for weight in weights]
    total = all_reduce(torch.cat([gradient.flatten() for gradient in gradients]))
    for weight, gradient in zip(weights, total.split([weight.numel() for weight in weights]), strict=True):
        weight.grad = gradient.view_as(weight)


def broadcast(x: Tensor) -> Tensor:
    """The x of rank 0, in all processes."""
    if world_size() == 1:
        return x
    message = _message(x.to(torch.uint8) if x.dtype == torch.bool else x)
    with _collective():
        dist.broadcast(message, 0)
    return message.to(x.device, x.dtype)


def broadcast_weights(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The named tensors of rank 0, in all processes."""
    return {name: broadcast(value) for name, value in weights.items()}


def broadcast_object(value: T) -> T:
    """The value of rank 0, in all processes; anything that can be pickled."""
    if world_size() == 1:
        return value
    values = [value]
    with _collective():
        dist.broadcast_object_list(values, 0)
    return values[0]


def _initialized() -> bool:
    return dist.is_available() and dist.is_initialized()


def _join(backend: str) -> None:
    """Form the group of the processes that are alive now; torchrun's store may still hold keys of dead ones."""
    global _attempt
    # imported here, since some builds of torch lack them
    from torch.distributed.distributed_c10d import PrefixStore
    from torch.distributed.rendezvous import rendezvous

    from bangs.distributed.rendezvous import agree_on_attempt

    # nccl's report of a lost rank stays in torchrun's store, and would stop the ranks of every later start
    os.environ.setdefault("TORCH_NCCL_DUMP_ON_TIMEOUT", "0")
    with _collective():
        store, rank, size = next(rendezvous("env://", timeout=JOIN_TIMEOUT))
        _attempt = agree_on_attempt(PrefixStore("bangs", store), rank, size, JOIN_TIMEOUT)
        fresh = PrefixStore(f"bangs/{_attempt}", store)
        dist.init_process_group(backend, store=fresh, rank=rank, world_size=size, timeout=COLLECTIVE_TIMEOUT)


@contextmanager
def _collective() -> Iterator[None]:
    """Turn the failure of a collective operation into `RankLost`; a stop signal takes precedence."""
    try:
        yield
    except (RuntimeError, TimeoutError) as error:
        signals.check()
        raise RankLost(error) from error


def _message(x: Tensor) -> Tensor:
    """The tensor on the device that the backend sends from."""
    return (x.cuda() if dist.get_backend() == "nccl" else x.cpu()).contiguous()
