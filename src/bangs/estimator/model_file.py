"""Model file: a fitted model in one safetensors file, and its run, read without building the model.

Nothing from the file is executed.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from bangs.errors import BangsError, InvalidInput
from bangs.estimator.explanation import Explanation, explain
from bangs.estimator.explanation_facts import Heaviest, heaviest
from bangs.graphs.edges import EdgeList
from bangs.runs.checkpoint_file import FILE_START, MAX_BYTES, Checkpoint, Damaged, decode, encode
from bangs.runs.snapshot import Snapshot
from bangs.utils.files import check_replaceable, make_folder, read_regular_file, write_atomic
from bangs.utils.threads import thread_count, threads

if TYPE_CHECKING:
    from bangs.suggestion.suggest import Suggestions

FILE = "model.safetensors"
KIND = "bangs model, format 1"
WEIGHTS = "weights."  # before the names of tensors that are weights


@dataclass(frozen=True, eq=False)
class SavedRun:
    """The run of a saved model: enough to explain its labels and to write its report, and quick to read."""

    snapshot: Snapshot
    names: Any  # of the nodes: an array, or `NodeNames` of a store
    classes: list[Any]
    selector: Any  # the parameter; a dict where it was a part
    model: Heaviest | None = None  # where several are averaged
    seed: int = 0  # of the fit

    def explain(self, node: Any, top: int = 5) -> Explanation:
        """Why a node, by its name or number, has the label it has."""
        with threads(thread_count(self.snapshot.nodes)):
            return explain(self.snapshot, node, self.names, self.classes, top, self.selector, self.model)

    def suggest(self, count: int = 20, strategy: str | None = None, *, exclude: Tensor | None = None) -> "Suggestions":
        """The nodes whose labels would help most, with a reason each; nodes in `exclude` bool [N] are left out."""
        from bangs.suggestion.suggest import suggest  # imports the valuation, which an explanation does not need

        with threads(thread_count(self.snapshot.nodes)):
            return suggest(self.snapshot, self.names, self.classes, count, strategy, seed=self.seed, exclude=exclude)


def read_saved_run(path: str | Path, store: str | Path | None = None) -> SavedRun:
    """The run of the model saved at the path; `store` says where its graph on disk lies, if it was moved."""
    tensors, facts = load(path)
    with explain_errors(path):
        return run_in(path, tensors, facts, store)


def save(path: str | Path, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
    """Write tensors and JSON values to the file, or to `model.safetensors` in a folder, atomically."""
    file = model_file(path)
    make_folder(file.parent)
    check_replaceable(file, FILE_START, "fit")
    write_atomic(file, encode(Checkpoint(0, dict(tensors), dict(facts)), KIND))


def load(path: str | Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and JSON values of a file that `save` wrote; its checksum is verified."""
    file = model_file(path)
    try:
        checkpoint = decode(read_regular_file(file, MAX_BYTES), KIND)
    except FileNotFoundError as error:
        raise InvalidInput(
            f"'{file}' does not exist; name a folder that `bangs fit` wrote, or a file of SelfTrainingClassifier.save"
        ) from error
    except Damaged as error:
        raise InvalidInput(f"'{file}' cannot be used: {error}; save the model again, or name another") from error
    return checkpoint.tensors, checkpoint.facts


def model_file(path: str | Path) -> Path:
    """The file itself, or `model.safetensors` in a folder."""
    path = Path(path)
    return path if path.suffix == ".safetensors" or path.is_file() else path / FILE


@contextmanager
def explain_errors(path: str | Path) -> Iterator[None]:
    """Turn errors that invalid contents raise into one sentence about the file."""
    try:
        yield
    except BangsError as error:
        raise InvalidInput(f"'{model_file(path)}' cannot be used: {error}") from error
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        raise InvalidInput(f"'{model_file(path)}' is not a model as bangs writes it: {error!r}") from error


def weights_in(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights of the members among the tensors of a file, by their names `number.name`."""
    return {name.removeprefix(WEIGHTS): tensor for name, tensor in tensors.items() if name.startswith(WEIGHTS)}


def pack_names(names: Any) -> dict[str, Tensor]:
    """The names of nodes as two tensors, UTF-8 bytes and the end of each name; empty where a store has the names."""
    if not isinstance(names, np.ndarray | list):
        return {}
    encoded = [str(name).encode("utf-8", "surrogatepass") for name in names]
    ends = torch.tensor([len(name) for name in encoded], dtype=torch.long).cumsum(0)
    body = torch.from_numpy(np.frombuffer(b"".join(encoded), dtype=np.uint8).copy())
    return {"names.bytes": body, "names.ends": ends}


def run_in(
    path: str | Path, tensors: Mapping[str, Tensor], facts: Mapping[str, Any], store: str | Path | None
) -> SavedRun:
    """The run among the tensors and JSON values of a file; see `read_saved_run`."""
    snapshot = Snapshot.from_plain(tensors, facts["snapshot"], model_file(path).parent)
    if store is not None:
        snapshot = snapshot.with_store(store)
    classes = np.array(facts["classes"])
    if classes.shape != (snapshot.classes,) or classes.dtype.kind not in "biufU":
        raise InvalidInput(f"its classes must be {snapshot.classes:,} words or numbers")
    names: Any
    if isinstance(snapshot.graph, EdgeList):
        names = _unpack_names(tensors, snapshot.nodes)
    else:
        from bangs.graphs.store import NodeNames  # imports the readers of tables, which takes a second

        names = NodeNames(snapshot.graph)
    model = heaviest(facts["leaderboard"])
    return SavedRun(snapshot, names, classes.tolist(), facts["params"]["selector"], model, int(facts["seed"]))


def _unpack_names(tensors: Mapping[str, Tensor], count: int) -> "npt.NDArray[Any]":
    """The names that `pack_names` packed: str [count]."""
    body, ends = tensors["names.bytes"].numpy().tobytes(), tensors["names.ends"].tolist()
    if len(ends) != count or ends != sorted(ends) or (ends and not 0 <= ends[0] <= ends[-1] == len(body)):
        raise InvalidInput(f"its names are not {count:,} words")
    starts = [0, *ends[:-1]]
    names = [body[start:end].decode("utf-8", "surrogatepass") for start, end in zip(starts, ends, strict=True)]
    return np.array(names, dtype=object)
