"""The two-layer perceptron of APPNP and GRAND."""

import torch
from torch import Tensor, nn

from bangs.core.rng import Streams
from bangs.nn.dropout import DropoutMasks
from bangs.nn.matmul import batched_matmul
from bangs.nn.models.base import glorot


class Perceptron(nn.Module):
    """Two layers on the features: [R, n, C]."""

    def __init__(self, features: int, hidden: int, classes: int, rng: Streams) -> None:
        super().__init__()
        self.first = glorot(rng.at("init", "first"), features, hidden)
        self.second = glorot(rng.at("init", "second"), hidden, classes)
        self.first_bias = nn.Parameter(torch.zeros(len(rng), 1, hidden))
        self.second_bias = nn.Parameter(torch.zeros(len(rng), 1, classes))

    def hidden(self, product: Tensor) -> Tensor:
        """The hidden layer from a product with the first weight: [R, n, h]."""
        return (product + self.first_bias).relu()

    def logits(self, hidden: Tensor, masks: DropoutMasks | None, dropout: float) -> Tensor:
        """The logits [R, n, C] of a hidden layer [R, n, h]."""
        return batched_matmul(hidden if masks is None else masks.drop(hidden, dropout), self.second) + self.second_bias
