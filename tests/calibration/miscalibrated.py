"""A synthetic graph whose labels follow known probabilities, and a classifier that is wrong about them."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch_geometric.data import Data

from bangs.core.types import Labels, Prediction, Task


@dataclass(frozen=True, eq=False)
class Miscalibrated:
    """Labels are drawn from softmax(z_i); the classifier predicts softmax(f_i · z_i)."""

    prediction: Prediction
    truth: Prediction
    task: Task
    test: Tensor  # long [R, N], -1 outside the test nodes


def miscalibrated(
    by: Literal["scale", "region", "degree"], nodes: int = 900, runs: int = 2, seed: int = 0
) -> Miscalibrated:
    """Four groups of nodes that mostly cite their own, two fifths of them often; f is one number for all (`scale`),
    4 in two of the groups and 0.7 in the others (`region`), or so for nodes of high and of low degree (`degree`)."""
    generator = torch.Generator().manual_seed(seed)
    classes = 4
    group = torch.arange(nodes) % classes
    busy = torch.rand(nodes, generator=generator) < 0.4
    source = torch.cat([torch.arange(nodes).repeat(2), busy.nonzero().squeeze(1).repeat(8)])
    anyone = torch.randint(0, nodes // classes, (len(source),), generator=generator) * classes
    stray = torch.randint(0, classes, (len(source),), generator=generator)
    home = torch.rand(len(source), generator=generator) < 0.8
    edges = torch.stack([source, anyone + torch.where(home, group[source], stray)])
    edges = torch.cat([edges, edges.flip(0)], 1)
    noise = 1.2 * torch.randn(runs, nodes, classes, generator=generator)
    logits = 2 * torch.nn.functional.one_hot(group, classes) + noise
    label = torch.multinomial(logits.softmax(-1).flatten(0, 1), 1, generator=generator).view(runs, nodes)
    sharp = {"scale": torch.ones(nodes, dtype=torch.bool), "region": group < 2, "degree": busy}[by]
    factor = torch.where(sharp, 4.0, 0.7)
    part = torch.rand(runs, nodes, generator=generator)
    task = Task(
        Data(edge_index=edges, num_nodes=nodes),
        Labels.given(torch.where(part < 0.1, label, -1)),
        torch.where((part >= 0.1) & (part < 0.5), label, -1),
        classes,
    )
    spoiled = Prediction(factor[:, None] * logits)
    return Miscalibrated(spoiled, Prediction(logits), task, torch.where(part >= 0.5, label, -1))
