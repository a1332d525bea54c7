"""Rendezvous of the ranks of one torchrun attempt, in a store that still holds the keys of earlier attempts."""

import time
from datetime import timedelta
from uuid import uuid4

from torch.distributed.distributed_c10d import Store

_POLL_SECONDS = 0.05


def agree_on_attempt(store: Store, rank: int, size: int, limit: timedelta) -> int:
    """The number of this attempt, from 1, once all ranks have joined; raises `TimeoutError` if they do not.

    torchrun's store outlives the ranks it restarts and keeps the addresses of dead ranks, and every machine counts
    restarts for itself (https://github.com/pytorch/pytorch/issues/135712). So rank 0 counts attempts in the store.
    Every other rank writes a random token under the attempt it finds there, and has joined when rank 0 copies the
    token back. An earlier attempt never answers; the rank then writes its token under the next one.
    """
    end = time.monotonic() + limit.total_seconds()
    if rank > 0:
        return _handshake(store, rank, end)
    attempt = store.add("attempts", 1)
    for other in range(1, size):
        while not store.check([f"{attempt}/token/{other}"]):
            _wait(end, f"rank {other} has not joined")
        store.set(f"{attempt}/answer/{other}", store.get(f"{attempt}/token/{other}").decode())
    return attempt


def _handshake(store: Store, rank: int, end: float) -> int:
    token, written = uuid4().hex, 0
    while True:
        attempt = store.add("attempts", 0)
        if attempt > written:
            store.set(f"{attempt}/token/{rank}", token)
            written = attempt
        answer = f"{attempt}/answer/{rank}"
        if attempt and store.check([answer]) and store.get(answer).decode() == token:
            return attempt
        _wait(end, "rank 0 has not joined")


def _wait(end: float, what: str) -> None:
    if time.monotonic() >= end:
        raise TimeoutError(what)
    time.sleep(_POLL_SECONDS)
