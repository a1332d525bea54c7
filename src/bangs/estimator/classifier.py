"""SelfTrainingClassifier: graph self-training for people who know scikit-learn."""

import numbers
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import Tensor
from torch_geometric.data import Data

from bangs.calibration.calibrators import Calibrator, calibrator
from bangs.errors import InvalidInput
from bangs.estimator import model_file, serialization
from bangs.estimator.build import from_disk, self_training, training
from bangs.estimator.explain import node_of, reasons
from bangs.estimator.explanation import Explanation, explanation
from bangs.estimator.inference import apply, calibrate_beside
from bangs.estimator.inputs import as_graph, as_labels, as_task, check_columns, in_order, mask_of, names_of, opened
from bangs.estimator.resume import Keeper
from bangs.graphs.store import Store, StoreReference
from bangs.graphs.tables.validation import check_share
from bangs.nn.models import Architecture
from bangs.runs.recorder import Recorder
from bangs.runs.snapshot import Snapshot
from bangs.selection.scores import Score
from bangs.selftraining.loop import Method, Observer, SelfTrainer, State
from bangs.training.sampling import Sampling
from bangs.training.trainer import Trainer
from bangs.utils.devices import choose_device
from bangs.utils.torch_modes import usual_modes

Array = npt.NDArray[Any]

WEIGHTS = "weights."


class SelfTrainingClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """A graph neural network that labels the nodes which teach it most, and learns again.

    Every parameter is stored as given and checked in `fit`. `model`, `selector` and `calibrator` are names (see
    `bangs list models`, …) or parts: an `Architecture` or a whole `Trainer`; a function from a `Round` to a
    `Ranking`; a function from a `Prediction` and a `Task` to a `Prediction`.

    k: nodes adopted a round; None = the pool shared out so that `rounds` rounds adopt half of it, at most 100 a round.
    candidates: K, how many of the most confident nodes play the Banzhaf game; None = 5 k.
    teacher: who labels the next round: the "first" model, the "latest", or the "best" on the validation nodes so far.
    validation: share of the labelled nodes of every class held back, where the data bring no validation nodes.
    epochs, patience: None = 300 and 50, or those of a `Trainer` given as model.
    batches: None = every step sees the whole graph, if it is in memory; a `Sampling` trains in batches with drawn
    neighbourhoods.
    random_state: an int makes `fit` repeatable.

    After `fit` (N nodes, C classes):
    classes_ [C] · labels_ [N], the labels the chosen model learned from, unknown = -1 or "" ·
    labeled_iter_ [N], 0 = given, t = adopted in round t, -1 = never · n_iter_, rounds run · best_iter_, the chosen
    round · termination_condition_, "max_iter", "all_labeled" or "no_change" · history_, one row a round ·
    validation_score_ · n_features_in_ · feature_names_in_, where X was a frame · node_names_, its index, the names in a
    store, else 0 … N−1.
    """

    def __init__(
        self,
        model: str | Architecture | Trainer = "gcn",
        selector: str | Score = "banzhaf",
        calibrator: str | Calibrator = "ets",
        *,
        k: int | None = None,
        candidates: int | None = None,
        rounds: int = 10,
        teacher: Literal["first", "latest", "best"] = "best",
        preset: str = "tuned",
        validation: float = 0.25,
        epochs: int | None = None,
        patience: int | None = None,
        batches: Sampling | None = None,
        device: str = "auto",
        random_state: Any = 0,
    ):
        self.model = model
        self.selector = selector
        self.calibrator = calibrator
        self.k = k
        self.candidates = candidates
        self.rounds = rounds
        self.teacher = teacher
        self.preset = preset
        self.validation = validation
        self.epochs = epochs
        self.patience = patience
        self.batches = batches
        self.device = device
        self.random_state = random_state

    @usual_modes()
    def fit(
        self,
        X: Any,
        edge_index: Any = None,
        y: Any = None,
        *,
        edge_weight: Any = None,
        observers: Sequence[Observer] = (),
        keeper: Keeper | None = None,
    ) -> Self:
        """Learn from a PyG `Data`, from features X [N, F], edges [2, E] and labels y [N], or from a `Store`.

        Unknown labels are -1, None, NaN or "". Of a `Data` with masks only the labels under `train_mask` and
        `val_mask` are read. Where X is a frame, a series y is read by its index, and rows it does not name are
        unknown. An undirected edge is listed in both directions, as PyG does (`torch_geometric.utils.to_undirected`).
        A `Store` of more than 1 GiB stays on the disk and is learned from in batches, the usual ones if none are
        given; the fitted model then refers to it. Observers are called with the state of every round. A `Keeper`
        keeps the rounds in a folder, from which a fit that was stopped or killed goes on.
        """
        seed, source = self._seed(), opened(X)
        task, self.classes_ = as_task(source, edge_index, y, edge_weight, seed, self.validation)
        task = task.to(choose_device(self.device))
        store = source if isinstance(source, Store) else None
        learner, method = self.recipe(int((~task.given.known & ~task.held).sum()), store)
        recorder = Recorder(method.calibrate, where=None if store is None else StoreReference.of(store))
        resume = None if keeper is None else keeper.resume(task, recorder)
        keep: Sequence[Observer] = () if keeper is None else (lambda state: keeper.keep(state, recorder),)
        state = SelfTrainer(learner, method, (recorder, *keep, *observers)).fit(task, [seed], resume)
        self._remember(X, learner.model, recorder, state)
        return self

    def recipe(self, pool: int, store: Store | None = None) -> tuple[Trainer, Method]:
        """What the parameters describe for a graph of which `pool` nodes have no label; checks every one of them.

        Give a `store` that stays on the disk, and parts that need the whole graph at once are refused.
        """
        check_share(self.validation)
        choose_device(self.device)
        learner = training(self.model, self.preset, self.epochs, self.patience, self.batches)
        calibrate = self._calibrator()
        method = self_training(self.selector, calibrate, self.k, self.candidates, self.rounds, self.teacher, pool)
        return (learner if store is None else from_disk(learner, method, store)), method

    @usual_modes()
    def predict_proba(self, X: Any = None, edge_index: Any = None, *, edge_weight: Any = None) -> Array:
        """Calibrated probabilities float [N, C]: of the fitted graph, or of another one with the same columns.

        X may also be a `Store`, which is read piece by piece, where the model is a gcn, graphsage or sgc and its
        calibrator looks at no edges.
        """
        return _probs(self._calibrated_logits(X, edge_index, edge_weight))

    @usual_modes()
    def predict(self, X: Any = None, edge_index: Any = None, *, edge_weight: Any = None) -> Array:
        """The most likely class [N] of every node of the fitted graph, or of another one."""
        logits = self._calibrated_logits(X, edge_index, edge_weight)
        return np.asarray(self.classes_[logits.argmax(1).numpy()])

    def score(self, X: Any, edge_index: Any = None, y: Any = None, *, edge_weight: Any = None) -> float:
        """Accuracy over the nodes with a label; of a `Data` with a `test_mask` over its test nodes."""
        said = self.predict(X, edge_index, edge_weight=edge_weight)
        own = isinstance(X, Data | Store)
        y = X.get("y") if own and y is None else y
        if y is None:
            raise InvalidInput("a score needs labels; give y, -1 where a label is unknown")
        target, classes = as_labels(in_order(X, y), len(said))
        counted = target >= 0
        if own and (test := mask_of(X, "test", len(said))) is not None:
            counted &= test
        if not counted.any():
            raise InvalidInput("no node to score has a label")
        nodes = counted.numpy()
        return float(np.mean(said[nodes] == classes[target.numpy()[nodes]]))

    @usual_modes()
    def explain(self, node: int | str, top: int = 5) -> Explanation:
        """Why a node of the fitted graph, by its name, has the label it has; `print` it to read it as text.

        A number is the row of X, or the name of a node where nodes are called by numbers.
        """
        check_is_fitted(self)
        found = reasons(self.snapshot_, node_of(node, self.node_names_), top)
        return explanation(found, self.node_names_, self.classes_.tolist(), self.selector)

    @usual_modes()
    def save(self, path: str | Path) -> None:
        """Write all that `load` needs to one safetensors file; a folder gets a `model.safetensors`."""
        check_is_fitted(self)
        tensors, facts = self.snapshot_.to_plain(model_file.model_file(path).parent)
        model_file.save(
            path,
            tensors
            | {f"{WEIGHTS}{name}": value for name, value in self.weights_.items()}
            | model_file.pack_names(self.node_names_),
            {
                "snapshot": facts,
                "params": {name: serialization.spell(value) for name, value in self.get_params(deep=False).items()},
                "architecture": serialization.spell(self.architecture_),
                "classes": self.classes_.tolist(),
                "features": self.n_features_in_,
                "feature_names": [str(name) for name in getattr(self, "feature_names_in_", ())],
                "rounds": self.n_iter_,
                "ended": self.termination_condition_,
            },
        )

    @classmethod
    @usual_modes()
    def load(cls, path: str | Path, *, store: str | Path | None = None, **parts: Any) -> Self:
        """The classifier saved at the path.

        Parts of your own cannot be saved; give them again by the parameter's name: `load(path, calibrator=Mine())`.
        A model of a graph that stays on the disk looks for it where it was; `store` says where it lies now.
        """
        tensors, facts = model_file.load(path)
        weights = {name.removeprefix(WEIGHTS): t for name, t in tensors.items() if name.startswith(WEIGHTS)}
        with model_file.sound(path):
            found = cls(**{name: serialization.read(name, value, parts) for name, value in facts["params"].items()})
            if "calibrator" not in parts:
                serialization.check_calibrator(found.calibrator)
            found.n_features_in_ = int(facts["features"])
            if facts["feature_names"]:
                found.feature_names_in_ = np.array([str(name) for name in facts["feature_names"]], dtype=object)
            architecture = _own_architecture(parts) or serialization.read("model", facts["architecture"], parts)
            serialization.check_weights(architecture, weights, found.n_features_in_, len(facts["classes"]))
            found.snapshot_ = Snapshot.from_plain(tensors, facts["snapshot"], model_file.model_file(path).parent)
            if not found.history_:
                raise InvalidInput("it holds no row of any round; it was not written by bangs")
            found.classes_ = model_file.read_classes(facts["classes"], found.snapshot_.classes)
            if store is not None:
                found.snapshot_ = found.snapshot_.with_store(store)
            found.node_names_ = model_file.unpack_names(tensors, found.snapshot_)
            found.architecture_, found.weights_ = architecture, weights
            found.n_iter_, found.termination_condition_ = int(facts["rounds"]), str(facts["ended"])
        return found

    @property
    def labels_(self) -> Array:
        """The labels the chosen model learned from [N]; -1, or "" among words, where it had none."""
        target = self.snapshot_.target.numpy()
        named = self.classes_[np.maximum(target, 0)]
        return np.where(target >= 0, named, "" if self.classes_.dtype.kind == "U" else -1)

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
        """Accuracy on the nodes held for validation, which also chose the round."""
        return float(self.snapshot_.rows[self.snapshot_.chosen]["validation"][0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _seed(self) -> int:
        if isinstance(self.random_state, numbers.Integral):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31))

    def _remember(self, X: Any, architecture: Architecture, recorder: Recorder, state: State) -> None:
        """Keep what the run left; everything on the CPU."""
        self.snapshot_ = recorder.snapshot()
        self.architecture_ = architecture
        self.weights_ = recorder.weights
        self.n_features_in_ = int(state.student.learner.task.graph.x.shape[1])
        if isinstance(X, pd.DataFrame) and all(isinstance(name, str) for name in X.columns):
            self.feature_names_in_ = np.array(X.columns, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.node_names_ = names_of(X, self.snapshot_.nodes)
        self.n_iter_ = sum(row["took_part"][0] for row in self.snapshot_.rows[1:])
        task = state.student.learner.task
        left = bool((~state.labels.known & ~task.held).any())
        ended = "no_change" if left else "all_labeled"
        self.termination_condition_ = "max_iter" if bool(state.running.all()) else ended

    def _calibrated_logits(self, X: Any, edge_index: Any, edge_weight: Any) -> Tensor:
        """Logits [N, C] of the fitted graph, or of another one."""
        check_is_fitted(self)
        if X is None:
            return self.snapshot_.calibrated
        graph = X.unlabelled() if isinstance(X, Store) else as_graph(X, edge_index, edge_weight)
        if graph.x.shape[1] != self.n_features_in_:
            raise InvalidInput(
                f"X has {graph.x.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} "
                "features as input: those it was fitted with"
            )
        check_columns(X, getattr(self, "feature_names_in_", None))
        logits = apply(self.architecture_, self.weights_, len(self.classes_), graph, choose_device(self.device))
        return calibrate_beside(self.snapshot_, logits, graph, self._calibrator())

    def _calibrator(self) -> Calibrator:
        return calibrator(self.calibrator) if isinstance(self.calibrator, str) else self.calibrator


def _own_architecture(parts: dict[str, Any]) -> Architecture | None:
    model = parts.get("model")
    return model.model if isinstance(model, Trainer) else model


def _probs(logits: Tensor) -> Array:
    return logits.double().softmax(-1).numpy()
