"""What a rule for the default fit's probabilities may look at, kept in files so that rules are compared in seconds.

    BANGS_DATA=... python benchmarks/few_labels_trust.py --jobs 8 --draws 100 101 102 --out FOLDER

A file for each development graph, number of labels a class and draw. Only the third of the nodes that may choose
settings is looked at, and draws of labels that `few_labels.py` does not mark. `few_labels_rules.py` compares.
"""

import argparse
import multiprocessing
import os
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bangs import SelfTrainingClassifier
from bangs.estimator import classifier
from bangs.estimator.candidate_search import CandidateSearch, Ensemble
from bangs.estimator.candidates import RIDGES
from bangs.estimator.inference import apply
from bangs.estimator.node_features import view_of
from few_labels import DEVELOPMENT, SLOW, chose_settings, drawn, unlabelled, with_labels

MAX_NODES = 1_500  # nodes of a graph that are kept
FIRST = f" {RIDGES[0]:g} · soft · "  # in the names of candidates that every fit tries, whoever is ahead


class Watched(CandidateSearch):
    """A search that keeps its members."""

    def _average(self, members: Any, standings: Any) -> Ensemble:
        ensemble = super()._average(members, standings)
        RECORDED.update(members=members, ensemble=ensemble, judged=self._held_out)
        return ensemble


RECORDED: dict[str, Any] = {}


def dump(name: str, count: int, draw: int, out: Path) -> str:
    """Fit once and write the file."""
    path = out / f"{name}-{count}-{draw}.npz"
    if path.exists():
        return f"{path} is there"
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    began = time.perf_counter()
    classifier.CandidateSearch = Watched  # type: ignore[attr-defined]
    _, truth = unlabelled(name)
    y = drawn(truth, count, draw)
    model = SelfTrainingClassifier(device="cpu", random_state=draw).fit(with_labels(name, y))
    nodes = ((y < 0) & (truth >= 0) & chose_settings(len(truth))).nonzero().flatten()[:MAX_NODES]
    ensemble, members = RECORDED["ensemble"], RECORDED["members"]
    graph = with_labels(name, y)
    views = {member.view: view_of(graph, member.view, model.node_names_, model.seed_) for member in model.members_}
    folds: Any = 0.0
    for member in model.members_:
        probs = apply(member.architecture, member.weights, len(model.classes_), views[member.view], torch.device("cpu"))
        probs = (probs[:, nodes] / member.temperature * ensemble.fold_mean_factor).log_softmax(-1).exp() * member.weight
        folds = folds + probs
    edges = graph.edge_index
    label = model.snapshot_.calibrated.argmax(-1)
    np.savez_compressed(
        path,
        truth=truth[nodes].numpy(),
        mean=ensemble.mean[nodes].numpy(),
        calibrated=model.snapshot_.calibrated[nodes].numpy(),
        unseen=ensemble.unseen.numpy(),
        judged=RECORDED["judged"].numpy(),
        members_mean=torch.stack([member.mean[nodes] for member in ensemble.members]).half().numpy(),
        members_unseen=torch.stack([member.unseen for member in ensemble.members]).float().numpy(),
        all_unseen=torch.stack([member.unseen for member in members]).float().numpy(),
        temperatures=ensemble.temperatures.numpy(),
        weights=ensemble.weights.numpy(),
        sharper=ensemble.fold_mean_factor,
        folds=folds.half().numpy(),
        said=torch.stack([member.mean[nodes].argmax(-1) for member in members if FIRST in member.name]).numpy(),
        shares=ensemble.mean.softmax(-1).mean(0).numpy(),
        homophily=float((label[edges[0]] == label[edges[1]]).double().mean()),
        degree=edges.shape[1] / len(truth),
        nodes=len(truth),
    )
    return f"{path.name} {time.perf_counter() - began:.0f} s"


def _job(task: tuple[str, int, int, Path]) -> str:
    try:
        return dump(*task)
    except Exception as error:
        return f"{task} failed: {error!r}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", nargs="+", default=list(DEVELOPMENT))
    parser.add_argument("--labels", nargs="+", type=int, default=[3, 5, 10, 20])
    parser.add_argument("--draws", nargs="+", type=int, default=[])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    graphs = sorted(args.graphs, key=lambda name: SLOW.index(name) if name in SLOW else len(SLOW))
    keys = [(name, count, draw, args.out) for draw in args.draws for name in graphs for count in args.labels]
    if args.jobs == 1:
        for key in keys:
            print(_job(key), flush=True)
        return
    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"
    with multiprocessing.get_context("spawn").Pool(args.jobs) as pool:
        for line in pool.imap_unordered(_job, keys):
            print(line, flush=True)


if __name__ == "__main__":
    main()
