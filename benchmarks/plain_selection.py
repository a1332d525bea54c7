"""The slow twin of selection: the paper's pseudo-code, one propagation and one entropy per coalition.

Nothing is shared between coalitions and nothing is batched; `bangs.valuation` is measured against it, and held to it
in the tests.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.data import Data

from bangs.valuation import coalitions


@dataclass(frozen=True)
class PlainSelection:
    """MSR values of candidate nodes as the paper computes them (one run)."""

    alpha: float = 0.15
    steps: int = 10
    samples: int = 500

    def __call__(self, graph: Data, logits: Tensor, known: Tensor, players: Tensor, k: int, seed: int = 0) -> Tensor:
        """Values float64 [K] of the nodes `players` long [K], given logits [N, C] and the known nodes bool [N]."""
        step = self.transition(graph)
        generator = torch.Generator().manual_seed(seed)
        members = coalitions.draw(len(players), k, self.samples, [generator])[0]
        worth = torch.stack([self.utility(step, logits, known, players[who]) for who in members])
        size = members.sum(1)
        return torch.stack(
            [worth[members[:, i]].mean() - worth[~members[:, i] & (size < k)].mean() for i in range(len(players))]
        )

    def transition(self, graph: Data) -> Tensor:
        """Ã = D̂⁻¹(A + I) as a torch sparse matrix [N, N]."""
        nodes = int(graph.num_nodes or 0)
        loops = torch.arange(nodes)
        source = torch.cat([graph.edge_index[0], loops])
        target = torch.cat([graph.edge_index[1], loops])
        degree = torch.bincount(target, minlength=nodes).float()
        return torch.sparse_coo_tensor(
            torch.stack([target, source]), 1 / degree[target], (nodes, nodes), check_invariants=False
        ).to_sparse_csr()

    def utility(self, step: Tensor, logits: Tensor, known: Tensor, adopted: Tensor) -> Tensor:
        """U(S) = H(mean_j p_j) − mean_j H(p_j) over nodes that are not known: one propagation, one entropy."""
        visible = known.clone()
        visible[adopted] = True
        start = logits * visible[:, None]
        h = start
        for _ in range(self.steps):
            h = (1 - self.alpha) * (step @ h) + self.alpha * start
        log_p = h[~known].log_softmax(1)
        p = log_p.exp()
        mean = p.mean(0)
        return (p * log_p).sum(1).mean() - (mean * mean.log()).sum()
