"""Saving: a fitted model in one safetensors file, read back without running anything found in it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from bangs.calibration.calibrators import CALIBRATORS, calibrator
from bangs.calibration.crossfit import Crossfit
from bangs.core.rng import Streams
from bangs.errors import BangsError, InvalidInput
from bangs.graphs.propagation import PPR, ExactPPR
from bangs.graphs.push import Push
from bangs.graphs.store import NodeNames, StoreReference
from bangs.nn.models import MODELS, Architecture
from bangs.runs import write_atomic
from bangs.runs.checkpoint import LARGEST, Checkpoint, Damaged, decode, encode
from bangs.runs.snapshot import Snapshot
from bangs.selection.scores import Agreement, Alone, Banzhaf, Chance, Confidence
from bangs.training.sampling import Sampling
from bangs.training.trainer import Trainer
from bangs.utils.files import make_folder, read_plain
from bangs.valuation import banzhaf

FILE = "model.safetensors"
KIND = "bangs model, format 1"
SMALL = 1024  # settings up to this size need no tensor as large to be believed

_PARTS: tuple[Any, ...] = (
    *MODELS.values(),
    *CALIBRATORS.values(),
    *(type(make(None)) for make in banzhaf.ESTIMATORS.values()),
    *(Trainer, Sampling, Crossfit, Banzhaf, Confidence, Chance, Agreement, Alone, PPR, ExactPPR, Push),
)
KNOWN: dict[str, Any] = {part.__name__: part for part in _PARTS}


def save(path: str | Path, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
    """Write tensors and JSON-able facts to the file, or to `model.safetensors` in the folder, whole or not at all."""
    file = model_file(path)
    make_folder(file.parent)
    write_atomic(file, encode(Checkpoint(0, dict(tensors), dict(facts)), KIND))


def load(path: str | Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and facts of a file that `save` wrote; a changed bit is noticed."""
    file = model_file(path)
    try:
        found = decode(read_plain(file, LARGEST), KIND)
    except FileNotFoundError as error:
        raise InvalidInput(f"'{file}' does not exist; `bangs fit` and SelfTrainingClassifier.save write one") from error
    except Damaged as error:
        raise InvalidInput(f"'{file}' cannot be used: {error}; save the model again, or name another") from error
    return found.tensors, found.facts


def model_file(path: str | Path) -> Path:
    """The file itself, or `model.safetensors` in a folder."""
    path = Path(path)
    return path if path.suffix == ".safetensors" else path / FILE


@contextmanager
def sound(path: str | Path) -> Iterator[None]:
    """Turn whatever is wrong with facts from outside into a sentence about the file."""
    try:
        yield
    except BangsError as error:
        raise InvalidInput(f"'{model_file(path)}' cannot be used: {error}") from error
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        raise InvalidInput(f"'{model_file(path)}' is not a model as bangs writes it: {error!r}") from error


def pack_words(name: str, words: "npt.NDArray[Any]") -> dict[str, Tensor]:
    """Words as two tensors, their bytes in UTF-8 and where each ends."""
    spelled = [str(word).encode("utf-8", "surrogatepass") for word in words]
    ends = torch.tensor([len(word) for word in spelled], dtype=torch.long).cumsum(0)
    body = torch.from_numpy(np.frombuffer(b"".join(spelled), dtype=np.uint8).copy())
    return {f"{name}.bytes": body, f"{name}.ends": ends}


def unpack_words(name: str, tensors: Mapping[str, Tensor], count: int) -> "npt.NDArray[Any]":
    """The words that `pack_words` packed: str [count]."""
    body, ends = tensors[f"{name}.bytes"].numpy().tobytes(), tensors[f"{name}.ends"].tolist()
    if len(ends) != count or ends != sorted(ends) or (ends and not 0 <= ends[0] <= ends[-1] == len(body)):
        raise InvalidInput(f"its {name} are not {count:,} words")
    starts = [0, *ends[:-1]]
    words = [body[start:end].decode("utf-8", "surrogatepass") for start, end in zip(starts, ends, strict=True)]
    return np.array(words, dtype=object)


def pack_names(names: Any) -> dict[str, Tensor]:
    """The names of nodes as tensors; none where a store has them."""
    return {} if isinstance(names, NodeNames) else pack_words("names", names)


def unpack_names(tensors: Mapping[str, Tensor], snapshot: Snapshot) -> Any:
    """The names that `pack_names` packed, or those of the snapshot's store."""
    if isinstance(snapshot.graph, StoreReference):
        return NodeNames(snapshot.graph)
    return unpack_words("names", tensors, snapshot.nodes)


def spell(value: Any) -> Any:
    """A parameter for JSON: plain values as they are, parts of bangs by name, of others only what they looked like."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, tuple):
        return [spell(part) for part in value]
    if is_dataclass(value) and KNOWN.get(type(value).__name__) is type(value):
        settings = {own.name: spell(getattr(value, own.name)) for own in fields(value)}
        if not any(isinstance(part, dict) and "own" in part for part in settings.values()):
            return {"part": type(value).__name__, "settings": settings}
    return {"own": repr(value)[:200]}


def read(name: str, value: Any, given: Mapping[str, Any]) -> Any:
    """The parameter that `spell` wrote; one given by the caller comes first."""
    if name in given:
        return given[name]
    if isinstance(value, list):
        return tuple(read(name, part, {}) for part in value)
    if not isinstance(value, dict):
        return value
    if "own" in value:
        raise InvalidInput(
            f"it was saved with a {name} of your own, {value['own']}, which a file cannot hold; "
            f"give it again: load(path, {name}=…)"
        )
    if value["part"] not in KNOWN:
        raise InvalidInput(f"its {name} is a {value['part']!r}, which this version of bangs does not know")
    return KNOWN[value["part"]](**{key: read(key, part, {}) for key, part in value["settings"].items()})


def read_classes(value: Any, count: int) -> "npt.NDArray[Any]":
    """The saved classes: words or numbers, as many as there are."""
    classes = np.array(value)
    if classes.shape != (count,) or classes.dtype.kind not in "biufU":
        raise InvalidInput(f"its classes must be {count:,} words or numbers")
    return classes


def check_calibrator(value: Any) -> None:
    """Raises where a saved calibrator is none: neither a known name nor one of ours."""
    if isinstance(value, str):
        calibrator(value)
    elif type(value) not in (*CALIBRATORS.values(), Crossfit):
        raise InvalidInput(f"its calibrator is {value!r}, which cannot calibrate")


def check_weights(architecture: Architecture, weights: Mapping[str, Tensor], features: int, classes: int) -> None:
    """Raises where the weights are not those of the architecture: names, shapes, number types, finite values."""
    largest = max([SMALL, *(size for weight in weights.values() for size in weight.shape)])
    sizes: dict[str, Any] = {"features": features, "classes": classes}
    part: Any = architecture
    if is_dataclass(part):
        sizes |= {own.name: getattr(part, own.name) for own in fields(part)}
    for name, size in sizes.items():
        # before the network is built, which takes that much memory
        if isinstance(size, int) and size > largest:
            raise InvalidInput(f"it claims {name} = {size:,}, but its largest tensor has {largest:,}")
    wanted = architecture.build(features, classes, Streams((0,))).weights()
    if wanted.keys() != weights.keys():
        odd = sorted(wanted.keys() ^ weights.keys())
        raise InvalidInput(f"its weights are not those of {architecture!r}: {odd[0]!r} stands on one side only")
    for name, value in wanted.items():
        own = weights[name]
        if own.shape != value.shape or own.dtype != value.dtype:
            raise InvalidInput(
                f"weight '{name}' must be {value.dtype} of shape {list(value.shape)}, "
                f"got {own.dtype} of shape {list(own.shape)}"
            )
        if own.is_floating_point() and not torch.isfinite(own).all():
            raise InvalidInput(f"weight '{name}' holds NaN or infinity")
