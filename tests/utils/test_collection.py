"""Claims about importing without the garbage collector."""

import gc

import pytest

from bangs.utils.collection import no_collection


def test_no_garbage_is_collected_inside_and_again_afterwards() -> None:
    with no_collection():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_an_error_inside_and_a_collector_that_was_off_leave_it_as_it_was() -> None:
    with pytest.raises(ImportError), no_collection():
        raise ImportError
    assert gc.isenabled()
    with no_collection(), no_collection():
        pass
    assert gc.isenabled()
