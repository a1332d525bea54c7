"""Training, validation and test splits, and label noise."""

from collections.abc import Sequence
from math import floor
from typing import Any, Literal

import torch
from torch import Tensor
from torch_geometric.data import Data

from bangs.core.rng import Streams
from bangs.core.types import Split
from bangs.errors import InvalidInput
from bangs.utils.setting_checks import check_number

MASKS = ("train_mask", "val_mask", "test_mask")


def default(data: Data, seeds: Sequence[int]) -> Split:
    """The default split of a dataset: its public masks, else 5 / 15 / 80 % drawn from each run's seed.

    If the data has S splits (masks [N, S]), a run takes number seed mod S.
    """
    if has_public(data):
        return _from_masks(data, seeds)
    if data.get("y") is None:
        raise InvalidInput("the graph has no labels to split; set data.y, -1 where a label is unknown")
    return by_share(data.y.cpu(), 0.05, 0.15, seeds)


def has_public(data: Data) -> bool:
    """Whether the graph has public masks."""
    return all(data.get(name) is not None for name in MASKS)


def public(data: Data, runs: int) -> Split:
    """The public masks of the graph for every run: bool [R, N]; of S splits, run r takes number r mod S."""
    if not has_public(data):
        raise InvalidInput(
            "the graph has no public split (train_mask, val_mask and test_mask); use per_class or by_share instead"
        )
    return _from_masks(data, range(runs))


def every_public(data: Data) -> Split | None:
    """All public splits of the graph: bool [S, N]; None if it has none."""
    train = data.get(MASKS[0])
    return None if train is None else _from_masks(data, range(train[0].numel()))


def mark(data: Data, split: Split) -> Data:
    """The same graph, with the masks of the split's first run as its public masks."""
    data.train_mask, data.val_mask, data.test_mask = split.train[0], split.val[0], split.test[0]
    return data


def per_class(
    y: Tensor,
    n: int,
    val: int,
    test: int | None,
    seeds: Sequence[int],
    scarce: Literal["refuse", "half"] = "refuse",
) -> Split:
    """n training nodes of each class, then `val` and `test` nodes drawn uniformly from the rest: bool [R, N].

    `test=None` takes all that remain. Nodes without a label (−1) are in none of the three. A class of fewer than n
    nodes is an error; with `scarce="half"` no class gives more than half of its nodes, but at least one.
    """
    if n < 1 or val < 1 or (test is not None and test < 0):
        raise InvalidInput(
            f"a split per class needs n and val of at least 1 and no negative test, got n={n}, val={val}, test={test}"
        )
    labelled = _known(y)
    sizes = torch.bincount(y[labelled])
    small = (sizes < n).nonzero().flatten()
    quota = torch.full_like(sizes, n)
    if scarce == "half":
        quota = torch.minimum(quota, (sizes // 2).clamp_min(1)).clamp_max(sizes)
    elif len(small):
        label = int(small[0])
        raise InvalidInput(f"class {label} has {int(sizes[label])} nodes, but the split needs {n} per class; lower n")
    remaining = len(labelled) - int(quota.sum())
    if val + (test or 0) > remaining:
        raise InvalidInput(
            f"{n} per class leave {remaining} labelled nodes, but val + test need {val + (test or 0)}; "
            "lower one of them"
        )
    starts = torch.cumsum(sizes, 0) - sizes
    masks = torch.zeros(3, len(seeds), len(y), dtype=torch.bool)
    for run, generator in enumerate(Streams(tuple(seeds)).at("split").generators()):
        drawn = labelled[torch.randperm(len(labelled), generator=generator)]
        by_label = drawn[torch.argsort(y[drawn], stable=True)]
        rank = torch.arange(len(by_label)) - starts[y[by_label]]
        masks[0, run, by_label[rank < quota[y[by_label]]]] = True
        unused = drawn[~masks[0, run, drawn]]
        masks[1, run, unused[:val]] = True
        masks[2, run, unused[val : None if test is None else val + test]] = True
    return Split(*masks)


def by_share(y: Tensor, train: float, val: float, seeds: Sequence[int]) -> Split:
    """Shares of the labelled nodes, drawn uniformly and not balanced over classes, as in the paper: bool [R, N].

    All other labelled nodes are test nodes. Small classes may get no training node; only a training set of a single
    class is an error.
    """
    if not (train > 0 and val > 0 and train + val < 1):
        raise InvalidInput(f"the shares train and val must be positive and sum to less than 1, got {train} and {val}")
    labelled = _known(y)
    train_count, val_count = _count(train, len(labelled)), _count(val, len(labelled))
    if train_count == 0 or val_count == 0:
        raise InvalidInput(
            f"{train:g} and {val:g} of {len(labelled)} labelled nodes are {train_count} training and {val_count} "
            "validation nodes; each needs at least one node, so raise the share"
        )
    masks = torch.zeros(3, len(seeds), len(y), dtype=torch.bool)
    for run, generator in enumerate(Streams(tuple(seeds)).at("split").generators()):
        drawn = labelled[torch.randperm(len(labelled), generator=generator)]
        masks[0, run, drawn[:train_count]] = True
        masks[1, run, drawn[train_count : train_count + val_count]] = True
        masks[2, run, drawn[train_count + val_count :]] = True
        if len(y[drawn[:train_count]].unique()) < 2:
            raise InvalidInput(
                f"the {train_count} training nodes of run {run} (seed {seeds[run]}) are all of one class; "
                "raise the training share or use per_class"
            )
    return Split(*masks)


def noisy(y: Tensor, split: Split, share: float, seeds: Sequence[int], classes: int | None = None) -> Tensor:
    """Labels with a share of the training and validation ones wrong: long [R, N].

    In each run exactly that share of train ∪ val (rounded to whole nodes) gets a label drawn uniformly from the
    other classes; all other labels are unchanged.
    """
    check_number("the share of noisy labels", share, within="[0, 1]")
    y = y.cpu()
    classes = int(y.max()) + 1 if classes is None else classes
    if classes < 2:
        raise InvalidInput(f"label noise needs at least two classes, got {classes}")
    labelled = (split.train | split.val).cpu()
    wrong = y.expand(labelled.shape).clone()
    for run, generator in enumerate(Streams(tuple(seeds)).at("noise").generators()):
        nodes = labelled[run].nonzero().flatten()
        flipped = nodes[torch.randperm(len(nodes), generator=generator)[: floor(share * len(nodes) + 0.5)]]
        shift = torch.randint(1, classes, (len(flipped),), generator=generator)
        wrong[run, flipped] = (y[flipped] + shift) % classes
    return wrong


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
    `classes` are the names of the classes for error messages, if they are not 0, 1, ….
    """
    check_share(share)
    if len(seeds) == 0:
        raise InvalidInput("a split needs at least one seed, got none")
    known = y.cpu() >= 0
    empty = torch.zeros_like(known)[None]
    start = Split(known[None], empty, empty) if given is None else given
    if start.train.shape[1] != len(y):
        raise InvalidInput(f"the given split has {start.train.shape[1]} nodes, y has {len(y)}")
    start = start.only([run % len(start.train) for run in range(len(seeds))])
    val = start.val.clone()
    for run, generator in enumerate(Streams(tuple(seeds)).at("validation").generators()):
        if not val[run].any():
            val[run] = _validation_nodes(y.cpu(), start.train[run] & known, share, generator, classes)
    return Split(start.train & ~val, val, start.test)


def check_share(share: float) -> None:
    """Raises if the share would leave no labels for training or none for validation."""
    check_number("the validation share", share)
    if not 0 < share < 1:
        raise InvalidInput(f"the validation share must lie between 0 and 1, such as 0.25 for a quarter, got {share}")


def _from_masks(data: Data, columns: Sequence[int]) -> Split:
    masks = [data[name].bool().cpu() for name in MASKS]
    masks = [mask[:, None] if mask.dim() == 1 else mask for mask in masks]
    index = torch.as_tensor([column % masks[0].shape[1] for column in columns])
    return Split(*(mask[:, index].T.contiguous() for mask in masks))


def _known(y: Tensor) -> Tensor:
    nodes = (y >= 0).nonzero().flatten()
    if len(nodes) == 0:
        raise InvalidInput("no node has a label, so there is nothing to split")
    return nodes


def _count(share: float, nodes: int) -> int:
    # 0.29 * 100 is 28.999…, but 29 is meant
    return floor(share * nodes + 1e-9)


def _validation_nodes(
    y: Tensor, train: Tensor, share: float, generator: torch.Generator, classes: Sequence[Any] | None
) -> Tensor:
    val = torch.zeros_like(train)
    for label in y[train].unique().tolist():
        nodes = (train & (y == label)).nonzero().flatten()
        if len(nodes) < 2:
            name = label if classes is None else repr(classes[label])
            raise InvalidInput(
                f"class {name} has one labelled node, which cannot be both learned from and validated on; "
                "label a second one, drop the label, or give a split with validation nodes"
            )
        count = min(max(round(share * len(nodes)), 1), len(nodes) - 1)
        val[nodes[torch.randperm(len(nodes), generator=generator)[:count]]] = True
    return val
