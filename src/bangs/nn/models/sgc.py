"""SGC: a linear model on propagated features."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from bangs.core.rng import Streams
from bangs.nn.dropout import DropoutMasks
from bangs.nn.ensemble import Network
from bangs.nn.models.base import Checked, glorot
from bangs.nn.subgraphs import Features


@dataclass(frozen=True)
class SGC(Checked):
    """Simplified convolution (Wu et al. 2019): logits = Â^hops X W + b."""

    hops: int = 2
    dropout: float = 0.0
    loops: float = 1.0

    def build(self, features: int, classes: int, rng: Streams) -> Network:
        return _Simple(self, features, classes, rng)


class _Simple(Network):
    def __init__(self, settings: SGC, features: int, classes: int, rng: Streams) -> None:
        super().__init__()
        self.settings, self.loops, self.hops = settings, settings.loops, settings.hops
        self.hops_first = settings.dropout == 0
        self.weight = glorot(rng.at("init"), features, classes)
        self.bias = nn.Parameter(torch.zeros(len(rng), 1, classes))

    def stage(self, number: int, h: Features | Tensor, masks: DropoutMasks | None = None) -> Tensor:
        if isinstance(h, Features):
            return h.drop(masks, self.settings.dropout).matmul(self.weight)
        return h + self.bias if number == self.settings.hops else h
