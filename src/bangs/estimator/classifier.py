"""SelfTrainingClassifier: graph self-training as a scikit-learn classifier."""

import numbers
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted
from torch import Tensor
from torch_geometric.data import Data

from bangs.calibration.calibrators import Calibrator
from bangs.core.types import Task
from bangs.errors import InvalidInput
from bangs.estimator import saved_classifier
from bangs.estimator.candidate_search import CandidateSearch, Ensemble, Progress
from bangs.estimator.candidates import Candidate, refined
from bangs.estimator.class_weights import check_class_weight
from bangs.estimator.edge_inputs import as_pandas, is_table, named_nodes, row_names
from bangs.estimator.explanation import Explanation, explain
from bangs.estimator.explanation_facts import heaviest
from bangs.estimator.feature_scaling import FeatureScaling
from bangs.estimator.fit_checkpoints import FitCheckpoints
from bangs.estimator.fitted_attributes import (
    FittedAttributes,
    fitted_members,
    snapshot_of,
    with_points,
)
from bangs.estimator.folds import check_folds, seeds_of
from bangs.estimator.inference import as_calibrator, predict_logits
from bangs.estimator.inputs import Inputs, prepare
from bangs.estimator.label_inputs import as_labels, as_sample_weights, in_order, label_rows, mask_of
from bangs.estimator.linear import LinearTrainer
from bangs.estimator.members import View
from bangs.estimator.parameters import build_candidates, without_effect
from bangs.estimator.training_data import TrainingData, settle_class_weights, tasks_of, training_data
from bangs.graphs.splits import check_share
from bangs.graphs.store import Store, StoreReference
from bangs.graphs.structural_features import STRUCTURE_RULE
from bangs.graphs.tables.read_options import SCALES
from bangs.nn.models import Architecture
from bangs.selection.scores import Score
from bangs.selftraining.defaults import TEACHER, TeacherChoice
from bangs.selftraining.loop import Observer
from bangs.suggestion.suggest import Suggestions, suggest
from bangs.training.neighbour_sampling import Sampling
from bangs.training.trainer import Trainer
from bangs.utils.devices import choose_device
from bangs.utils.setting_checks import check_choice
from bangs.utils.threads import thread_count, threads
from bangs.utils.torch_modes import default_torch_modes

Array = npt.NDArray[Any]


class SelfTrainingClassifier(FittedAttributes, ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """A classifier of the nodes of a graph that learns from few labels and its own pseudo-labels.

    Every parameter is stored as given and checked in `fit`. `model`, `selector` and `calibrator` are names (see
    `bangs list models`, …) or parts: an `Architecture` or a `Trainer`; a function from a `Round` to a `Ranking`; a
    function from a `Prediction` and a `Task` to a `Prediction`.

    model: "auto" tries linear models on propagated features, an APPNP where the graph is small, and other neural
    networks where a time limit is given, and averages them by their accuracy on held-out labels.
    method: "soft" (all nodes get a distribution, made anew each round), "soft-aligned" (with the class shares of the
    labels), "bangs-soft" (weighted by Banzhaf value), "hard" (k nodes per round get a class), "raw" (no pseudo-labels);
    "auto" = soft, or hard where a selector is given or the graph stays on the disk.
    selector: which nodes the hard method adopts; None = "banzhaf".
    features: what a model sees of a node: "features", its position in the graph ("structure"), or "both";
    "auto" tries all where the model is "auto" too.
    scale: "standard" gives all columns of X but 0/1 ones mean 0 and deviation 1, "none" takes X as it is. "auto"
    standardises an array if its columns have different units, and the number columns of a frame, except small counts
    and 32 or more columns of one unit, such as an embedding.
    class_weight: how much a label counts, by its class, where models learn and are judged. "balanced" gives all classes
    the same weight in all, None all labels, and a dict names weights. "auto" is "balanced", unless uneven labels look
    like a random sample of the nodes: then classes weigh about as much as they occur.
    folds: every label is held out from the model of one fold and learned by the others; predictions are the mean of
    the models. None = 4, where neither the data have validation nodes nor `validation` is given.
    validation: share of the labels of every class that is held out from one model, instead of folds.
    k: nodes adopted per round; None = all rounds together adopt half of the pool, at most 100 nodes per round.
    candidates: K, how many of the most confident nodes play the Banzhaf game; None = 5 k.
    rounds: rounds of self-training at most; None = 3 of soft labels, 10 of hard ones.
    teacher: who labels the next round of hard labels: the "first" model, the "latest", or the "best" so far.
    epochs, patience: None = 300 and 50, or those of a `Trainer` given as model.
    batches: None = every step sees the whole graph, if it is in memory; a `Sampling` trains in batches with sampled
    neighbours.
    time_limit: seconds after which no further candidate is tried; results then depend on the speed of the machine.
    directed: an edge goes from source to target only; else it goes both ways, however it is listed.
    fill: "mean" puts the mean of a frame's column where a number or date is missing; None refuses such a frame.
    keep: labels that are classes, though they look like "no label" (`unknown`, `TBD`) or differ from another class in
    capital letters only; other such labels are refused.
    random_state: an int makes `fit` repeatable.

    After `fit` (N nodes, C classes):
    classes_ [C] · labels_ [N], the labels the chosen model learned from, unknown = -1, "" or None ·
    labeled_iter_ [N], 0 = given, t = adopted in round t, -1 = never · n_iter_, rounds run · best_iter_, the chosen
    round · termination_condition_, "max_iter", "all_labeled" or "no_change" · history_, one row per round ·
    validation_score_, accuracy on held-out labels · leaderboard_, a row for every candidate · notes_, what the user
    should know about the labels · threads_, how many the fit used · n_features_in_ · feature_names_in_, where X was a
    frame · node_names_, its index, the names in a store, else 0 … N−1. Of several models, rounds and pseudo-labels are
    those of the heaviest, and of its first fold.
    """

    def __init__(
        self,
        model: str | Architecture | Trainer | LinearTrainer = "auto",
        selector: str | Score | None = None,
        calibrator: str | Calibrator = "proven",
        *,
        method: str = "auto",
        features: str = "auto",
        scale: str = "auto",
        class_weight: Literal["auto", "balanced"] | Mapping[Any, float] | None = "auto",
        folds: int | None = None,
        validation: float | None = None,
        k: int | None = None,
        candidates: int | None = None,
        rounds: int | None = None,
        teacher: TeacherChoice = TEACHER,
        preset: str = "tuned",
        epochs: int | None = None,
        patience: int | None = None,
        batches: Sampling | None = None,
        time_limit: float | None = None,
        directed: bool = False,
        fill: Literal["mean"] | None = None,
        keep: Sequence[str] = (),
        device: str = "auto",
        random_state: Any = 0,
    ):
        self.model = model
        self.selector = selector
        self.calibrator = calibrator
        self.method = method
        self.features = features
        self.scale = scale
        self.class_weight = class_weight
        self.folds = folds
        self.validation = validation
        self.k = k
        self.candidates = candidates
        self.rounds = rounds
        self.teacher = teacher
        self.preset = preset
        self.epochs = epochs
        self.patience = patience
        self.batches = batches
        self.time_limit = time_limit
        self.directed = directed
        self.fill = fill
        self.keep = keep
        self.device = device
        self.random_state = random_state

    # what metadata routing of scikit-learn passes on: data only
    __metadata_request__fit: ClassVar = {
        "edge_index": True,
        "edge_weight": True,
        "names": True,
        "observers": UNUSED,
        "checkpoints": UNUSED,
        "tell": UNUSED,
    }
    __metadata_request__predict: ClassVar = {"edge_index": True, "edge_weight": True, "names": True}
    __metadata_request__predict_proba: ClassVar = {"edge_index": True, "edge_weight": True, "names": True}
    __metadata_request__score: ClassVar = {"edge_index": True, "edge_weight": True, "sample_weight": True}

    @default_torch_modes()
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        edge_index: Any = None,
        edge_weight: Any = None,
        names: Any = None,
        observers: Sequence[Observer] = (),
        checkpoints: FitCheckpoints | None = None,
        tell: Callable[[Progress], None] | None = None,
    ) -> Self:
        """Learn from features X [N, F], labels y [N] and edges [2, E]; or from a PyG `Data`, `NodeRows` or a `Store`.

        X may be None: then features are made from the edges. Edges are row numbers [2, E], a scipy adjacency, a frame
        of names, or a networkx or igraph graph. Unknown labels are -1, None, NaN or "". Of a `Data` with masks only the
        labels under `train_mask` and `val_mask` are read. Where X is a frame, a series or dict y is matched by names,
        and rows it does not name are unknown. A frame is encoded as `bangs fit` does it with a table, and
        `predict` does the same; see `scale` for arrays. A `Store` of more than 1 GiB stays on the disk and is
        read in batches, by default those of `Sampling()`; the fitted model then refers to it. `names` are the names of
        the nodes, if X has none. Observers are called with the state of every round, `tell` before every candidate. A
        `FitCheckpoints` saves the rounds in a folder, from which a fit that was stopped or killed continues.
        """
        seed, device = self._seed(), choose_device(self.device)
        inputs = prepare(
            X, y, edge_index, edge_weight, names, directed=self.directed, seed=seed, fill=self.fill, scale=self.scale
        )
        self.columns_ = inputs.columns
        data = training_data(
            inputs,
            seed=seed,
            folds=self.folds,
            validation=self.validation,
            class_weight=self.class_weight,
            keep=self.keep,
        )
        self.classes_ = data.classes
        store = inputs.source if isinstance(inputs.source, Store) else None
        if isinstance(X, Store) and self.scale == "standard":
            raise InvalidInput("scale='standard' needs features in memory; a Store is taken as it is")
        taken_as_it_is = isinstance(X, Store) or inputs.columns is not None
        self.scaling_ = None if taken_as_it_is else FeatureScaling.of(data.graph.x, self.scale)
        if self.scaling_ is not None:
            data.graph.x = self.scaling_(data.graph.x)
        bare = inputs.columns is not None and inputs.columns.structural is not None
        graph = data.graph if store is None else None
        candidates = self.build_candidates(graph, data.labels, store, bare=bare)
        defaults = SelfTrainingClassifier().get_params(deep=False)
        idle = without_effect(self._settings(bare), defaults, as_calibrator(self.calibrator), graph, data.labels, store)
        self.threads_ = thread_count(len(data.labels)) if store is None else torch.get_num_threads()
        with threads(self.threads_):
            tasks = tasks_of(data, candidates, inputs.names, seed, device)
            if self.class_weight == "auto":
                data, tasks = settle_class_weights(data, tasks, inputs.source, seeds_of(seed, data.folds.runs))
            self.notes_ = [
                *data.notes,
                *([self.scaling_.note] if self.scaling_ is not None and self.scale == "auto" else ()),
                *(f"the setting {name} makes no difference to this fit" for name in idle),
            ]
            if checkpoints is not None:
                checkpoints.begin(next(iter(tasks.values())))
            # where the user chose a model or a method, no other one is tried
            chosen = self.method != "auto" or len(candidates) < 2
            refine = None if chosen else partial(refined, rounds=self.rounds, labels=data.labels)
            search = CandidateSearch(
                data.folds,
                data.labels,
                data.held_class_weights,
                tasks,
                seeds_of(seed, data.folds.runs),
                as_calibrator(self.calibrator),
                None if store is None else StoreReference.of(store),
                self.time_limit,
                tell,
                refine,
            )
            ensemble = search(candidates, observers, checkpoints)
            self._set_attributes(inputs, seed, data, ensemble, search.store_reference, tasks)
        return self

    def build_candidates(
        self, graph: Any = None, labels: Tensor | None = None, store: Store | None = None, *, bare: bool = False
    ) -> list[Candidate]:
        """What a fit tries on a graph with labels long [N], -1 = unknown; checks every parameter.

        With a `store` that stays on the disk, parts that need the whole graph at once are refused. `bare` = features
        are made from the edges; then the structure is not tried a second time.
        """
        check_class_weight(self.class_weight)
        if self.validation is not None:
            check_share(self.validation)
        check_folds(self.folds)
        check_choice("scale", self.scale, SCALES)
        if self.fill is not None and not (isinstance(self.fill, str) and self.fill == "mean"):
            raise InvalidInput(f"fill must be 'mean' or None, got {self.fill!r}")
        limit: Any = self.time_limit
        if limit is not None and not (isinstance(limit, numbers.Real) and float(limit) > 0):
            raise InvalidInput(f"time_limit must be above 0 seconds, or None for no limit, got {limit!r}")
        if self.folds is not None and self.validation is not None:
            raise InvalidInput("folds divide the labels and validation holds a share of them; give one, not both")
        choose_device(self.device)
        return build_candidates(self._settings(bare), as_calibrator(self.calibrator), graph, labels, store)

    @default_torch_modes()
    def predict_proba(
        self, X: Any = None, edge_index: Any = None, *, edge_weight: Any = None, names: Any = None
    ) -> Array:
        """Calibrated probabilities float [N, C]: of the fitted graph, or of another one with the same columns.

        X may be all that `fit` takes. A `Store` is read layer by layer, if the model is a gcn, graphsage or sgc and its
        calibrator uses no edges. `names` are the names of the nodes, if X has none: nodes of the fitted graph keep
        their structural features.
        """
        logits = predict_logits(self, X, edge_index, edge_weight, names)
        return logits.double().softmax(-1).numpy()

    @default_torch_modes()
    def predict(self, X: Any = None, edge_index: Any = None, *, edge_weight: Any = None, names: Any = None) -> Array:
        """The most likely class [N] of every node of the fitted graph, or of another one."""
        logits = predict_logits(self, X, edge_index, edge_weight, names)
        return np.asarray(self.classes_[logits.argmax(1).numpy()])

    def score(
        self,
        X: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        *,
        edge_index: Any = None,
        edge_weight: Any = None,
    ) -> float:
        """Accuracy over the nodes with a label; of a `Data` with a `test_mask` over its test nodes.

        Without X and edges the nodes are those of the fitted graph. A series or dict y is matched by the names of the
        nodes, as in `fit`.
        """
        predicted = self.predict(X, edge_index, edge_weight=edge_weight)
        has_labels = isinstance(X, Data | Store)
        y = X.get("y") if has_labels and y is None else y
        if y is None:
            raise InvalidInput("a score needs labels; give y, -1 where a label is unknown")
        target, classes = as_labels(in_order(self._label_rows(X, y, len(predicted), edge_index), y), len(predicted))
        if (classes.dtype.kind == "U") != (self.classes_.dtype.kind == "U"):
            raise InvalidInput(
                f"y has labels such as {classes.tolist()[0]!r}, the model has classes such as "
                f"{self.classes_.tolist()[0]!r}; give both as words, or both as numbers"
            )
        known = target >= 0
        if has_labels and (test := mask_of(X, "test", len(predicted))) is not None:
            known &= test
        if not known.any():
            raise InvalidInput("no node to score has a label")
        scored = known.numpy()
        weights = None if sample_weight is None else as_sample_weights(sample_weight, len(predicted))[scored]
        if weights is not None and weights.sum() == 0:
            raise InvalidInput("every labelled node has sample_weight 0, so there is none to score")
        return float(np.average(predicted[scored] == classes[target.numpy()[scored]], weights=weights))

    def _label_rows(self, X: Any, y: Any, nodes: int, edge_index: Any) -> pd.DataFrame | None:
        """What labels y of the nodes that are scored are matched with."""
        if X is None:
            return pd.DataFrame(index=named_nodes(edge_index) if is_table(edge_index) else pd.Index(self.node_names_))
        X = as_pandas(X)
        return label_rows(X, y, nodes, None if isinstance(X, pd.DataFrame) else row_names(edge_index, nodes))

    @default_torch_modes()
    def explain(self, node: int | str, top: int = 5) -> Explanation:
        """Why a node of the fitted graph, given by name, has its label; `print` shows the explanation as text.

        A number is the row of X, or a name where the names of nodes are numbers.
        """
        check_is_fitted(self)
        model = heaviest(self.leaderboard_)
        return explain(self.snapshot_, node, self.node_names_, self.classes_.tolist(), top, self.selector, model)

    @default_torch_modes()
    def suggest(self, count: int = 20, strategy: str | None = None) -> Suggestions:
        """The nodes of the fitted graph whose labels would help most, with a reason each; `print` shows them."""
        check_is_fitted(self)
        return suggest(self.snapshot_, self.node_names_, self.classes_.tolist(), count, strategy, seed=self.seed_)

    @default_torch_modes()
    def save(self, path: str | Path) -> None:
        """Write all that `load` needs to one safetensors file; a folder gets a `model.safetensors`."""
        check_is_fitted(self)
        saved_classifier.save(self, path)

    @classmethod
    @default_torch_modes()
    def load(cls, path: str | Path, *, store: str | Path | None = None, **parts: Any) -> Self:
        """The classifier saved at the path.

        Parts of your own cannot be saved; give them again by parameter name: `load(path, calibrator=Mine())`.
        `store` is the path of the graph on disk, if it was moved.
        """
        model: Self = saved_classifier.load(cls, path, store, parts)
        return model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _seed(self) -> int:
        if isinstance(self.random_state, numbers.Integral):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31))

    def _set_attributes(
        self,
        inputs: Inputs,
        seed: int,
        data: TrainingData,
        ensemble: Ensemble,
        store_reference: StoreReference | None,
        tasks: Mapping[View, Task],
    ) -> None:
        """Set the fitted attributes; their tensors are on the CPU."""
        held = data.folds.held.amax(0) if data.folds.has_held_out else torch.full_like(data.labels, -1)
        self.snapshot_ = snapshot_of(data.graph, store_reference, held, ensemble, as_calibrator(self.calibrator))
        self.members_ = fitted_members(ensemble)
        if store_reference is None:
            self.snapshot_ = with_points(self.snapshot_, self.members_, tasks)
        self.seed_, self.leaderboard_ = seed, ensemble.leaderboard
        self.structure_rule_ = STRUCTURE_RULE
        self.n_features_in_ = int(data.graph.x.shape[1])
        if inputs.frame is not None and all(isinstance(name, str) for name in inputs.frame.columns):
            self.feature_names_in_ = np.array(inputs.frame.columns, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.node_names_ = inputs.names
        self.n_iter_ = sum(row["took_part"][0] for row in self.snapshot_.rows[1:])
        self.termination_condition_ = ensemble.heaviest.ended

    def _settings(self, bare: bool) -> dict[str, Any]:
        # a subclass may have other parameters; the attributes are those of this class
        settings = {name: getattr(self, name) for name in SelfTrainingClassifier._get_param_names()}
        if bare and self.features == "auto":
            settings["features"] = "features"
        return settings
