"""Meeting: the ranks of one attempt find each other in a store that remembers the attempts before."""

import time
from datetime import timedelta
from uuid import uuid4

from torch.distributed.distributed_c10d import Store

_PAUSE = 0.05  # seconds between two looks


def agree_on_attempt(store: Store, rank: int, size: int, limit: timedelta) -> int:
    """The number of this attempt, from 1, when all ranks have come; `TimeoutError` where they do not.

    torchrun's store outlives the ranks it restarts, with the addresses that dead ranks left in it, and every machine
    counts restarts for itself (https://github.com/pytorch/pytorch/issues/135712). So the first rank counts attempts in
    the store. The others greet the attempt they find there with a word drawn for the occasion, and have met the first
    rank when it answers with that word; an attempt of the past does not answer, and soon there is a newer one.
    """
    end = time.monotonic() + limit.total_seconds()
    if rank > 0:
        return _greet(store, rank, end)
    attempt = store.add("attempts", 1)
    for other in range(1, size):
        word = _heard(store, f"{attempt}/greeting/{other}", end)
        store.set(f"{attempt}/answer/{other}", word)
    return attempt


def _greet(store: Store, rank: int, end: float) -> int:
    word, greeted = uuid4().hex, 0
    while True:
        attempt = store.add("attempts", 0)
        if attempt > greeted:
            store.set(f"{attempt}/greeting/{rank}", word)
            greeted = attempt
        answer = f"{attempt}/answer/{rank}"
        if attempt and store.check([answer]) and store.get(answer).decode() == word:
            return attempt
        _wait(end, "the first rank has not come")


def _heard(store: Store, key: str, end: float) -> str:
    while not store.check([key]):
        _wait(end, f"rank {key.rpartition('/')[2]} has not come")
    return store.get(key).decode()


def _wait(end: float, what: str) -> None:
    if time.monotonic() >= end:
        raise TimeoutError(what)
    time.sleep(_PAUSE)
