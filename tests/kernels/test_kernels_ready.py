"""When our kernels are used, and when torch's are."""

import logging

import pytest
import torch

from bangs import kernels


@pytest.fixture(autouse=True)
def clear_ready_cache():
    kernels.ready.cache_clear()
    yield
    kernels.ready.cache_clear()


def test_a_processor_is_not_served():
    assert not kernels.serves(torch.zeros(3))


def test_the_environment_leaves_them_out(monkeypatch):
    monkeypatch.setenv("BANGS_KERNELS", "0")
    assert not kernels.ready()


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
def test_where_they_cannot_be_built_torch_does_the_work_and_the_log_says_why(caplog):
    with caplog.at_level(logging.DEBUG, "bangs.kernels"):
        assert not kernels.ready()
    assert "Triton kernels are not used" in caplog.text
