"""PageRank and Def. 3.2: the limit of a walk that restarts, not of a walk that goes on."""

import numpy as np
import pytest

from tests.theory.definitions import pagerank, row_normalised, scale_free, stationary, total_variation

GRAPHS = [(links, seed) for links in (1, 2, 3) for seed in range(2)]
power = np.linalg.matrix_power


@pytest.mark.parametrize(("links", "seed"), GRAPHS)
def test_a_long_walk_forgets_where_it_began(links: int, seed: int) -> None:
    adjacency = scale_free(60, links, seed)
    far = power(row_normalised(adjacency), 2000)
    np.testing.assert_allclose(far, np.tile(stationary(adjacency), (60, 1)), atol=1e-8)


@pytest.mark.parametrize(("links", "seed"), GRAPHS)
def test_depth_does_not_lead_to_pagerank(links: int, seed: int) -> None:
    step = row_normalised(scale_free(60, links, seed))
    distance = [total_variation(power(step, depth), pagerank(step, 0.15)).mean() for depth in (*range(1, 20), 400)]
    assert min(distance) > 0.1  # no depth is PageRank
    assert distance[-1] > 0.25  # and the limit is farther than a few layers
    assert distance[-1] > min(distance) + 0.1


@pytest.mark.parametrize("restart", [0.05, 0.15, 0.5])
def test_restarts_lead_to_pagerank_with_an_error_below_its_geometric_bound(restart: float) -> None:
    step = row_normalised(scale_free(60, 2, seed=0))
    exact, state = pagerank(step, restart), np.eye(60)
    for steps in range(1, 40):
        state = (1 - restart) * step @ state + restart * np.eye(60)  # the power iteration of Section 3.3
        error = total_variation(state, exact)
        assert error.max() <= (1 - restart) ** steps + 1e-12
        np.testing.assert_allclose(state.sum(1), 1)
    np.testing.assert_allclose(exact.sum(1), 1)


def test_pagerank_is_the_law_of_a_walk_of_geometric_length() -> None:
    step, restart = row_normalised(scale_free(30, 2, seed=1)), 0.15
    mixed = sum(restart * (1 - restart) ** length * power(step, length) for length in range(300))
    np.testing.assert_allclose(mixed, pagerank(step, restart), atol=1e-12)


def test_pagerank_is_the_limit_of_depth_only_where_the_restarts_vanish() -> None:
    adjacency = scale_free(60, 2, seed=2)
    step = row_normalised(adjacency)
    distance = [total_variation(pagerank(step, restart), stationary(adjacency)).max() for restart in (0.15, 1e-2, 1e-6)]
    assert distance[0] > 0.25 > distance[1] > distance[2]
    assert distance[2] < 1e-4
    np.testing.assert_allclose(
        pagerank(step, 1.0), np.eye(60)
    )  # and with nothing but restarts no node influences another


def test_the_estimate_is_a_sum_over_its_sources() -> None:
    # Ĥ(S) = Ĥ(∅) + Σ_{i∈S} P[:, i] x_i: the sum over sources that Def. 3.2 and the appendix write in two ways
    rng = np.random.default_rng(3)
    reach, logits = pagerank(row_normalised(scale_free(30, 2, seed=3)), 0.15), rng.standard_normal((30, 4))
    base, chosen = np.arange(30) < 5, np.arange(30) % 7 == 6

    def estimate(sources: np.ndarray) -> np.ndarray:
        return reach @ np.where(sources[:, None], logits, 0)

    apart = sum(np.outer(reach[:, i], logits[i]) for i in np.flatnonzero(chosen))
    np.testing.assert_allclose(estimate(base | chosen), estimate(base) + apart, atol=1e-12)
