"""What `bangs` computes is what the definitions of this folder say."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from bangs.graphs.pagerank import PPR
from bangs.valuation import coalitions
from bangs.valuation.banzhaf import Exact
from bangs.valuation.influence import Normalisation
from bangs.valuation.information import Information
from tests.theory.definitions import Setting, banzhaf, pagerank, row_normalised


def graph(setting: Setting) -> Data:
    ends = torch.tensor(np.array(np.nonzero(setting.adjacency)))
    return Data(edge_index=ends, num_nodes=len(setting.adjacency))


def information(setting: Setting, normalise: Normalisation) -> Information:
    """The game of `bangs` with as many steps as make power iteration exact in single precision."""
    return Information.of(
        PPR(alpha=0.15, steps=120)(graph(setting)),
        torch.tensor(setting.logits, dtype=torch.float32)[None],
        torch.tensor(setting.labelled)[None],
        torch.tensor(setting.candidates)[None],
        normalise=normalise,
        tolerance=0.0,
    )


def test_its_propagation_is_the_inverse_of_def_3_2() -> None:
    setting = Setting.random(0)
    found = PPR(alpha=0.15, steps=120)(graph(setting))(torch.eye(60))
    np.testing.assert_allclose(found.numpy(), pagerank(row_normalised(setting.adjacency), 0.15), atol=1e-6)


@pytest.mark.parametrize("normalise", ["none", "mass"])
def test_its_utility_is_eq_2_of_the_propagated_logits(normalise: Normalisation) -> None:
    setting = Setting.random(1, players=6)
    members = coalitions.every(6, 3, torch.device("cpu"))
    found = information(setting, normalise)(members[None])[0].tolist()
    game = setting.game(3, mass=normalise == "mass")
    assert len(found) == len(game)
    for who, worth in zip(members, found, strict=True):
        assert worth == pytest.approx(game[frozenset(who.nonzero()[:, 0].tolist())], abs=1e-5)


@pytest.mark.parametrize("normalise", ["none", "mass"])
def test_its_values_are_those_of_def_3_3(normalise: Normalisation) -> None:
    setting = Setting.random(2, players=8)
    found = Exact()(information(setting, normalise), 4).mean[0].numpy()
    expected = banzhaf(setting.game(4, mass=normalise == "mass"), 8, 4)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert np.ptp(expected) > 1e-3
