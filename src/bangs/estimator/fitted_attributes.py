"""Fitted attributes: what a fitted classifier tells of its run, under the names of scikit-learn."""

from copy import deepcopy
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from bangs.estimator.fitted import FittedMember
from bangs.runs.snapshot import Snapshot

Array = npt.NDArray[Any]


class FittedAttributes:
    """Attributes that follow from the snapshot and the members of a fit."""

    snapshot_: Snapshot
    members_: list[FittedMember]
    classes_: Array  # [C]

    @property
    def weights_(self) -> dict[str, Tensor]:
        """The weights of every member by its number and their name, each [R, …] over the folds."""
        return {f"{n}.{name}": value for n, own in enumerate(self.members_) for name, value in own.weights.items()}

    @property
    def labels_(self) -> Array:
        """The labels the chosen model learned from [N]; -1, "" among words or None among bools, where it had none."""
        target = self.snapshot_.target.numpy()
        named = self.classes_[np.maximum(target, 0)]
        if self.classes_.dtype.kind == "b":
            named = named.astype(object)
        unknown: Any = {"U": "", "O": None}.get(named.dtype.kind, -1)
        found: Array = np.where(target >= 0, named, unknown)
        return found

    @property
    def labeled_iter_(self) -> Array:
        """The round in which each node got its label [N]: 0 = given, t = adopted in round t, -1 = none."""
        return self.snapshot_.adopted_round.numpy().copy()

    @property
    def history_(self) -> list[dict[str, Any]]:
        """One row a round, round 0 first."""
        return deepcopy(self.snapshot_.rows)

    @property
    def best_iter_(self) -> int:
        """The round whose student predicts."""
        return self.snapshot_.chosen

    @property
    def validation_score_(self) -> float:
        """Accuracy on labels that the models had not learned; NaN where none could be held back."""
        said, _, label = self.snapshot_.judged
        return float((said.argmax(-1) == label).double().mean()) if len(label) else float("nan")
