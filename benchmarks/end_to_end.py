"""A whole BANGS run on one graph: ours against the plain implementation doing the same epochs.

python benchmarks/end_to_end.py [--json] [--dataset cora] [--rounds 40] [--preset paper]
"""

import time
from dataclasses import replace

import torch

from bangs.experiments.exam import Exam
from bangs.devices import choose_device
from bangs.experiments.experiment import Experiment
from bangs.learners.calibration import ETS
from bangs.loop import State
from bangs.types import Prediction
from measuring import graph, options, peak_bytes, show
from plain_selection import PlainSelection
from plain_training import PlainGCN, PlainTraining


def main() -> None:
    parser = options(__doc__.splitlines()[0])
    parser.add_argument("--dataset", default="cora")
    parser.add_argument("--preset", default="paper")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--without-plain", action="store_true", help="time ours only")
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    name, data = graph(asked.dataset)
    experiment = Experiment(
        dataset=name, preset=asked.preset, seeds=tuple(range(asked.runs)), rounds=asked.rounds, candidates=200, k=100
    )
    epochs: list[int] = []
    begin = time.perf_counter()
    result = experiment.run(device=asked.device, data=data, observers=[lambda state, row: epochs.append(_run(state))])
    ours = time.perf_counter() - begin
    case = {"dataset": name, "preset": asked.preset, "rounds": len(epochs) - 1, "runs": asked.runs}
    rows = [
        {
            **case,
            "system": "bangs",
            "seconds": ours,
            "seconds_a_seed": ours / asked.runs,
            "accuracy": result["validation"]["mean"],
            "peak_bytes": peak_bytes(),
        }
    ]
    if not asked.without_plain:
        slow, accuracy = _plain(replace(experiment, seeds=(0,)), data, epochs)
        rows[0]["ratio"] = slow * asked.runs / ours
        rows.append(
            {
                **case,
                "runs": 1,
                "system": "plain",
                "seconds": slow,
                "seconds_a_seed": slow,
                "accuracy": accuracy,
                "ratio": 1.0,
            }
        )
    show(
        rows,
        asked.json,
        note=f"device {choose_device(asked.device)}; the plain twin runs on the CPU, one seed, as many epochs a round",
    )


def _run(state: State) -> int:
    """The epochs the first run trained for in this round: until its best, and its patience."""
    settings = state.student.learner.trainer
    return min(settings.epochs, int(state.student.epochs[0]) + settings.patience) if state.took_part[0] else 0


def _plain(experiment: Experiment, data, epochs: list[int]) -> tuple[float, float]:
    """Seconds and accuracy of the paper's pseudo-code, written plainly, with these epochs a round."""
    task, exam = experiment.task(data)
    settings = experiment.trainer().trainer
    model = settings.model
    select = PlainSelection()
    begin = time.perf_counter()
    target, validation = task.given.target[0].clone(), task.validation[0]
    best, answer = -1.0, 0.0
    teacher = None
    for number, count in enumerate(epochs):
        if number:
            calibrated = ETS()(Prediction(teacher[None]), task)
            confidence = calibrated.confidence[0].masked_fill((target >= 0) | (validation >= 0), -1)
            players = confidence.topk(min(200, int((confidence >= 0).sum()))).indices
            k = min(100, len(players))
            values = select(task.graph, calibrated.logits[0], target >= 0, players, k, seed=number)
            chosen = players[values.topk(k).indices]
            target[chosen] = calibrated.label[0, chosen]
        torch.manual_seed(number)
        network = PlainGCN(data.x.shape[1], model.hidden, task.classes, model.dropout, model.input_dropout)
        training = PlainTraining(data, network, settings.lr, settings.weight_decay)
        for _ in range(count):
            training.epoch(target, validation)
        logits = training.logits()
        teacher = logits if teacher is None else teacher
        if training.best > best:
            best, answer = training.best, float(Exam.accuracy(exam, Prediction(logits[None]))[0])
    return time.perf_counter() - begin, 100 * answer


if __name__ == "__main__":
    main()
