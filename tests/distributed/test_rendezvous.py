"""Ranks of one attempt rendezvous, whatever the attempts before have left in the store."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from torch.distributed import HashStore, Store

from bangs.distributed.rendezvous import agree_on_attempt

LONG, SHORT = timedelta(seconds=60), timedelta(seconds=0.2)


def met(store: Store, order: list[int]) -> list[int]:
    """What every rank takes for the attempt's number, where they come in this order."""
    with ThreadPoolExecutor(len(order)) as pool:
        comings = [pool.submit(agree_on_attempt, store, rank, len(order), LONG) for rank in order]
        return [coming.result() for coming in comings]


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0], [1, 0, 2]])
def test_all_ranks_get_the_same_number_and_every_attempt_another(order: list[int]) -> None:
    store = HashStore()
    assert [met(store, order) for _ in range(3)] == [[1, 1, 1], [2, 2, 2], [3, 3, 3]]


def test_a_rank_is_not_answered_by_an_attempt_of_the_past() -> None:
    store = HashStore()
    met(store, [0, 1])
    with pytest.raises(TimeoutError, match="rank 0 has not joined"):
        agree_on_attempt(store, 1, 2, SHORT)
    assert met(store, [1, 0]) == [2, 2]


def test_an_attempt_that_broke_off_while_ranks_were_coming_does_not_count_for_the_next() -> None:
    store = HashStore()
    with pytest.raises(TimeoutError, match="rank 1 has not joined"):
        agree_on_attempt(store, 0, 3, SHORT)
    with pytest.raises(TimeoutError, match="rank 0 has not joined"):
        agree_on_attempt(store, 1, 3, SHORT)  # greets an attempt that nobody attends any more
    assert met(store, [2, 1, 0]) == [2, 2, 2]


def test_a_store_that_was_never_used_has_no_first_rank() -> None:
    with pytest.raises(TimeoutError, match="rank 0 has not joined"):
        agree_on_attempt(HashStore(), 1, 2, SHORT)


def test_a_single_rank_needs_no_handshake() -> None:
    assert agree_on_attempt(HashStore(), 0, 1, SHORT) == 1
