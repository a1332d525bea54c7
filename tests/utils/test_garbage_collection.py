"""Claims about importing without the garbage collector."""

import gc

import pytest

from bangs.utils.garbage_collection import gc_paused


def test_no_garbage_is_collected_inside_and_again_afterwards() -> None:
    with gc_paused():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_an_error_inside_and_a_collector_that_was_off_leave_it_as_it_was() -> None:
    with pytest.raises(ImportError), gc_paused():
        raise ImportError
    assert gc.isenabled()
    with gc_paused(), gc_paused():
        pass
    assert gc.isenabled()
