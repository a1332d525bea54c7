"""Pushed columns against whole ones: how fine they must be for the same selection.

    BANGS_DATA=… python benchmarks/push.py [--datasets pubmed amazon_computers] [--candidates 200] [--k 100] [--json]

The first round of a tuned GCN (seed 0), its temperature fitted. The default estimator with the same coalitions values
the candidates twice, with the columns of `PPR` and with those of `Push` at several errors. `bound` is what `Push`
vouches for, `off` the largest difference there is, `spearman` the rank correlation of values, `agreement` the share of
the k best in common.
"""

from typing import Any

import torch
from torch import Tensor

from bangs.graphs.pagerank import Operator
from bangs.graphs.pagerank_push import Push
from bangs.valuation.banzhaf import DEFAULT, ESTIMATORS
from bangs.valuation.information import Information
from measuring import options, show
from rounds import Occasion, agreement, rank_correlation, trained

ERRORS = (1e-2, 1e-3, 1e-4)


def case(occasion: Occasion, candidates: int, k: int) -> list[dict[str, Any]]:
    """One row for every normalisation and error."""
    rows = []
    players = occasion.players(candidates)
    whole = occasion.operator.columns(players)

    def values(operator: Operator, normalise: Any) -> Tensor:
        game = Information.of(operator, occasion.logits[None], occasion.known[None], players[None], normalise=normalise)
        return ESTIMATORS[DEFAULT](None)(game, k, [torch.Generator().manual_seed(1)]).mean[0]

    for normalise in ("none", "mass"):
        exact = values(occasion.operator, normalise)
        for error in ERRORS:
            operator = Push(error=error)(occasion.graph)
            pairs = operator.pairs(players)
            approximate = values(operator, normalise)
            rows.append(
                {
                    "dataset": occasion.name,
                    "normalise": normalise,
                    "error": error,
                    "bound": pairs.bound,
                    "off": float((operator.columns(players) - whole).abs().max()),
                    "pairs of one": len(pairs.node) // candidates,
                    "spearman": rank_correlation(approximate, exact),
                    "agreement": agreement(approximate, exact, k),
                }
            )
    return rows


def main() -> None:
    parser = options(__doc__, repeats=None)
    parser.add_argument("--datasets", nargs="+", default=["pubmed", "amazon_computers"])
    parser.add_argument("--candidates", type=int, default=200)
    parser.add_argument("--k", type=int, default=100)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    rows = [row for name in args.datasets for row in case(trained(name), args.candidates, args.k)]
    show(rows, args.json)


if __name__ == "__main__":
    main()
