"""Validation split: which labelled nodes are held for validation, if none are given."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from bangs.core.number_checks import check_number
from bangs.core.rng import Streams
from bangs.core.types import Split
from bangs.errors import InvalidInput


def validation_split(
    y: Tensor,
    given: Split | None,
    seeds: Sequence[int],
    share: float = 0.25,
    classes: Sequence[Any] | None = None,
) -> Split:
    """The split of R = len(seeds) runs: bool [R, N]; y long [N], −1 where the label is unknown.

    A given split with validation nodes is kept; of S given splits run r takes number r mod S. Otherwise about `share`
    of the training nodes of each class is held for validation: at least one, never all, drawn from the run's seed.
    `classes` are the names of the classes, if they are not 0, 1, ….
    """
    check_share(share)
    if len(seeds) == 0:
        raise InvalidInput("a split needs at least one seed, got none")
    known = y.cpu() >= 0
    none = torch.zeros_like(known)[None]
    start = Split(known[None], none, none) if given is None else given
    if start.train.shape[1] != len(y):
        raise InvalidInput(f"the given split has {start.train.shape[1]} nodes, y has {len(y)}")
    start = start.only([run % len(start.train) for run in range(len(seeds))])
    held = start.val.clone()
    for run, generator in enumerate(Streams(tuple(seeds)).at("validation").generators()):
        if not held[run].any():
            held[run] = _held(y.cpu(), start.train[run] & known, share, generator, classes)
    return Split(start.train & ~held, held, start.test)


def check_share(share: float) -> None:
    """Raises where a share of labels would leave none for training or none for validation."""
    check_number("the validation share", share, within="(0, 1)")


def _held(y: Tensor, train: Tensor, share: float, generator: torch.Generator, classes: Sequence[Any] | None) -> Tensor:
    held = torch.zeros_like(train)
    for label in y[train].unique().tolist():
        nodes = (train & (y == label)).nonzero().flatten()
        if len(nodes) < 2:
            name = label if classes is None else repr(classes[label])
            raise InvalidInput(
                f"class {name} has one labelled node, which cannot be both learned from and validated on; "
                "label a second one, drop the label, or give a split with validation nodes"
            )
        count = min(max(round(share * len(nodes)), 1), len(nodes) - 1)
        held[nodes[torch.randperm(len(nodes), generator=generator)[:count]]] = True
    return held
