"""What people use instead, on the same data: accuracy, seconds, memory, and our ratio.

    pip install 'bangs[peers]'
    python benchmarks/peers.py [--dataset cora] [--labels 10] [--repeats 3] [--json]

Every system runs in a process of its own with one thread, `--repeats` times with other labels; medians count. `labels`
nodes of each class are given, all others are judged, and no system has validation labels. `ratio` is the system's
seconds over those of the first row of its group, so above 1 means that ours is faster.

`values` are Banzhaf values of the same information game (200 players, all coalitions alike): pyDVL's maximum sample
reuse calls the game once per coalition, ours evaluates them together. Their `accuracy` is the rank correlation with
400 samples of marginals.
"""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from bangs import SelfTrainingClassifier
from bangs.core.rng import Streams
from bangs.core.types import Split, Task
from bangs.errors import DataUnavailable
from bangs.graphs import splits
from bangs.graphs.pagerank import PPR
from bangs.training.presets import trainer
from bangs.valuation.banzhaf import MSR, Marginals
from bangs.valuation.information import Information
from measuring import graph, options, page, peak_bytes, show
from plain_training import PlainGCN, PlainTraining

ROWS = Path(__file__).with_name("rows") / "peers.json"
ABOUT = """
Every system gets the same graph and the same labels, and runs in its own process. `predict` is accuracy on all nodes
without a given label. `values` are Banzhaf values of the same game; their accuracy is the rank correlation with 400
samples of `marginals`. To measure again: `pip install 'bangs[peers]'`, then `python benchmarks/peers.py --json >
benchmarks/rows/peers.json`.
"""
NOTES = """
- `bangs fit` is the default fit: folds, several linear models and an APPNP, soft labels.
- The PyG loop is a GCN of 200 epochs. It has no early stopping, because there are no validation nodes.
- Label propagation uses no features.
- pyDVL calls the game once for every coalition. Ours evaluates many coalitions together, and `marginals` gets the
  effect of every player from one coalition.
- `predict` ran on two quiet cores, `values` on two busy ones, so the seconds of `values` are upper bounds.
- pyDVL 0.10 was installed beside NumPy 2 with `pip install --no-deps`.
"""
EPOCHS = 200  # of the plain GCN
PLAYERS, COALITIONS = 200, 400


def fit_default(data: Data, y: Tensor) -> Tensor:
    """`bangs fit` as it comes."""
    model = SelfTrainingClassifier(random_state=0, device="cpu").fit(
        _dense(data), y.numpy(), edge_index=data.edge_index
    )
    return torch.as_tensor(model.predict())


def gcn_loop(data: Data, y: Tensor) -> Tensor:
    """PyG's GCN, 200 epochs, the last one counts."""
    settings = trainer("gcn")
    torch.manual_seed(0)
    plain = PlainTraining(
        data, PlainGCN(data.x.shape[1], _classes(y), settings.model), settings.lr, settings.weight_decay
    )
    for _ in range(EPOCHS):
        plain.epoch(y, y)
    plain.model.eval()
    with torch.no_grad():
        return plain.model(plain.x, plain.edge_index).argmax(1)


def label_propagation(data: Data, y: Tensor) -> Tensor:
    """PyG's label propagation, 50 steps."""
    from torch_geometric.nn import LabelPropagation

    return LabelPropagation(50, 0.9)(y.clamp_min(0), data.edge_index, mask=y >= 0).argmax(1)


def correct_and_smooth(data: Data, y: Tensor) -> Tensor:
    """PyG's Correct & Smooth of a logistic regression on the features."""
    from sklearn.linear_model import LogisticRegression
    from torch_geometric.nn import CorrectAndSmooth

    x, known = _dense(data).numpy(), (y >= 0).numpy()
    soft = torch.as_tensor(LogisticRegression(max_iter=500).fit(x[known], y[known]).predict_proba(x)).float()
    post, mask = CorrectAndSmooth(50, 0.9, 50, 0.8), y >= 0
    corrected = post.correct(soft, y[mask], mask, data.edge_index)
    return post.smooth(corrected, y[mask], mask, data.edge_index).argmax(1)


def sklearn_self_training(data: Data, y: Tensor) -> Tensor:
    """scikit-learn's self-training with logistic regression on twice propagated features."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.semi_supervised import SelfTrainingClassifier as Plain

    x = _propagated(data).numpy()
    return torch.as_tensor(Plain(LogisticRegression(max_iter=500)).fit(x, y.numpy()).predict(x))


def label_spreading(data: Data, y: Tensor) -> Tensor:
    """scikit-learn's label spreading among the 10 nearest by twice propagated features."""
    from sklearn.semi_supervised import LabelSpreading

    x = _propagated(data).numpy()
    return torch.as_tensor(LabelSpreading(kernel="knn", n_neighbors=10).fit(x, y.numpy()).predict(x))


def values_ours(game: Information) -> np.ndarray[Any, Any]:
    """Ours: the default estimator."""
    return _estimated(Marginals(16), game)


def values_ours_msr(game: Information) -> np.ndarray[Any, Any]:
    """Ours: maximum sample reuse, the estimator that pyDVL has."""
    return _estimated(MSR(COALITIONS), game)


def values_pydvl(game: Information) -> np.ndarray[Any, Any]:
    """pyDVL's maximum sample reuse."""
    from pydvl.valuation import MSRBanzhafValuation
    from pydvl.valuation.dataset import Dataset
    from pydvl.valuation.stopping import MaxUpdates
    from pydvl.valuation.utility.base import UtilityBase

    class Worth(UtilityBase):  # type: ignore[misc]
        def __call__(self, sample: Any) -> float:
            members = torch.zeros(1, 1, PLAYERS, dtype=torch.bool)
            members[0, 0, [] if sample is None else np.asarray(sample.subset, dtype=int)] = True
            return float(game(members))

    players = np.arange(PLAYERS, dtype=float)[:, None]
    valuation = MSRBanzhafValuation(Worth(), MaxUpdates(COALITIONS), seed=0, show_warnings=False)
    valuation.fit(Dataset(players, np.zeros(PLAYERS)))
    result = valuation.result
    values = np.zeros(PLAYERS)
    values[np.asarray(result.indices)] = result.values
    return values


SYSTEMS: dict[str, Callable[[Data, Tensor], Tensor]] = {
    "bangs fit": fit_default,
    "PyG GCN loop": gcn_loop,
    "PyG label propagation": label_propagation,
    "PyG Correct & Smooth": correct_and_smooth,
    "scikit-learn self-training": sklearn_self_training,
    "scikit-learn label spreading": label_spreading,
}
VALUES: dict[str, Callable[[Information], np.ndarray[Any, Any]]] = {
    "bangs marginals": values_ours,
    "bangs MSR": values_ours_msr,
    "pyDVL MSR": values_pydvl,
}


def main() -> None:
    parser = options(__doc__, repeats=3)
    parser.add_argument("--dataset", default="cora")
    parser.add_argument("--labels", type=int, default=10, help="given nodes of each class")
    parser.add_argument("--only", help="run one system in this process and print its figures")
    parser.add_argument("--seed", type=int, default=0, help="of the labels, with --only")
    parser.add_argument("--page", type=Path, help="run nothing; write this page from benchmarks/rows/peers.json")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    if args.page is not None:
        args.page.write_text(written(json.loads(ROWS.read_text())))
        return
    if args.only is not None:
        print(json.dumps(alone(args.only, args.dataset, args.labels, args.seed)))
        return
    rows: list[dict[str, Any]] = []
    for task, systems in (("predict", SYSTEMS), ("values", VALUES)):
        first: float | None = None
        for system in systems:
            words = [system, "--dataset", args.dataset, "--labels", str(args.labels), "--threads", str(args.threads)]
            runs = [_in_process([*words, "--seed", str(seed)]) for seed in range(args.repeats)]
            if "missing" in runs[0]:
                rows.append({"task": task, "system": system, "note": runs[0]["missing"]})
                continue
            row = {key: statistics.median(one[key] for one in runs) for key in ("accuracy", "seconds", "peak_bytes")}
            first = first or row["seconds"]
            rows.append({"task": task, "system": system, **row, "ratio": row["seconds"] / first})
            print(rows[-1], file=sys.stderr)
    show(rows, args.json, data=f"{args.dataset}, {args.labels} labels a class, medians of {args.repeats} draws")


def written(result: dict[str, Any]) -> str:
    """The page of what people use instead."""
    command = "python benchmarks/peers.py --page docs/results/peers.md"
    return page("What people use instead", command, ABOUT.strip(), page_table(result), NOTES.strip())


def page_table(result: dict[str, Any]) -> str:
    """The rows as a Markdown table."""
    lines = ["| task | system | accuracy | seconds | memory | seconds / ours |", "|---|---|---|---|---|---|"]
    for row in result["rows"]:
        if "note" in row:
            lines.append(f"| {row['task']} | {row['system']} | – | – | – | {row['note']} |")
            continue
        accuracy = f"{row['accuracy']:.2f}" if row["task"] == "values" else f"{row['accuracy']:.1f} %"
        cells = (row["task"], row["system"], accuracy, f"{row['seconds']:.2g}", f"{row['peak_bytes'] / 2**20:.0f} MiB")
        lines.append(f"| {' | '.join(cells)} | {row['ratio']:.3g} |")
    return "\n".join([*lines, "", f"{result['data']}. torch {result['torch']}, {result['device']}."])


def _in_process(words: list[str]) -> dict[str, Any]:
    done = subprocess.run([sys.executable, __file__, "--only", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{words[0]} failed:\n{done.stderr[-2000:]}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def alone(system: str, dataset: str, labels: int, seed: int) -> dict[str, Any]:
    """Accuracy on all nodes without a given label (of values: rank correlation), seconds and peak memory."""
    _, data = graph(dataset)
    try:
        return _values(system, data, labels, seed) if system in VALUES else _predicted(system, data, labels, seed)
    except ImportError as error:
        return {"missing": f"{error.name} is not installed: pip install 'bangs[peers]'"}


def _predicted(system: str, data: Data, labels: int, seed: int) -> dict[str, Any]:
    given = _split(data, labels, seed).train[0]
    y = torch.where(given, data.y, -1)
    before, begin = peak_bytes(), time.perf_counter()
    predicted = SYSTEMS[system](data, y)
    seconds = time.perf_counter() - begin
    right = (predicted == data.y)[~given & (data.y >= 0)]
    return {"accuracy": 100 * float(right.float().mean()), "seconds": seconds, "peak_bytes": peak_bytes() - before}


def _values(system: str, data: Data, labels: int, seed: int) -> dict[str, Any]:
    from scipy.stats import spearmanr

    task = Task.of(data, _split(data, labels, seed), int(data.y.max()) + 1)
    prediction = trainer("gcn", epochs=100).fit(task, task.given, Streams((seed,))).predict(task.graph)
    free = ~(task.given.known | task.held)
    players = prediction.confidence.masked_fill(~free, -1).topk(PLAYERS, dim=1).indices
    game = Information.of(task.cached(PPR()), prediction.logits, task.given.known, players, normalise="mass")
    reference = _estimated(Marginals(400), game)
    before, begin = peak_bytes(), time.perf_counter()
    values = VALUES[system](game)
    seconds = time.perf_counter() - begin
    agreement = float(spearmanr(values, reference).statistic)
    return {"accuracy": agreement, "seconds": seconds, "peak_bytes": peak_bytes() - before}


def _estimated(estimate: MSR | Marginals, game: Information) -> np.ndarray[Any, Any]:
    """The values of all players, every coalition alike."""
    return np.asarray(estimate(game, PLAYERS, Streams((0,)).generators()).mean[0])


def _split(data: Data, labels: int, seed: int) -> Split:
    return splits.per_class(data.y, labels, 100, None, (seed,), scarce="half")


def _classes(y: Tensor) -> int:
    return int(y.max()) + 1


def _dense(data: Data) -> Tensor:
    return data.x.to_dense() if data.x.layout != torch.strided else data.x


def _propagated(data: Data) -> Tensor:
    """Features after two hops with self-loops."""
    from torch_geometric.nn import SGConv

    convolution = SGConv(data.x.shape[1], 1, K=2)
    x, (index, weight) = _dense(data), _normalised(data)
    for _ in range(2):
        x = convolution.propagate(index, x=x, edge_weight=weight)
    return x


def _normalised(data: Data) -> tuple[Tensor, Tensor]:
    from torch_geometric.nn.conv.gcn_conv import gcn_norm

    index, weight = gcn_norm(data.edge_index, num_nodes=data.num_nodes)
    return index, weight


if __name__ == "__main__":
    try:
        main()
    except DataUnavailable as error:
        sys.exit(str(error))
