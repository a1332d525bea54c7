"""The types that all parts share: Split, Labels, Prediction, Task, Round, Ranking; tensors lead with the run axis R."""

from collections.abc import Callable, Hashable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import torch
from torch import Tensor

from bangs.core.graph_checks import check_graph
from bangs.core.rng import Streams
from bangs.errors import InvalidInput

if TYPE_CHECKING:  # importing PyG takes seconds, and most of these types do not need it
    from torch_geometric.data import Data

T = TypeVar("T")

CHUNK = 2**20  # nodes whose probabilities are computed at once


@dataclass(frozen=True, eq=False)
class Split:
    """The training, validation and test nodes of every run, as disjoint masks."""

    train: Tensor  # bool [R, N]
    val: Tensor  # bool [R, N]
    test: Tensor  # bool [R, N]

    def __post_init__(self) -> None:
        if not self.train.shape == self.val.shape == self.test.shape or self.train.dim() != 2:
            raise InvalidInput(
                "Split masks must share one shape [R, N], got "
                f"{tuple(self.train.shape)}, {tuple(self.val.shape)}, {tuple(self.test.shape)}"
            )
        if not self.train.dtype == self.val.dtype == self.test.dtype == torch.bool:
            raise InvalidInput(
                "Split masks must be bool, one value per node, got "
                f"{self.train.dtype}, {self.val.dtype}, {self.test.dtype}; a list of nodes is not a mask"
            )
        if ((self.train & self.val) | (self.train & self.test) | (self.val & self.test)).any():
            raise InvalidInput("Split masks must be disjoint, but a node is in two of them")

    @classmethod
    def repeated(cls, train: Tensor, val: Tensor, test: Tensor, runs: int) -> "Split":
        """The same masks [N] for every run."""
        return cls(*(mask.bool().expand(runs, -1).clone() for mask in (train, val, test)))

    def only(self, runs: Sequence[int]) -> "Split":
        """The masks of some of the runs."""
        index = torch.as_tensor(runs)
        return Split(**_map_tensors(self, lambda tensor: tensor[index]))


@dataclass(frozen=True, eq=False)
class Labels:
    """The labels a student is trained on: given labels and the pseudo-labels adopted so far.

    Pseudo-labels are hard (a class) or soft. For soft ones `belief` holds a distribution over the classes for every
    node, and `target` is its most likely class. The belief of a given label is one-hot.
    """

    target: Tensor  # long [R, N], -1 = none
    weight: Tensor  # float [R, N], the node's weight in the loss
    adopted_round: Tensor  # long [R, N], 0 = given, t = adopted in round t, -1 = none
    belief: Tensor | None = None  # float [R, N, C], zeros where target is -1; None = all labels are hard

    @classmethod
    def given(cls, target: Tensor, weight: Tensor | None = None) -> "Labels":
        """Labels that came with the data: target long [R, N], -1 where there is none; the default weight is 1."""
        known = target >= 0
        return cls(target, known.float() if weight is None else weight, torch.where(known, 0, -1))

    @property
    def known(self) -> Tensor:
        """Nodes with a label of either kind: bool [R, N]."""
        return self.target >= 0

    @property
    def adopted(self) -> Tensor:
        """Nodes with a pseudo-label: bool [R, N]."""
        return self.adopted_round > 0

    def adopt(self, chosen: Tensor, label: Tensor, weight: Tensor | float, round: int) -> "Labels":
        """These labels plus labels for the chosen nodes; a given label is never overwritten.

        `label` is long [R, N], or float [R, N, C] for soft labels: a distribution over the classes for every node.
        """
        new = chosen & (self.adopted_round != 0)
        weight = torch.as_tensor(weight, dtype=self.weight.dtype, device=self.weight.device)
        target, belief = (label.argmax(-1), label) if label.dim() == 3 else (label, None)
        return Labels.where(new, Labels(target, weight, torch.full_like(self.adopted_round, round), belief), self)

    def _belief_of_all(self, classes: int) -> Tensor:
        """The belief of every node, one-hot for hard labels: float [R, N, C]."""
        return one_hot(self.target, classes) if self.belief is None else self.belief

    def weighted(self, weight: Tensor) -> "Labels":
        """The same labels with other weights [R, N]; nodes without a label keep weight zero."""
        return replace(self, weight=torch.where(self.known, weight, 0.0))

    def to(self, device: torch.device | str) -> "Labels":
        return Labels(**_map_tensors(self, lambda tensor: tensor.to(device)))

    def only(self, runs: Sequence[int]) -> "Labels":
        """The labels of some of the runs."""
        index = torch.as_tensor(runs, device=self.target.device)
        return Labels(**_map_tensors(self, lambda tensor: tensor[index]))

    @staticmethod
    def where(mask: Tensor, first: "Labels", second: "Labels") -> "Labels":
        """The first labels where the mask, bool [R] or [R, N], is true, the second elsewhere."""
        pick = mask if mask.dim() == 2 else mask[:, None]
        belief = None
        if first.belief is not None or second.belief is not None:
            classes = next(labels.belief.shape[-1] for labels in (first, second) if labels.belief is not None)
            belief = torch.where(pick[..., None], first._belief_of_all(classes), second._belief_of_all(classes))
        return Labels(
            torch.where(pick, first.target, second.target),
            torch.where(pick, first.weight, second.weight),
            torch.where(pick, first.adopted_round, second.adopted_round),
            belief,
        )


@dataclass(frozen=True, eq=False)
class Prediction:
    """A model's logits for every node, and what follows from them."""

    logits: Tensor  # float [R, N, C]; log-probabilities up to a constant per node

    @cached_property
    def log_probs(self) -> Tensor:
        return self.logits.log_softmax(-1)

    @cached_property
    def probs(self) -> Tensor:
        return self.logits.softmax(-1)

    @cached_property
    def confidence(self) -> Tensor:
        """Probability of the most likely class: float [R, N]."""
        # in chunks of nodes, to avoid a second [R, N, C]
        return torch.cat([part.softmax(-1).amax(-1) for part in self.logits.split(CHUNK, dim=1)], dim=1)

    @cached_property
    def label(self) -> Tensor:
        """The most likely class: long [R, N]."""
        return self.logits.argmax(-1)

    @staticmethod
    def where(run: Tensor, first: "Prediction", second: "Prediction") -> "Prediction":
        """The first prediction where run [R] is true, the second elsewhere."""
        return Prediction(torch.where(run[:, None, None], first.logits, second.logits))


@dataclass(frozen=True, eq=False)
class Task:
    """All that training may see: a graph without labels, the given labels, and the validation labels."""

    graph: "Data"  # x (dense or sparse CSR), edge_index, perhaps edge_weight; or a StoredGraph; never y
    given: Labels
    validation: Tensor  # long [R, N], -1 = not a validation node
    classes: int
    reserved: Tensor | None = None  # bool [R, N], the test nodes; their labels are not here
    _cache: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, data: "Data", split: Split, classes: int | None = None) -> "Task":
        """The task of a labelled graph; checks graph, split and labels.

        `data.y` may be [N], or [R, N] if runs have different (noisy) labels. Labels of test nodes are not read.
        """
        # a stored graph was checked when it was written; it is read only when needed
        stored = hasattr(data, "unlabelled")
        nodes = int(data.num_nodes or 0) if stored else check_graph(data)
        if split.train.shape[1] != nodes:
            raise InvalidInput(f"the split has {split.train.shape[1]} nodes, the graph has {nodes}")
        for name, mask in (("train", split.train), ("validation", split.val)):
            if not mask.any(dim=1).all():
                run = int((~mask.any(dim=1)).nonzero()[0])
                raise InvalidInput(f"the {name} split of run {run} is empty; it needs at least one labelled node")
        if data.get("y") is None:
            raise InvalidInput("the graph has no labels; set data.y, -1 where a label is unknown")
        shape = split.train.shape
        if data.y.is_floating_point() or data.y.shape not in (shape, shape[1:]):
            raise InvalidInput(
                f"data.y must hold whole numbers, one per node [{nodes}] or per run and node [{shape[0]}, {nodes}], "
                f"got {data.y.dtype} of shape {list(data.y.shape)}"
            )
        label = data.y.long().expand(shape)
        labelled = split.train | split.val
        target = torch.where(labelled, label, -1)
        if (target[labelled] < 0).any():
            run, node = (labelled & (target < 0)).nonzero()[0].tolist()
            raise InvalidInput(
                f"labels must be 0 … C−1; node {node} is in the training or validation split of run {run} "
                f"with label {int(label[run, node])}"
            )
        top = int(target.max())
        classes = top + 1 if classes is None else classes
        if top >= classes:
            raise InvalidInput(f"labels must be 0 … {classes - 1} for {classes} classes, got {top}")
        for run, mask in enumerate(split.train):
            if len(target[run, mask].unique()) < 2:
                raise InvalidInput(
                    f"the training labels of run {run} hold one class only; a classifier needs at least two"
                )
        return cls(
            data.unlabelled() if stored else _unlabelled(data, nodes),
            Labels.given(torch.where(split.train, target, -1)),
            torch.where(split.val, target, -1),
            classes,
            split.test,
        )

    @property
    def runs(self) -> int:
        return self.validation.shape[0]

    @property
    def nodes(self) -> int:
        return self.validation.shape[1]

    @property
    def device(self) -> torch.device:
        return self.validation.device

    @property
    def held(self) -> Tensor:
        """The validation nodes: bool [R, N]."""
        return self.validation >= 0

    def cached(self, make: "Callable[[Data], T]") -> T:
        """`make(graph)` of a frozen part, computed once and shared by all rounds."""
        if make not in self._cache:
            self._cache[make] = make(self.graph)
        result: T = self._cache[make]
        return result

    def to(self, device: torch.device | str) -> "Task":
        # Data.to moves in place, and this task must stay on its device
        reserved = None if self.reserved is None else self.reserved.to(device)
        graph = copy(self.graph).to(device)
        return Task(graph, self.given.to(device), self.validation.to(device), self.classes, reserved)

    def only(self, runs: Sequence[int]) -> "Task":
        """The task of some of the runs."""
        index = torch.as_tensor(runs, device=self.device)
        reserved = None if self.reserved is None else self.reserved[index]
        return Task(self.graph, self.given.only(runs), self.validation[index], self.classes, reserved)


class Model(Protocol):
    """R trained models, as scores and calibrators see them."""

    def predict(self, graph: "Data | Sequence[Data]") -> Prediction:
        """Logits of every node, without dropout; a sequence holds one graph per run."""
        ...

    def sample(self, graph: "Data", rng: Streams, rate: float | None = None) -> Prediction:
        """Logits of every node from one pass with dropout on, at the model's own rate or the one given."""
        ...

    def embed(self, graph: "Data") -> Tensor:
        """The last hidden layer of every node: float [R, N, h]."""
        ...


@dataclass(frozen=True, eq=False)
class Round:
    """What the parts of a method see of one round."""

    index: int  # 1, 2, …
    task: Task
    labels: Labels  # at the start of the round
    raw: Prediction  # of the teacher, averaged over views
    prediction: Prediction  # the same, calibrated
    pool: Tensor  # bool [R, N], nodes that may be adopted
    teacher: Model
    rng: Streams

    @property
    def graph(self) -> "Data":
        return self.task.graph


@dataclass(frozen=True, eq=False)
class Ranking:
    """A score for the adoption of every node."""

    score: Tensor  # float [R, N], -inf = never adopt
    stderr: Tensor | None = None  # float [R, N], of a score that was estimated
    evaluations: int = 0  # of the utility, per run


def one_hot(target: Tensor, classes: int) -> Tensor:
    """One for the target's class, zeros where it is -1: float [..., C]."""
    return torch.nn.functional.one_hot(target.clamp_min(0), classes) * (target >= 0)[..., None].float()


def _map_tensors(labels: Any, change: Callable[[Tensor], Tensor]) -> dict[str, Any]:
    """The fields of a dataclass of tensors, each tensor changed; a field that is None stays None."""
    return {name: None if tensor is None else change(tensor) for name, tensor in vars(labels).items()}


def _unlabelled(data: "Data", nodes: int) -> "Data":
    from torch_geometric.data import Data

    weight = None if data.get("edge_weight") is None else data.edge_weight.float()
    return Data(x=data.x.float(), edge_index=data.edge_index.long(), edge_weight=weight, num_nodes=nodes)
