"""The linear models that an automatic fit tries, and how the best of them are refined."""

import torch
from torch_geometric.data import Data

from bangs.core.rng import Streams
from bangs.estimator.candidates import linear_candidates, refined, soft_method
from bangs.estimator.linear import PropagatedLinear
from bangs.estimator.members import View
from tests.estimator.labelled_citation import labelled_citation


def test_words_are_propagated_with_rare_ones_enlarged_and_measurements_are_not() -> None:
    def tried(x: torch.Tensor) -> dict[str, PropagatedLinear]:
        graph = Data(x=x, edge_index=torch.zeros(2, 0, dtype=torch.long))
        tried = linear_candidates(graph, soft_method("soft", None), "soft", ("features",))
        return {candidate.model_kind: candidate.trainer.model for candidate in tried}  # type: ignore[misc]

    words = (torch.rand(50, 40, generator=torch.Generator().manual_seed(0)) < 0.2).float()
    assert set(tried(words)) == {"pagerank-idf", "walk-idf", "scales-idf", "logistic"}
    assert set(tried(words.to_sparse_csr())) == set(tried(words))
    measured = tried(words - 0.5)
    propagated = {"pagerank", "walk", "scales"}
    assert set(measured) == {"logistic"} | propagated | {f"{kind}-std" for kind in propagated}
    assert {kind: (model.rows, model.columns) for kind, model in measured.items()} == {
        kind: ("given", "standard" if kind.endswith("-std") else "given") for kind in measured
    }


def test_places_are_propagated_and_stand_beside_features_as_they_are() -> None:
    def tried(*views: View) -> list[tuple[str, str]]:
        return [
            (candidate.view, candidate.model_kind)
            for candidate in linear_candidates(data, soft_method("soft", None), "soft", views)
        ]

    data, _ = labelled_citation(nodes=90)
    assert tried("features", "structure", "both")[-2:] == [("structure", "pagerank"), ("both", "logistic")]
    for view in ("structure", "both"):  # alone, so that there is something to compare
        assert tried(view) == [(view, "pagerank"), (view, "logistic")]


def test_columns_that_all_nodes_have_are_not_erased_as_frequent_words() -> None:
    x = 1 + torch.rand(50, 40, generator=torch.Generator().manual_seed(0))  # none is zero, so no word is rare
    graph = Data(x=x, edge_index=torch.zeros(2, 0, dtype=torch.long))
    for candidate in linear_candidates(graph, soft_method("soft", None), "soft", ("features",)):
        model: PropagatedLinear = candidate.trainer.model  # type: ignore[assignment]
        assert float(model.principal(graph, Streams((0,)), torch.device("cpu"))[0].std(0).max()) > 0.01


def test_soft_labels_are_aligned_where_labels_are_uneven_or_few_and_not_with_chosen_shares() -> None:
    data, _ = labelled_citation()
    best = linear_candidates(data, soft_method("soft", None), "soft", ("features",))
    even, uneven = torch.full((240,), -1), torch.full((240,), -1)
    even[:30] = torch.tensor([0, 1, 2]).repeat(10)
    uneven[:30] = torch.tensor([0] * 20 + [1] * 5 + [2] * 5)
    few = torch.where(torch.arange(240) < 15, even, -1)
    methods = [{candidate.method_name for candidate in refined(best, 1, labels)} for labels in (even, uneven, few)]
    assert methods == [{"soft", "bangs-soft"}, *[{"soft", "soft-aligned", "bangs-soft"}] * 2]
