"""SavedRun: the run of a saved model, read from its file without building the model."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from bangs.estimator import model_file
from bangs.estimator.explanation import Explanation, count_models, explain
from bangs.runs.snapshot import Snapshot
from bangs.utils.threads import thread_count, threads

if TYPE_CHECKING:
    from bangs.suggestion.suggest import Suggestions


@dataclass(frozen=True, eq=False)
class SavedRun:
    """The run of a saved model: enough to explain its labels and to write its report, and quick to read."""

    snapshot: Snapshot
    names: Any  # of the nodes: an array, or `NodeNames` of a store
    classes: list[Any]
    selector: Any  # the parameter; a dict where it was a part
    models: int = 1  # how many models are averaged

    def explain(self, node: Any, top: int = 5) -> Explanation:
        """Why a node, by its name or number, has the label it has."""
        with threads(thread_count(self.snapshot.nodes)):
            return explain(self.snapshot, node, self.names, self.classes, top, self.selector, self.models)

    def suggest(self, count: int = 20, strategy: str | None = None, *, exclude: Tensor | None = None) -> "Suggestions":
        """The nodes whose labels would help most, with a reason each; nodes in `exclude` bool [N] are left out."""
        from bangs.suggestion.suggest import suggest  # imports the valuation, which an explanation does not need

        with threads(thread_count(self.snapshot.nodes)):
            return suggest(self.snapshot, self.names, self.classes, count, strategy, exclude=exclude)


def read_saved_run(path: str | Path, store: str | Path | None = None) -> SavedRun:
    """The run of the model saved at the path; `store` says where its graph on disk lies, if it was moved."""
    tensors, facts = model_file.load(path)
    with model_file.explain_errors(path):
        snapshot, classes, names = model_file.read_run(path, tensors, facts, store)
        models = count_models(model_file.weights_in(tensors))
        return SavedRun(snapshot, names, classes.tolist(), facts["params"]["selector"], models)
