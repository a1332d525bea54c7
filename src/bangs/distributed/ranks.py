"""Ranks: the processes that share one run under torchrun; in a process alone, nothing here does anything."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from bangs.distributed.watchdog import watchdog
from bangs.errors import BangsError
from bangs.utils import signals

T = TypeVar("T")

JOINING = timedelta(minutes=10)  # for ranks that are still starting
PATIENCE = timedelta(minutes=30)  # for a rank that is busy with what the others wait for


class RankLost(BangsError):
    """Another rank of this run is gone or does not answer; torchrun decides what comes next."""

    def __init__(self, why: object):
        reason = re.sub(r"^\[\S*\] ", "", str(why)).partition(". ")[0]  # gloo begins with a place in its source
        super().__init__(
            f"the ranks of this run have lost each other ({reason[:200]}); torchrun starts them again while "
            "--max-restarts allows, later go on with --resume"
        )


@dataclass
class Traffic:
    """What this process handed to the others, for whoever measures."""

    calls: int = 0
    bytes: int = 0


traffic = Traffic()
_attempt = 1  # the number of this start of all ranks


def size() -> int:
    """How many processes share the run."""
    return dist.get_world_size() if _joined() else 1


def rank() -> int:
    """The number of this one, from 0."""
    return dist.get_rank() if _joined() else 0


def first() -> bool:
    """Whether this process is the one that speaks and writes."""
    return rank() == 0


def started() -> int:
    """How many processes torchrun has started for this run; 1 without it."""
    return int(os.environ.get("WORLD_SIZE", "1")) if "MASTER_ADDR" in os.environ else 1


def restarted() -> bool:
    """Whether torchrun has started this run before, and a rank was lost; asked inside `joined`."""
    return started() > 1 and (_attempt > 1 or int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0)


@contextmanager
def joined(device: torch.device) -> Iterator[None]:
    """Inside, the processes that torchrun started for this run are one group.

    Each takes the GPU of its place on its machine. The transport is nccl where every process has a GPU to itself, else
    gloo. A process that is told to stop, or whose torchrun is gone, ends within `watchdog.GRACE`, even while it
    waits for others. Without torchrun this does nothing.
    """
    if started() == 1 or _joined():
        yield
        return
    with watchdog():
        _join(transport(device))
        yield
        dist.destroy_process_group()  # not after an error: nccl would wait for ranks that may be gone


def transport(device: torch.device) -> str:
    """What carries the messages of processes on such a device, each on the GPU of its place, which becomes its own."""
    if device.type != "cuda":
        return "gloo"
    cards, local = torch.cuda.device_count(), int(os.environ.get("LOCAL_RANK", "0"))
    torch.cuda.set_device(local % cards)
    return "nccl" if int(os.environ.get("LOCAL_WORLD_SIZE", "1")) <= cards else "gloo"


def own(count: int) -> range:
    """Which of so many pieces of work are this process's."""
    return range(rank(), count, size())


def summed(x: Tensor) -> Tensor:
    """The sum of every process's x, the same in all; x itself where there is one."""
    if size() == 1:
        return x
    carried = _carried(x)
    with _others():
        dist.all_reduce(carried)
    return carried.to(x.device)


def stacked(x: Tensor) -> Tensor:
    """The rows of every process's x [n, …], those of the first rank first; n may differ."""
    if size() == 1:
        return x
    counts = torch.zeros(size(), dtype=torch.long)
    counts[rank()] = len(x)
    counts = summed(counts)
    whole = x.new_zeros(int(counts.sum()), *x.shape[1:])
    start = int(counts[: rank()].sum())
    whole[start : start + len(x)] = x
    return summed(whole)


def sum_gradients(weights: Iterable[Tensor]) -> None:
    """Add up the gradients of all processes, in one message; a weight without one counts as zero."""
    if size() == 1:
        return
    weights = list(weights)
    parts = [torch.zeros_like(own) if own.grad is None else own.grad for own in weights]
    whole = summed(torch.cat([part.flatten() for part in parts]))
    for own_, part in zip(weights, whole.split([weight.numel() for weight in weights]), strict=True):
        own_.grad = part.view_as(own_)


def agreed(x: Tensor) -> Tensor:
    """The first process's x, in all of them."""
    if size() == 1:
        return x
    carried = _carried(x.to(torch.uint8) if x.dtype == torch.bool else x)
    with _others():
        dist.broadcast(carried, 0)
    return carried.to(x.device, x.dtype)


def all_agreed(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The first process's tensors, in all of them."""
    return {name: agreed(value) for name, value in weights.items()}


def told(fact: T) -> T:
    """What the first process says, in all of them; anything that can be pickled."""
    if size() == 1:
        return fact
    box: list[Any] = [fact]
    with _others():
        dist.broadcast_object_list(box, 0)
    answer: T = box[0]
    return answer


def _joined() -> bool:
    return dist.is_available() and dist.is_initialized()


def _join(transport: str) -> None:
    """Make the group of the processes that are alive now, whatever dead ones left in torchrun's store."""
    global _attempt
    # here, since some builds of torch have none of it
    from torch.distributed.distributed_c10d import PrefixStore
    from torch.distributed.rendezvous import rendezvous

    from bangs.distributed.rendezvous import agree_on_attempt

    # nccl's report of a lost rank stays in torchrun's store, and the ranks of the next start would heed it for ever
    os.environ.setdefault("TORCH_NCCL_DUMP_ON_TIMEOUT", "0")
    with _others():
        store, rank, size = next(rendezvous("env://", timeout=JOINING))
        _attempt = agree_on_attempt(PrefixStore("bangs", store), rank, size, JOINING)
        fresh = PrefixStore(f"bangs/{_attempt}", store)
        dist.init_process_group(transport, store=fresh, rank=rank, world_size=size, timeout=PATIENCE)


@contextmanager
def _others() -> Iterator[None]:
    """Around what needs the other processes: their loss is one sentence, and a signal to stop comes first."""
    try:
        yield
    except (RuntimeError, TimeoutError) as error:
        signals.check()
        raise RankLost(error) from error


def _carried(x: Tensor) -> Tensor:
    """The tensor where the group's transport takes it, and counted."""
    traffic.calls += 1
    traffic.bytes += x.numel() * x.element_size()
    return (x.cuda() if dist.get_backend() == "nccl" else x.cpu()).contiguous()
