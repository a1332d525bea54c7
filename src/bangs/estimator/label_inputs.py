"""Label inputs: labels from arrays, series and dicts as class numbers."""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d
from torch import Tensor
from torch_geometric.data import Data

from bangs.core.types import Split
from bangs.errors import InvalidInput
from bangs.estimator.edge_inputs import rows_by_name
from bangs.graphs.store import Store
from bangs.graphs.tables.diagnostics import listed
from bangs.graphs.tables.labels import case_variants, many_classes, placeholders
from bangs.graphs.tables.numbers import MISSING

Classes = npt.NDArray[Any]

LARGE_NUMBERS = "labels must be words or 64-bit numbers; write [str(label) for label in y]"
UNKNOWN_AS_TEXT = (*MISSING, "-1", "-1.0", "nat", "<na>")  # what `str` makes of unknown labels
MAX_FLOAT_CLASSES = 10  # different numbers with decimals that are classes, even if most of them occur once


def in_order(X: Any, y: Any) -> Any:
    """Labels in the order of the rows of X.

    A series, or a dict from names to labels, is put in the order of the index of the frame X; rows it does not name are
    unknown. A series with the index 0, 1, … keeps its order, if the rows of X have other names. The same holds for a
    frame of one column.
    """
    y = pd.Series(list(y.values()), index=pd.Index(list(y), tupleize_cols=False)) if isinstance(y, Mapping) else y
    if not isinstance(X, pd.DataFrame) or not isinstance(y, pd.Series | pd.DataFrame) or y.index.equals(X.index):
        return y
    for argument, index in (("X", X.index), ("y", y.index)):
        if not index.is_unique:
            raise InvalidInput(
                f"the index of {argument} must name every row once, or be the same for X and y, got "
                f"{index[index.duplicated()][0]!r} twice; give y.to_numpy() if its labels stand in the order of rows"
            )
    rows = rows_by_name(X.index, y.index)
    unknown = rows < 0
    if not unknown.any():
        return y.set_axis(X.index[rows]).reindex(X.index)
    if y.index.equals(pd.RangeIndex(len(X))):
        return y
    wrong, names = y.index[unknown].tolist()[0], listed([str(name) for name in X.index[:3]])
    raise InvalidInput(
        f"y has a label for {wrong!r}, which is not the name of a node; the names in the index of X or in the "
        f"graph are {names} …. Write y with these names, or y.to_numpy() if its labels stand in the order of the rows"
    )


def label_rows(X: Any, y: Any, nodes: int, names: Any = None) -> pd.DataFrame | None:
    """What `in_order` matches labels y with: a frame whose index names the nodes; None = y has the order of the rows.

    It is X itself, or one with the `names` [N] of the nodes of an X that is no frame, such as those of a networkx
    graph. A series is matched with these only if its index has no other names. A dict is matched with row numbers if
    there are no names.
    """
    if isinstance(X, pd.DataFrame):
        return X
    index = None if names is None else pd.Index(names, tupleize_cols=False)
    if isinstance(y, Mapping):
        return pd.DataFrame(index=pd.RangeIndex(nodes) if index is None else index)
    if index is None or not isinstance(y, pd.Series | pd.DataFrame) or y.index.equals(pd.RangeIndex(len(y))):
        return None
    return pd.DataFrame(index=index) if index.is_unique and (rows_by_name(index, y.index) >= 0).all() else None


def as_labels(y: Any, nodes: int, read: Tensor | None = None) -> tuple[Tensor, Classes]:
    """Class numbers long [N], -1 = unknown, and the classes in order.

    Unknown labels are -1, None, NaN, an empty string and a masked entry. A label 1.0 becomes 1, a label 0.5 stays;
    measurements, which hardly repeat, are refused. Labels outside the mask `read` [N] are unknown, whatever they are.
    """
    values, masked = label_array(y), np.ma.getmaskarray(y) if np.ma.isMaskedArray(y) else None
    if values.ndim == 2 and values.shape[1] == 1:
        values = column_or_1d(values, warn=not isinstance(y, pd.DataFrame))
    if values.shape != (nodes,):
        raise InvalidInput(f"y must hold one label per node [{nodes}], got shape {list(values.shape)}")
    values, known = _known(values)
    if masked is not None:
        known &= ~masked.reshape(nodes)
    if read is not None:
        known &= read.numpy()
    if not known.any():
        raise InvalidInput(
            "no node has a label; label some nodes of every class, and write -1 (or None among words) for the others"
        )
    values = _float_labels(values, known) if values.dtype.kind == "f" else values
    if values.dtype.kind != "f":
        check_classification_targets(values[known])
    classes, codes = np.unique(values[known], return_inverse=True)
    out = np.full(nodes, -1, dtype=np.int64)
    out[known] = codes
    return torch.from_numpy(out), classes


def as_sample_weights(sample_weight: Any, nodes: int) -> "npt.NDArray[np.float64]":
    """The weights of nodes in a score: float [N], none negative."""
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"sample_weight must hold one number per node: {error}") from error
    if weights.shape != (nodes,) or not (np.isfinite(weights) & (weights >= 0)).all():
        raise InvalidInput(
            f"sample_weight must hold one number from 0 per node [{nodes}], got shape {list(weights.shape)}"
        )
    return weights


def labelled(X: Any, y: Any, nodes: int) -> tuple[Tensor, Classes, Split | None]:
    """Class numbers [N], the classes, and the split [1, N] from the masks of a Data or Store; None without masks.

    With masks, only labels under `train_mask` and `val_mask` are read, or all but those of test nodes if there is no
    `train_mask`.
    """
    data = X if isinstance(X, Data | Store) else Data()
    y = data.get("y") if y is None else in_order(label_rows(X, y, nodes), y)
    if y is None:
        raise InvalidInput("requires y to be passed, but the target y is None: give one label per node, -1 = unknown")
    train, *others = (mask_of(data, name, nodes) for name in ("train", "val", "test"))
    masked = any(mask is not None for mask in (train, *others))
    val, test = (torch.zeros(nodes, dtype=torch.bool) if mask is None else mask for mask in others)
    train = ~val & ~test if train is None else train
    target, classes = as_labels(y, nodes, train | val if masked else None)
    known = target >= 0
    if warning := many_classes(len(classes), int(known.sum())):  # they may be ids or measurements
        warnings.warn(warning, stacklevel=4)
    return target, classes, Split((train & known)[None], (val & known)[None], test[None]) if masked else None


def mask_of(data: Data | Store, name: str, nodes: int) -> Tensor | None:
    """The mask `{name}_mask` [N] of a Data or Store; the first of several splits."""
    mask = data.get(f"{name}_mask")
    if isinstance(data, Store) and mask is not None and mask.dim() == 2:
        mask = mask[:, 0]
    if mask is not None and (mask.dtype != torch.bool or mask.shape != (nodes,)):
        raise InvalidInput(
            f"data.{name}_mask must be bool with one entry per node [{nodes}], got {mask.dtype} of shape "
            f"{list(mask.shape)}; of several splits take one column"
        )
    return None if mask is None else mask.cpu()


def check_class_names(classes: Classes, keep: Any) -> None:
    """Raises where a class not in `keep` looks like "no label", or differs from another in capital letters only."""
    kept = [keep] if isinstance(keep, str) else list(keep) if isinstance(keep, list | tuple | set) else None
    if kept is None or not all(isinstance(name, str) for name in kept):
        raise InvalidInput(f"keep must be a list of labels that are words, such as ['unknown'], got {keep!r}")
    names = classes.tolist() if classes.dtype.kind == "U" else []
    no_label = {*placeholders(names), *(name for name in names if name.strip().lower() in UNKNOWN_AS_TEXT)}
    if refused := [name for name in names if name in no_label and name not in kept]:
        raise InvalidInput(
            f'class {listed(refused)} looks like a word for "no label"; if it means that, write None instead; if it is '
            f"a class, keep it: SelfTrainingClassifier(keep={[*kept, *refused]})"
        )
    for variants in case_variants(names):
        if not set(variants) <= set(kept):
            raise InvalidInput(
                f"classes {listed(variants)} differ in capital letters only; if they are one, write them alike; if "
                f"not, keep them: SelfTrainingClassifier(keep={list(dict.fromkeys([*kept, *variants]))})"
            )


def _float_labels(values: Classes, known: npt.NDArray[np.bool_]) -> Classes:
    """Float labels as int64 where all are whole numbers, else unchanged; raises where they hardly repeat."""
    if not np.isfinite(values[known]).all():
        raise InvalidInput("Input contains infinity: labels must be words or finite numbers")
    if bool((np.mod(values[known], 1) == 0).all()):
        if np.abs(values[known]).max() >= 2.0**63:
            raise InvalidInput(LARGE_NUMBERS)
        return np.where(known, values, -1).astype(np.int64)
    classes, labels = len(np.unique(values[known])), int(known.sum())
    if many_classes(classes, labels) or (classes > MAX_FLOAT_CLASSES and 2 * classes > labels):
        raise InvalidInput(
            f"Unknown label type: continuous. {labels:,} labels are {classes:,} different numbers; a classifier needs "
            "classes, such as pandas.cut(y, 5).codes"
        )
    return values


def _known(values: Classes) -> tuple[Classes, npt.NDArray[np.bool_]]:
    """The labels, and which of them are known: bool [N]."""
    if values.dtype.kind == "O":
        return _known_objects(values)
    if values.dtype.kind in "mM":
        raise InvalidInput(f"labels must be all words or all numbers, got {values.dtype}; write y.astype(str)")
    if values.dtype.kind in "US":  # numpy turns a -1 among strings into "-1"
        return values, (values != values.dtype.type()) & (values.astype(str) != "-1")
    return values, (values != -1) & (~np.isnan(values) if values.dtype.kind == "f" else True)


def label_array(y: Any) -> Classes:
    """The labels as an array; NaN among strings stays NaN, where numpy would turn it into 'nan'."""
    if isinstance(y, Tensor):
        return y.detach().cpu().numpy()
    if isinstance(y, pd.Series | pd.DataFrame):
        return y.to_numpy(dtype=object)
    try:
        values = np.asarray(y)
    except ValueError as error:
        raise InvalidInput(f"y must hold one label per node: {error}") from error
    maybe_mixed = values.dtype.kind in "US" and not isinstance(y, np.ndarray)
    return np.array(y, dtype=object) if maybe_mixed else values


def _known_objects(values: Classes) -> tuple[Classes, npt.NDArray[np.bool_]]:
    """An array of Python objects as strings, bools or numbers, and which of them are known."""
    known = np.array([not _is_unknown(value) for value in values], dtype=bool)
    kinds = {str if isinstance(value, str) else type(value) for value in values[known]}
    if kinds <= {str}:
        return np.where(known, values, "").astype(str), known
    if kinds <= {bool, np.bool_}:
        return np.where(known, values, False).astype(bool), known
    if all(issubclass(kind, int | float | np.number | np.bool_) for kind in kinds):
        return _whole_or_float(np.where(known, values, -1)), known
    names = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise InvalidInput(
        f"labels must be all words or all numbers, got a mixture of {names}; write [str(label) for label in y]"
    )


def _is_unknown(value: Any) -> bool:
    if value is None or value is pd.NA or value != value or value == "":
        return True
    return (isinstance(value, int | float | np.number) and value == -1) or (isinstance(value, str) and value == "-1")


def _whole_or_float(values: Classes) -> Classes:
    """Python numbers as int64 where all are whole, since float64 is not exact above 2^53; else as float64."""
    if not all(float(value).is_integer() for value in values):
        return values.astype(np.float64)
    try:
        return np.array([int(value) for value in values], dtype=np.int64)
    except OverflowError as error:
        raise InvalidInput(LARGE_NUMBERS) from error
