"""Columns of different units: the default fit beside logistic regression, on the same numbers.

    BANGS_DATA=... python benchmarks/units.py --graphs cora citeseer --draws 2 --json

The features of a graph become ten columns (truncated SVD), as they are ("one unit"), or each multiplied by 10^u with u
uniform in [-3, 3] ("many units"); or 128 columns in a frame ("embedding"). Ten labels a class. Methods: logistic
regression on twice-propagated features, the same after scikit-learn's StandardScaler, and the default fit with
`scale="none"`, `"standard"` and `"auto"`. Accuracy in percent on the third of the nodes that may choose settings, on
draws from 110 on, as by `few_labels.py --settings`: no test label is read.
"""

import argparse
import json
import time
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
import torch
from sklearn.decomposition import TruncatedSVD
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from bangs import SelfTrainingClassifier
from bangs.graphs.sparse import adjacency, to_scipy
from few_labels import FIRST, chose_settings, drawn, unlabelled

CASES = ("one unit", "many units", "embedding")
SCALES = ("none", "standard", "auto")


def columns(name: str, case: str) -> Any:
    """The features of a graph in one of the cases: float [N, 10], or a frame [N, 128]."""
    graph, _ = unlabelled(name)
    x = to_scipy(graph.x) if graph.x.layout == torch.sparse_csr else sp.csr_matrix(graph.x.numpy())
    svd = TruncatedSVD(128 if case == "embedding" else 10, random_state=0).fit_transform(x).astype(np.float32)
    if case == "embedding":
        return pd.DataFrame(svd, columns=[f"e{i}" for i in range(svd.shape[1])])
    units = 10 ** np.random.default_rng(0).uniform(-3, 3, svd.shape[1]) if case == "many units" else 1.0
    return (svd * units).astype(np.float32)


def run(name: str, case: str, draw: int) -> dict[str, float]:
    """The accuracy of every method on one draw of labels."""
    graph, truth = unlabelled(name)
    x, y = columns(name, case), drawn(truth, 10, draw)
    marked = (chose_settings(len(y)) & (y < 0) & (truth >= 0)).numpy()
    matrix = adjacency(graph, loops=1.0, normalise="symmetric")
    known, label, numbers = (y >= 0).numpy(), y.numpy(), np.asarray(x)
    predicted = {}
    for method, features in (("SGC + LR", numbers), ("StandardScaler", StandardScaler().fit_transform(numbers))):
        propagated = matrix @ (matrix @ features)
        predicted[method] = LogisticRegression(max_iter=1000).fit(propagated[known], label[known]).predict(propagated)
    for scale in SCALES:
        model = SelfTrainingClassifier(scale=scale, random_state=draw)
        predicted[f"fit, {scale}"] = model.fit(x, label, edge_index=graph.edge_index.numpy()).predict()
    return {method: 100 * float((p == truth.numpy())[marked].mean()) for method, p in predicted.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", nargs="+", default=["cora", "citeseer", "citeseer_full", "lastfm_asia_large"])
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    begin, out = time.perf_counter(), {}
    for name in args.graphs:
        for case in CASES:
            rows = [run(name, case, FIRST + draw) for draw in range(args.draws)]
            means = {method: round(fmean(row[method] for row in rows), 1) for method in rows[0]}
            out[f"{name}, {case}"] = means
            if not args.json:
                print(f"{name:20}{case:12}" + "  ".join(f"{method} {value:.1f}" for method, value in means.items()))
    if args.json:
        print(json.dumps({"accuracy": out, "draws": args.draws, "seconds": round(time.perf_counter() - begin, 1)}))


if __name__ == "__main__":
    main()
