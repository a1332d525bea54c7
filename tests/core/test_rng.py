"""Streams: numbers that are a pure function of seed and path."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bangs.core.rng import Streams

seed_lists = st.lists(st.integers(-(2**31), 2**63), min_size=1, max_size=4)
paths = st.lists(st.one_of(st.text("abcxyz", min_size=1, max_size=5), st.integers(0, 99)), max_size=4)


@given(seeds=seed_lists, path=paths)
@settings(max_examples=40, deadline=None)
def test_the_same_path_gives_the_same_numbers_however_it_was_walked(seeds, path):
    at_once = Streams(tuple(seeds)).at(*path)
    step_by_step = Streams(tuple(seeds))
    for step in path:
        step_by_step = step_by_step.at(step)
    assert at_once == step_by_step
    assert torch.equal(at_once.rand(3, 2), step_by_step.rand(3, 2))


@given(seeds=seed_lists, path=paths, other=paths)
@settings(max_examples=40, deadline=None)
def test_different_paths_give_different_numbers(seeds, path, other):
    if [str(step) for step in path] == [str(step) for step in other]:
        return
    assert set(Streams(tuple(seeds)).at(*path).numbers()).isdisjoint(Streams(tuple(seeds)).at(*other).numbers())


def test_a_path_cut_elsewhere_is_another_path():
    streams = Streams((0,))
    assert streams.at("ab", "c").numbers() != streams.at("a", "bc").numbers()
    assert streams.at(1, 2).numbers() != streams.at(12).numbers()
    assert Streams((1,)).at(2).numbers() != Streams((12,)).numbers()


@given(seeds=st.lists(st.integers(0, 2**40), min_size=3, max_size=6, unique=True), data=st.data())
@settings(max_examples=25, deadline=None)
def test_a_run_draws_the_same_numbers_alone_or_in_a_batch(seeds, data):
    runs = data.draw(st.lists(st.integers(0, len(seeds) - 1), min_size=1, max_size=4))
    streams = Streams(tuple(seeds)).at("round", 3)
    some = streams.only(runs)
    assert len(some) == len(runs)
    assert some.path == streams.path
    assert torch.equal(some.randn(5), streams.randn(5)[runs])


def test_asking_twice_does_not_move_the_stream():
    streams = Streams((1, 2)).at("chance")
    assert torch.equal(streams.rand(4), streams.rand(4))
    first, second = streams.generators(), streams.generators()
    assert torch.equal(torch.rand(4, generator=first[0]), torch.rand(4, generator=second[0]))


def test_a_long_draw_begins_like_a_short_one():
    streams = Streams((5,))
    assert torch.equal(streams.rand(100)[:, :10], streams.rand(10))


def test_seeds_serve_any_library():
    numbers = Streams(tuple(range(200))).at("split").numbers()
    assert len(set(numbers)) == 200
    assert all(0 <= number < 2**63 for number in numbers)
    np.random.default_rng(numbers[0])


def test_runs_are_uncorrelated_and_laws_are_right():
    uniform = Streams(tuple(range(20))).rand(2000)
    normal = Streams(tuple(range(20))).randn(2000)
    assert uniform.shape == normal.shape == (20, 2000)
    assert uniform.min() >= 0
    assert uniform.max() < 1
    assert uniform.mean().item() == pytest.approx(0.5, abs=0.01)
    assert normal.std().item() == pytest.approx(1, abs=0.02)
    assert (torch.corrcoef(uniform) - torch.eye(20)).abs().max() < 0.1


def test_the_numbers_are_the_same_today_and_tomorrow():
    """A stored number, so that a checkpoint written by an earlier version goes on with the same draws."""
    assert Streams((0, 1)).at("round", 3, "coalitions").numbers() == [
        2_892_451_733_942_531_634,
        8_230_425_327_418_464_390,
    ]
