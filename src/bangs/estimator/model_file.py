"""A model's file: tensors and facts in one safetensors file, read back without running anything found in it."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from bangs.errors import BangsError, InvalidInput
from bangs.graphs.edges import EdgeList
from bangs.runs.checkpoint import BEGIN, LARGEST, Checkpoint, Damaged, decode, encode
from bangs.runs.snapshot import Snapshot
from bangs.utils.files import check_replaceable, make_folder, read_plain, write_atomic

FILE = "model.safetensors"
KIND = "bangs model, format 1"
WEIGHTS = "weights."  # before the names of tensors that are weights


def save(path: str | Path, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
    """Write tensors and JSON-able facts to the file, or to `model.safetensors` in the folder, whole or not at all."""
    file = model_file(path)
    make_folder(file.parent)
    check_replaceable(file, BEGIN, "fit")
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


def pack_words(name: str, words: Iterable[Any]) -> dict[str, Tensor]:
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
    return pack_words("names", names) if isinstance(names, np.ndarray | list) else {}


def unpack_names(tensors: Mapping[str, Tensor], snapshot: Snapshot) -> Any:
    """The names that `pack_names` packed, or those of the snapshot's store."""
    if isinstance(snapshot.graph, EdgeList):
        return unpack_words("names", tensors, snapshot.nodes)
    from bangs.graphs.store import NodeNames  # imports the readers of tables, which takes a second

    return NodeNames(snapshot.graph)


def read_classes(value: Any, count: int) -> "npt.NDArray[Any]":
    """The saved classes: words or numbers, as many as there are."""
    classes = np.array(value)
    if classes.shape != (count,) or classes.dtype.kind not in "biufU":
        raise InvalidInput(f"its classes must be {count:,} words or numbers")
    return classes
