"""The slow twin of the information game: one propagation per coalition."""

from dataclasses import dataclass

import torch
from torch import Tensor

from bangs.graphs.pagerank import Operator
from bangs.valuation.influence import MIN_MASS, Normalisation


@dataclass(frozen=True, eq=False)
class PlainInformation:
    """The slow twin of `Information`: one propagation per coalition, then in float64."""

    operator: Operator
    logits: Tensor  # float [R, N, C]
    known: Tensor  # bool [R, N]
    nodes: Tensor  # long [R, K]
    open: Tensor  # bool [R, N]
    normalise: Normalisation = "none"

    @property
    def runs(self) -> int:
        return self.nodes.shape[0]

    @property
    def players(self) -> int:
        return self.nodes.shape[1]

    @property
    def device(self) -> torch.device:
        return self.logits.device

    def __call__(self, members: Tensor) -> Tensor:
        """U of coalitions bool [R, B, K]: float64 [R, B]."""
        rows = [[self._worth(run, coalition) for coalition in members[run]] for run in range(self.runs)]
        return torch.stack([torch.stack(row) for row in rows])

    def _worth(self, run: int, members: Tensor) -> Tensor:
        labelled = self.known[run].clone()
        labelled[self.nodes[run, members]] = True
        h = self.operator(self.logits[run] * labelled[:, None]).double()
        if self.normalise == "mass":
            h = h / self.operator(labelled[:, None].float()).double().clamp(min=MIN_MASS)
        p = h[self.open[run]].softmax(1)
        mean = p.mean(0)
        return torch.xlogy(p, p).sum(1).mean() - torch.xlogy(mean, mean).sum()
