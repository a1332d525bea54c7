"""A calibrator of your own: isotonic regression of correctness on confidence.

    python examples/own_calibrator.py

Prints the calibration error on the unlabelled nodes: without calibration, with this one, and with the default.
"""

from dataclasses import dataclass

import torch
from sklearn.isotonic import IsotonicRegression

from bangs import Prediction, SelfTrainingClassifier, Task, citation, metrics


@dataclass(frozen=True)
class Isotonic:
    """Replace the confidence c of a node by f(c); f rises and is fitted on the validation nodes. Labels stay."""

    largest: float = 0.999  # no node is certain

    def __call__(self, prediction: Prediction, task: Task) -> Prediction:
        probs = prediction.probs.clone()
        for run, (confidence, held) in enumerate(zip(prediction.confidence, task.held, strict=True)):
            right = prediction.label[run] == task.validation[run]
            curve = IsotonicRegression(y_min=1 / task.classes, y_max=self.largest, out_of_bounds="clip")
            curve.fit(confidence[held].cpu(), right[held].float().cpu())
            calibrated = torch.as_tensor(curve.predict(confidence.cpu()), dtype=probs.dtype, device=probs.device)
            calibrated = calibrated.clamp_min(1 / task.classes + 1e-6)  # the predicted class stays the most likely
            others = (1 - calibrated) / (1 - confidence).clamp_min(1e-9)
            predicted_class = torch.nn.functional.one_hot(prediction.label[run], task.classes).bool()
            probs[run] = torch.where(predicted_class, calibrated[:, None], probs[run] * others[:, None])
        return Prediction(probs.clamp_min(1e-9).log())


def main(nodes: int = 800, epochs: int = 100) -> dict[str, float]:
    """The calibration error of every calibrator."""
    graph = citation(nodes=nodes, classes=4, seed=0)
    truth = graph.y.clone()
    known = torch.cat([(truth == label).nonzero().flatten()[:20] for label in range(4)])
    graph.y = torch.full_like(truth, -1).scatter(0, known, truth[known])
    target = torch.where(graph.y == -1, truth, -1)[None]
    errors = {}
    for name, calibrator in {"none": "none", "own": Isotonic(), "ets": "ets"}.items():
        model = SelfTrainingClassifier(calibrator=calibrator, rounds=2, epochs=epochs, validation=0.5).fit(graph)
        predicted = Prediction(torch.tensor(model.predict_proba()).log()[None])
        errors[name] = float(metrics.calibration_error(predicted, target, bins=10))
    return errors


if __name__ == "__main__":
    for name, error in main().items():
        print(f"{name:<6}{error:.3f}")
