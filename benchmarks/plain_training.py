"""The slow twin of training: dense features, a stock PyG network, one seed at a time, all looked at each epoch."""

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

from bangs.nn.models import GCN


class PlainGCN(nn.Module):
    """Two stock convolutions, as the settings of our GCN have them."""

    def __init__(self, features: int, classes: int, settings: GCN):
        super().__init__()
        improved = settings.loops == 2
        self.first = GCNConv(features, settings.hidden, improved=improved)
        self.second = GCNConv(settings.hidden, classes, improved=improved)
        self.settings = settings

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        weight = torch.ones(edge_index.shape[1])  # without weights, PyG does not improve
        x = functional.dropout(x, self.settings.input_dropout, self.training)
        h = functional.dropout(self.first(x, edge_index, weight).relu(), self.settings.dropout, self.training)
        return self.second(h, edge_index, weight)


class PlainTraining:
    """Epochs as papers' scripts have them."""

    def __init__(self, data: Data, model: PlainGCN, lr: float, weight_decay: float):
        self.x = data.x.to_dense() if data.x.layout == torch.sparse_csr else data.x
        self.edge_index, self.model = data.edge_index, model
        self.optimiser = torch.optim.Adam(model.parameters(), lr=lr, weight_decay=weight_decay)
        self.best, self.best_state = -1.0, model.state_dict()

    def epoch(self, target: Tensor, validation: Tensor, belief: Tensor | None = None) -> None:
        """One step on the nodes with a target (long [N], -1 = none), one look at those of validation.

        Soft labels have a distribution for every node as well, float [N, C].
        """
        self.model.train()
        self.optimiser.zero_grad()
        logits = self.model(self.x, self.edge_index)
        if belief is None:
            functional.cross_entropy(logits, target, ignore_index=-1).backward()
        else:
            functional.cross_entropy(logits[target >= 0], belief[target >= 0]).backward()
        self.optimiser.step()
        self.model.eval()
        with torch.no_grad():
            predicted = self.model(self.x, self.edge_index).argmax(1)
        held = validation >= 0
        accuracy = float((predicted[held] == validation[held]).float().mean())
        if accuracy > self.best:
            self.best = accuracy
            self.best_state = {name: value.clone() for name, value in self.model.state_dict().items()}

    def logits(self) -> Tensor:
        """Logits [N, C] of the best epoch."""
        self.model.load_state_dict(self.best_state)
        self.model.eval()
        with torch.no_grad():
            return self.model(self.x, self.edge_index)
