"""A user's mistakes: each is one clear sentence that names the thing, the rule and what came."""

import math
from collections.abc import Callable

import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from torch import Tensor
from torch_geometric.data import Data

from bangs.calibration.calibrators import ETS, Temperature, Vector, calibrator
from bangs.core.rng import Streams
from bangs.core.types import Split, Task
from bangs.errors import BangsError, DataUnavailable, InvalidInput, UnknownName
from bangs.graphs.augmentations import DropEdges
from bangs.graphs.pagerank import PPR, ExactPPR
from bangs.graphs.sparse import to_torch
from bangs.nn.models import APPNP, GCN, SGC
from bangs.selection.quotas import Balanced, Top, TopPerClass
from bangs.selection.scores import Agreement, Banzhaf
from bangs.selftraining.loop import Method, SelfTrainer
from bangs.selftraining.loss_weights import BanzhafWeight
from bangs.selftraining.methods import method
from bangs.training.augmented_prediction import Dropout
from bangs.training.trainer import Trainer
from bangs.valuation.banzhaf import MSR
from tests.conftest import two_rings

NODE = torch.arange(24)
TRAIN, VAL, TEST = NODE < 4, (NODE >= 4) & (NODE < 10), NODE >= 10
SPLIT = Split.repeated(TRAIN, VAL, TEST, runs=2)


def task(split: Split = SPLIT, classes: int | None = None, **changes: Tensor | None) -> Task:
    """The tiny world with something wrong in it."""
    data = two_rings()
    for name, value in changes.items():
        data[name] = value
    return Task.of(data, split, classes)


def labels(node: int, label: int) -> Tensor:
    y = two_rings().y.clone()
    y[node] = label
    return y


def features(value: float) -> Tensor:
    x = two_rings().x.clone()
    x[3, 1] = value
    return x


def edges(source: int, target: int) -> Tensor:
    return torch.cat([two_rings().edge_index, torch.tensor([[source], [target]])], dim=1)


def split(train: Tensor = TRAIN, val: Tensor = VAL, test: Tensor = TEST) -> Split:
    return Split.repeated(train, val, test, runs=2)


def edge_weight(value: float) -> Tensor:
    weight = torch.ones(two_rings().num_edges)
    weight[0] = value
    return weight


def second_run_of_one_class() -> Split:
    train = torch.stack([TRAIN, NODE == 0])
    return Split(train, SPLIT.val, SPLIT.test)


NOBODY = torch.zeros(24, dtype=torch.bool)
MISTAKES: dict[str, tuple[Callable[[], object], list[str]]] = {
    # labels
    "a label below 0": (lambda: task(y=labels(2, -3)), ["labels must be 0 … C−1", "node 2", "-3"]),
    "a validation label below 0": (lambda: task(y=labels(7, -1)), ["labels must be 0 … C−1", "node 7", "-1"]),
    "a label above C−1": (lambda: task(y=labels(2, 5), classes=3), ["labels must be 0 … 2", "3 classes", "got 5"]),
    "one class only": (lambda: task(y=torch.zeros(24, dtype=torch.long)), ["one class only", "at least two"]),
    "one class in one run": (lambda: task(second_run_of_one_class()), ["run 1", "one class only"]),
    "no labels": (lambda: task(y=None), ["no labels", "data.y"]),
    "labels of half the nodes": (lambda: task(y=torch.zeros(12, dtype=torch.long)), ["data.y", "[24]", "[12]"]),
    "labels of other runs": (lambda: task(y=two_rings().y.expand(3, -1)), ["data.y", "[2, 24]", "[3, 24]"]),
    "labels with a column axis": (lambda: task(y=two_rings().y[:, None]), ["data.y", "[24, 1]"]),
    "labels that are no whole numbers": (lambda: task(y=two_rings().y.float()), ["whole numbers", "float32"]),
    # features
    "NaN features": (lambda: task(x=features(math.nan)), ["features must be finite", "NaN"]),
    "infinite features": (lambda: task(x=features(-math.inf)), ["features must be finite", "infinity"]),
    "features beyond float32": (lambda: task(x=features(1.0).double() * 1e300), ["features must be finite"]),
    "NaN in sparse features": (
        lambda: task(x=to_torch(sp.csr_array(features(math.nan).numpy()))),
        ["features must be finite"],
    ),
    "no features": (lambda: task(x=None, num_nodes=24), ["no features", "data.x"]),
    "features in one axis": (lambda: task(x=torch.ones(24)), ["data.x", "[N, F]", "[24]"]),
    "features without columns": (lambda: task(x=torch.ones(24, 0)), ["at least one feature", "[24, 0]"]),
    "features of other nodes": (lambda: task(x=torch.ones(20, 2), num_nodes=24), ["20 rows", "24 nodes"]),
    "features in COO": (lambda: task(x=torch.ones(24, 2).to_sparse()), ["dense or CSR", "to_sparse_csr()"]),
    # edges
    "an edge to a node that does not exist": (lambda: task(edge_index=edges(3, 24)), ["edge 50", "[3, 24]", "0 … 23"]),
    "an edge to a negative node": (lambda: task(edge_index=edges(-1, 3)), ["edge 50", "[-1, 3]"]),
    "edges as pairs": (lambda: task(edge_index=two_rings().edge_index.T), ["data.edge_index", "[2, E]"]),
    "no edges at all": (lambda: task(edge_index=None), ["data.edge_index"]),
    "edges that are no whole numbers": (
        lambda: task(edge_index=two_rings().edge_index.float()),
        ["data.edge_index", "whole numbers"],
    ),
    "a negative edge weight": (lambda: task(edge_weight=edge_weight(-1.0)), ["edge_weight", "non-negative"]),
    "a NaN edge weight": (lambda: task(edge_weight=edge_weight(math.nan)), ["edge_weight", "finite"]),
    "too few edge weights": (lambda: task(edge_weight=torch.ones(3)), ["one", "per edge"]),
    "a graph without nodes": (
        lambda: Task.of(Data(x=torch.zeros(0, 2), edge_index=torch.zeros(2, 0, dtype=torch.long)), SPLIT),
        ["no nodes"],
    ),
    # splits
    "an empty training split": (lambda: task(split(train=NOBODY)), ["train split", "run 0", "empty"]),
    "an empty validation split": (lambda: task(split(val=NOBODY)), ["validation split", "run 0", "empty"]),
    "a split of another graph": (
        lambda: Task.of(two_rings(30), SPLIT),
        ["split has 24 nodes", "graph has 30"],
    ),
    "overlapping masks": (lambda: split(val=NODE < 5), ["disjoint"]),
    "masks without a run axis": (lambda: Split(TRAIN, VAL, TEST), ["[R, N]", "(24,)"]),
    "masks of different sizes": (
        lambda: Split(SPLIT.train, SPLIT.val[:, :9], SPLIT.test),
        ["one shape", "(2, 24)", "(2, 9)"],
    ),
    "nodes for masks": (
        lambda: Split(SPLIT.train.long(), SPLIT.val.long(), SPLIT.test.long()),
        ["bool", "int64"],
    ),
    # selection
    "k = 0": (lambda: Top(0), ["Top.k must be at least 1", "got 0"]),
    "k = 0 per class": (lambda: TopPerClass(0), ["TopPerClass.k must be at least 1", "got 0"]),
    "k = 0 in turns": (lambda: Balanced(0), ["Balanced.k must be at least 1", "got 0"]),
    "k = 0 in the game": (lambda: Banzhaf(k=0), ["Banzhaf.k must be at least 1", "got 0"]),
    "no candidates": (lambda: Banzhaf(k=1, candidates=0), ["Banzhaf.candidates must be at least 1"]),
    "K < k": (lambda: Banzhaf(k=5, candidates=4), ["at least k", "K = 4", "k = 5"]),
    "an unknown space": (lambda: Agreement(space="probs"), ["Agreement.space", "embeddings, logits", "'probs'"]),
    "an unknown normalisation": (lambda: Banzhaf(normalise="sum"), ["Banzhaf.normalise", "none, mass", "'sum'"]),
    # propagation
    "α = 0": (lambda: PPR(alpha=0.0), ["PPR.alpha must lie in (0, 1]", "got 0.0"]),
    "α > 1": (lambda: ExactPPR(alpha=1.5), ["ExactPPR.alpha must lie in (0, 1]", "got 1.5"]),
    "α of NaN": (lambda: PPR(alpha=math.nan), ["PPR.alpha"]),
    "α = 0 in a model": (lambda: APPNP(alpha=0.0), ["APPNP.alpha must lie in (0, 1]", "got 0.0"]),
    "no steps": (lambda: PPR(steps=0), ["PPR.steps must be at least 1"]),
    "a view that drops everything": (lambda: DropEdges(1.0), ["DropEdges.rate", "[0, 1)"]),
    # learners
    "no layers": (lambda: GCN(layers=0), ["GCN.layers must be at least 1", "got 0"]),
    "no hops": (lambda: SGC(hops=0), ["SGC.hops must be at least 1", "got 0"]),
    "dropout of everything": (lambda: GCN(dropout=1.0), ["GCN.dropout", "[0, 0.999]", "got 1.0"]),
    "a look through nothing": (lambda: Dropout(1.0), ["Dropout.rate", "[0, 0.999]", "got 1.0"]),
    "negative weight decay": (lambda: Trainer(weight_decay=-1e-4), ["Trainer.weight_decay", "negative", "-0.0001"]),
    "too few streams": (
        lambda: Trainer().fit(task(), task().given, Streams((1,))),
        ["1 random streams for 2 runs", "one per run"],
    ),
    "a model by name": (lambda: Trainer(model="gcn"), ["Trainer.model", "GCN(hidden=64)", "'gcn'"]),
    "no epochs": (lambda: Trainer(epochs=0), ["Trainer.epochs must be at least 1", "got 0"]),
    "no patience": (lambda: Trainer(patience=0), ["Trainer.patience must be at least 1", "got 0"]),
    "epochs in words": (lambda: Trainer(epochs="many"), ["Trainer.epochs must be a whole number", "got 'many'"]),
    "half an epoch": (lambda: Trainer(epochs=0.5), ["Trainer.epochs must be a whole number", "got 0.5"]),
    "epochs as a switch": (lambda: Trainer(epochs=True), ["Trainer.epochs must be a whole number", "got True"]),
    "a learning rate in words": (lambda: Trainer(lr="low"), ["Trainer.lr must be a number", "got 'low'"]),
    "a learning rate of 0": (lambda: Trainer(lr=0.0), ["Trainer.lr must be positive", "got 0.0"]),
    "a learning rate of NaN": (lambda: Trainer(lr=math.nan), ["Trainer.lr must be positive", "got nan"]),
    "an infinite learning rate": (lambda: Trainer(lr=math.inf), ["Trainer.lr must be finite", "got inf"]),
    "an unknown field": (lambda: Trainer(subgraph="some"), ["Trainer.subgraph", "needed, whole", "'some'"]),
    "an unknown monitor": (lambda: Trainer(monitor="f1"), ["Trainer.monitor", "accuracy, loss", "'f1'"]),
    "an unknown precision": (lambda: Trainer(precision="half"), ["Trainer.precision", "float32, tf32", "'half'"]),
    # the loop
    "negative rounds": (lambda: Method(rounds=-1), ["Method.rounds must be at least 0", "got -1"]),
    "no views": (lambda: Method(views=()), ["at least one view"]),
    "views that are none": (lambda: Method(views=pd.NA), ["at least one view"]),
    "an unknown memory": (lambda: Method(memory="forget"), ["Method.memory", "accumulate, rebuild, alternate"]),
    "an unknown teacher": (lambda: Method(teacher="last"), ["Method.teacher", "first, latest, best", "'last'"]),
    "an unknown start": (lambda: Method(start="warm"), ["Method.start", "fresh, teacher", "'warm'"]),
    "an unknown pool": (lambda: Method(pool="all"), ["Method.pool", "free, open, unused", "'all'"]),
    "a start before the first epoch": (lambda: Method(start=0), ["Method.start", "epoch from 1", "got 0"]),
    "too few seeds": (
        lambda: SelfTrainer(Trainer(), Method()).fit(task(), (1,)),
        ["1 seeds for 2 runs", "one seed per run"],
    ),
    # parts
    "a prior in words": (lambda: Temperature(prior="1"), ["Temperature.prior must be a number", "got '1'"]),
    "a prior as a switch": (lambda: ETS(prior=True), ["ETS.prior must be a number", "got True"]),
    "a ridge in words": (lambda: Vector(ridge="x"), ["Vector.ridge must be a number", "got 'x'"]),
    "samples in words": (lambda: MSR(samples="many"), ["MSR.samples must be a whole number", "got 'many'"]),
    "half a sample": (lambda: MSR(samples=2.5), ["MSR.samples must be a whole number", "got 2.5"]),
    "no number of samples": (lambda: MSR(samples=None), ["MSR.samples must be a whole number", "got None"]),
    "an unknown weight": (lambda: BanzhafWeight(normalise="sum"), ["BanzhafWeight.normalise", "none, mass", "'sum'"]),
    "a weight by a number": (lambda: BanzhafWeight(propagate=3), ["BanzhafWeight.propagate", "called", "got 3"]),
    # names
    "a misspelt method": (lambda: method("bnags"), ["method 'bnags' is unknown", "did you mean 'bangs'?", "raw"]),
    "a misspelt calibrator": (lambda: calibrator("tempreature"), ["did you mean 'temperature'?"]),
    "a name like none": (lambda: calibrator("zzz"), ["calibrator 'zzz' is unknown", "Known: "]),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_met_by_one_clear_sentence(mistake):
    make, words = MISTAKES[mistake]
    with pytest.raises(BangsError) as error:
        make()
    sentence = str(error.value)
    assert "\n" not in sentence
    assert 20 < len(sentence) < 300
    for word in words:
        assert word in sentence


def test_what_is_right_is_accepted():
    assert task().classes == 2
    assert task(classes=5).classes == 5, "a class may be without labels"
    assert task(y=labels(20, -7)).classes == 2, "labels of test nodes are nobody's business"
    assert PPR(alpha=1.0).alpha == 1
    assert Banzhaf(k=4, candidates=4).k == 4
    assert Method(rounds=0).rounds == 0


def test_named_errors_are_errors_of_their_kind_too():
    assert issubclass(InvalidInput, ValueError)
    assert issubclass(UnknownName, LookupError)
    assert issubclass(DataUnavailable, OSError)
    assert all(issubclass(error, BangsError) for error in (InvalidInput, UnknownName, DataUnavailable))
