"""Experiment: one method on one dataset for some seeds, from configuration to scores."""

import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from bangs.calibration.calibrators import CALIBRATORS
from bangs.core.types import Split, Task
from bangs.distributed import ranks
from bangs.errors import InvalidInput
from bangs.experiments.evaluation_protocols import score
from bangs.experiments.exam import Exam
from bangs.experiments.history_file import History
from bangs.experiments.settings import RULES, VALIDATION_NODES, VALIDATION_SHARE, Recipe
from bangs.graphs import splits
from bangs.graphs.datasets import loading
from bangs.graphs.pagerank import PPR
from bangs.graphs.pagerank_push import Push
from bangs.graphs.store import Store
from bangs.runs import RunFolder
from bangs.runs.history_rows import row, seconds_by_stage
from bangs.selftraining import published_settings
from bangs.selftraining.best_round import best_round
from bangs.selftraining.budget import Budget
from bangs.selftraining.defaults import POOL, Memory, Pool, TeacherChoice
from bangs.selftraining.loop import Method, Observer, SelfTrainer, State
from bangs.selftraining.methods import default_rounds, method
from bangs.training import presets
from bangs.training.neighbour_sampling import sampling
from bangs.utils.devices import choose_device
from bangs.utils.files import finite, json_value
from bangs.utils.threads import thread_count, threads
from bangs.utils.torch_modes import default_torch_modes
from bangs.valuation.banzhaf import DEFAULT, ESTIMATORS
from bangs.valuation.influence import Normalisation

# settings that a published recipe fixes
RECIPE_SETTINGS = (
    *("k", "candidates", "normalise", "push", "ppr_steps", "estimator", "samples", "calibrator", "teacher", "pool"),
    "memory",
)

# settings that only some methods, or runs in batches, use
PART_SETTINGS = (*RECIPE_SETTINGS, "rounds", "pieces")

# settings that were added later: None is left out, so that older runs keep their hash
OMITTED_IF_NONE = (
    *("teacher", "memory", "batch_size", "fanout", "pieces", "push", "ppr_steps", "per_class"),
    "validation_nodes",
)


@dataclass(frozen=True)
class Experiment:
    """A complete configuration; equal experiments give equal results.

    `recipe` says where the settings of the method come from: "budget" takes the fields below, equal for all methods;
    "paper" takes the tables of the BANGS paper; "authors" takes what the authors of the method suggest for the
    dataset. The last two fix all settings of the method; only the number of rounds can be lowered.
    """

    dataset: str = "synthetic"
    method: str = "soft-aligned"
    model: str = "gcn"
    preset: str = "tuned"
    recipe: Recipe = "budget"
    seeds: tuple[int, ...] = tuple(range(10))
    rounds: int | None = None  # None = 15 of soft labels, 40 of hard ones
    k: int = 100
    candidates: int | None = None  # K; None = the preset's: k + 100 as in the paper, 5 k if tuned
    normalise: Normalisation | None = None  # None = the preset's: none as in the paper, mass if tuned
    push: float | None = None  # error bound of the forward push for influences; None = as `PPR` decides
    ppr_steps: int | None = None  # steps of personalised PageRank; None = 10
    estimator: str = DEFAULT
    samples: int | None = None
    calibrator: str = "ets"
    teacher: TeacherChoice | None = None  # None = the method's default: the best so far, or the latest
    pool: Pool = POOL
    memory: Memory | None = None  # which pseudo-labels stay; None = the method's default
    noise: float = 0.0  # share of training and validation labels flipped
    share: float | None = None  # share of nodes labelled for training; None = the split of the dataset
    per_class: int | None = None  # nodes of each class labelled for training; of a small class, half of its nodes
    validation_nodes: int | None = None  # with per_class; None = 500
    changes: dict[str, float | int | str] = field(default_factory=dict)  # of the trainer
    batch_size: int | None = None  # labelled nodes per step; None = the whole graph, or 1,024 if there is a fan-out
    fanout: tuple[int, ...] | None = None  # neighbours sampled at each hop, −1 = all; None = 10 if there are batches
    pieces: int | None = None  # parts of a step, shared by the processes; None = 1

    def __post_init__(self) -> None:
        for setting in fields(self):
            if setting.default is not None or getattr(self, setting.name) is not None:
                RULES[setting.name](setting.name, getattr(self, setting.name))
        if self.share is not None and self.per_class is not None:
            raise InvalidInput("training nodes are a share of all nodes or a number per class; give one, not both")
        if self.validation_nodes is not None and self.per_class is None:
            raise InvalidInput("validation_nodes goes with per_class; say how many nodes per class are for training")
        if self.recipe == "budget":
            if self.k < 1 and self.method != "raw":
                raise InvalidInput(
                    f"k must be at least 1 for the method '{self.method}', got {self.k}; 'raw' adopts none"
                )
            return
        for setting in fields(self):
            if setting.name in RECIPE_SETTINGS and getattr(self, setting.name) != setting.default:
                raise InvalidInput(
                    f"the recipe '{self.recipe}' sets {setting.name} itself; leave it out, or use the recipe 'budget'"
                )

    def settings(self) -> dict[str, Any]:
        """The fields that the result depends on, as JSON-able values."""
        ignored = () if self.recipe == "budget" else RECIPE_SETTINGS
        settings = {key: value for key, value in asdict(self).items() if key not in ignored}
        settings |= {"seeds": list(self.seeds), "fanout": None if self.fanout is None else list(self.fanout)}
        settings["rounds"] = self.most_rounds
        return {key: value for key, value in settings.items() if key not in OMITTED_IF_NONE or value is not None}

    @property
    def most_rounds(self) -> int:
        """Rounds of self-training at most."""
        return default_rounds(self.method) if self.rounds is None else self.rounds

    def config(self) -> dict[str, Any]:
        """Everything the result depends on, with the `repr` of all parts; its hash is the name of the run."""
        parts = self.self_trainer()
        return {**self.settings(), "parts": {"trainer": repr(parts.trainer), "method": repr(parts.method)}}

    def idle(self) -> list[str]:
        """Settings that differ from their defaults but do not affect this run, such as the estimator of 'random'."""
        idle = []
        for name, default in ((setting.name, setting.default) for setting in fields(self)):
            if name in PART_SETTINGS and getattr(self, name) != default:
                change: dict[str, Any] = {name: default}
                with suppress(InvalidInput):  # a default that does not fit the other settings does make a difference
                    if replace(self, **change).config()["parts"] == self.config()["parts"]:
                        idle.append(name)
        return idle

    def self_trainer(self, observers: Sequence[Observer] = ()) -> SelfTrainer:
        """The self-trainer of this configuration."""
        recipe = self._recipe()
        batches = sampling(self.batch_size, self.fanout, self.pieces)
        changes: dict[str, Any] = self.changes if batches is None else {**self.changes, "batches": batches}
        soft = recipe.believe is not None
        trainer = presets.trainer(self.model, self.preset, self._dataset_name, soft=soft, **changes)
        return SelfTrainer(trainer, recipe, tuple(observers))

    @property
    def _dataset_name(self) -> str:
        """The dataset without its folder; published settings are listed by this name."""
        return Path(self.dataset).name.removesuffix(".npz")

    def _recipe(self) -> Method:
        if self.recipe != "budget":
            published = published_settings.paper if self.recipe == "paper" else published_settings.authors
            recipe = published(self.method, self._dataset_name)
            return replace(recipe, rounds=min(recipe.rounds, self.most_rounds))
        tuned = self.preset == "tuned"
        steps = PPR.steps if self.ppr_steps is None else self.ppr_steps
        recipe = method(
            self.method,
            Budget(
                k=self.k,
                candidates=(5 * self.k if tuned else self.k + 100) if self.candidates is None else self.candidates,
                normalise=self.normalise or ("mass" if tuned else "none"),
                propagate=PPR(steps=steps) if self.push is None else Push(steps=steps, error=self.push),
                rounds=self.most_rounds,
                teacher=self.teacher,
                calibrate=CALIBRATORS[self.calibrator](),
                estimate=ESTIMATORS[self.estimator](self.samples),
                pool=self.pool,
            ),
        )
        return recipe if self.memory is None else replace(recipe, memory=self.memory)

    def task(self, data: Data) -> Task:
        """The part of a labelled graph that the learner sees."""
        split = self._split(data)
        data, classes = _with_class_indices(data, split)
        if self.noise:
            data = _with_labels(data, splits.noisy(data.y, split, self.noise, self.seeds, classes))
        return Task.of(data, split, classes)

    @default_torch_modes()
    def run(
        self,
        data_folder: Path | None = None,
        device: str = "auto",
        observers: Sequence[Callable[[State, dict[str, Any]], None]] = (),
        data: Data | None = None,
        run_folder: RunFolder | None = None,
        pause: float = 0.0,
        blind: bool = False,
    ) -> dict[str, Any]:
        """Run the experiment; returns scores, rounds and seconds. Observers get every state with its row.

        A `blind` run reads no test label: its rows and scores have validation accuracies only.

        The dataset is read from the `data_folder`, unless the graph is given as `data`. With a `run_folder`, every
        round is saved there, with checkpoints at least `pause` seconds apart. A run that was interrupted continues
        from its last checkpoint and gives the same result. At the end, the result replaces the checkpoints.
        """
        started = time.perf_counter()
        torch_device = choose_device(device)
        data = loading.load(self.dataset, data_folder) if data is None else data
        task = self.task(data).to(torch_device)
        exam = None if blind else exam_of(self, data).to(torch_device)
        history = None if run_folder is None else History(run_folder, pause, blind)
        # only the first rank has the folder; it sends the others the point to continue from
        restore = None if history is None else history.resume(task, "" if exam is None else exam.digest)
        resumed = ([], None, 0.0) if history is None else (history.rows, restore, history.rounds.earlier)
        rows, restore, earlier_seconds = ranks.broadcast_object(resumed)

        def record(state: State) -> None:
            marks = {} if exam is None else exam.mark(state)
            rows.append(finite(json_value({**row(state), **marks}, "row")))  # the same before and after a resume
            if history is not None:
                history.keep(state, rows[-1])
            for observer in observers:
                observer(state, rows[-1])

        with threads(thread_count(len(self.seeds) * int(data.num_nodes or 0))):
            self.self_trainer([record]).fit(task, self.seeds, restore)
        result = summary(self, rows, earlier_seconds + time.perf_counter() - started)
        if run_folder is not None:
            run_folder.finish(compact(result))
            run_folder.forget()
        return result

    def _split(self, data: Data) -> Split:
        if self.per_class is not None:
            validation_nodes = VALIDATION_NODES if self.validation_nodes is None else self.validation_nodes
            return splits.per_class(data.y, self.per_class, validation_nodes, None, self.seeds, scarce="half")
        if self.share is None:
            return splits.default(data, self.seeds)
        return splits.by_share(data.y, self.share, VALIDATION_SHARE, self.seeds)


def exam_of(experiment: Experiment, data: Data) -> Exam:
    """The exam of an experiment: the labels of its test nodes."""
    split = experiment._split(data)
    return Exam.of(_with_class_indices(data, split)[0], split)


def _with_class_indices(data: Data, split: Split) -> tuple[Data, int]:
    """The graph with classes numbered 0 … C−1, and C, from the dataset or from the labels of train and val.

    Labels of other nodes must not decide what a learner sees. A test node of a class that no training or validation
    node has gets the number C, which no model predicts.
    """
    declared = data.get("num_classes")
    if declared is not None:
        return data, int(declared)
    labels = data.y[(split.train | split.val).any(0)]
    classes = labels[labels >= 0].unique()
    if len(classes) == 0:
        return data, 0  # refused by Task.of
    class_index = torch.full((int(data.y.max()) + 1,), len(classes))
    class_index[classes] = torch.arange(len(classes))
    return _with_labels(data, torch.where(data.y >= 0, class_index[data.y], -1)), len(classes)


def _with_labels(data: Data, y: Tensor) -> Data:
    return data.relabelled(y) if isinstance(data, Store) else data.clone().update({"y": y})


def summary(experiment: Experiment, rows: list[dict[str, Any]], total: float) -> dict[str, Any]:
    """The result of an experiment from its history rows, JSON-able.

    It has a score for every protocol, and `raw`, the score of round 0; a blind run has its validation accuracy only.
    """
    validation = [[row["validation"][run] for row in rows] for run in range(len(experiment.seeds))]
    chosen = [best_round(accuracies) for accuracies in validation]
    seconds = {stage: round(value, 3) for stage, value in seconds_by_stage(rows).items()}
    history = {"chosen_round": chosen, "rounds": rows, "seconds": {**seconds, "total": round(total, 3)}}
    if "test" not in rows[0]:
        accuracy = _statistics([score("blind", accuracies) for accuracies in validation])
        return {**experiment.settings(), "blind": True, "validation_accuracy": accuracy, **history}
    test = [[row["test"][run] for row in rows] for run in range(len(experiment.seeds))]
    scores = {
        rule: _statistics([score(rule, *accuracies) for accuracies in zip(validation, test, strict=True)])
        for rule in ("validation", "best_test", "last")
    }
    return {**experiment.settings(), "raw": _statistics([accuracies[0] for accuracies in test]), **scores, **history}


def compact(result: dict[str, Any]) -> dict[str, Any]:
    """The result with the number of adopted nodes instead of the nodes."""
    rows = [
        {**row, "adopted": [nodes if isinstance(nodes, int) else len(nodes["node"]) for nodes in row["adopted"]]}
        for row in result["rounds"]
    ]
    return {**result, "rounds": rows}


def _statistics(values: list[float]) -> dict[str, Any]:
    percent = [round(100 * value, 4) for value in values]
    return {
        "mean": round(statistics.fmean(percent), 4),
        "std": round(statistics.stdev(percent), 4) if len(percent) > 1 else 0.0,
        "per_seed": percent,
    }
