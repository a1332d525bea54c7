"""A method of your own for the commands: a score, a recipe and a name.

    bangs run --method waiting --code examples/own_method.py --seeds 3 --rounds 5
    python examples/own_method.py

All other parts are those of `confidence-calibrated`. The second command compares the score with two built-in ones on a
graph with ten labels per class, and prints the accuracy on the unlabelled nodes.
"""

from dataclasses import dataclass, replace

import torch

from bangs import METHODS, Budget, Method, Ranking, Round, SelfTrainingClassifier, citation, method


@dataclass(frozen=True)
class Waiting:
    """Prefer confident nodes with many unlabelled neighbours: confidence × log(1 + unlabelled neighbours)."""

    def __call__(self, round: Round) -> Ranking:
        source, target = round.graph.edge_index
        unknown = (~round.labels.known).float()  # [R, N]
        waiting = torch.zeros_like(unknown).index_add(1, source, unknown[:, target])
        score = round.prediction.confidence * waiting.log1p()
        return Ranking(score.masked_fill(~round.pool, float("-inf")))


def waiting(budget: Budget) -> Method:
    """Confident nodes with many unlabelled neighbours."""
    return replace(method("confidence-calibrated", budget), score=Waiting())


METHODS["waiting"] = waiting


def main(nodes: int = 800, rounds: int = 4, epochs: int = 100) -> dict[str, float]:
    """The accuracy of every selector."""
    graph = citation(nodes=nodes, classes=4, seed=0)
    truth = graph.y.clone()
    known = torch.cat([(truth == label).nonzero().flatten()[:10] for label in range(4)])
    graph.y = torch.full_like(truth, -1).scatter(0, known, truth[known])
    unlabelled = (graph.y == -1).numpy()
    accuracy = {}
    for name, selector in {"own": Waiting(), "banzhaf": "banzhaf", "confidence": "confidence"}.items():
        model = SelfTrainingClassifier(selector=selector, rounds=rounds, epochs=epochs).fit(graph)
        accuracy[name] = float((model.predict() == truth.numpy())[unlabelled].mean())
    return accuracy


if __name__ == "__main__":
    for name, accuracy in main().items():
        print(f"{name:<12}{accuracy:.1%}")
