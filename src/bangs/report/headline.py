"""Headline: the main figures of a page, each with a note on how it was measured."""

from collections.abc import Mapping
from typing import Any

from bangs.core.intervals import in_percent
from bangs.report.leaderboard import averaged
from bangs.report.run_data import RunData
from bangs.utils.text import counted


def headline(run_data: RunData) -> dict[str, Any]:
    """A lead sentence, the protocol, figures of label, value, interval and note, and notes on the labels of a fit."""
    return _of_fit(run_data) if run_data.kind == "fit" else _of_run(run_data)


def accuracy_bias(result: Mapping[str, Any]) -> str:
    """Why the validation accuracy of a fit is biased, as the end of a sentence about these nodes."""
    if result.get("folds"):
        several = len(result.get("leaderboard", [])) > 1
        chose = "the weights of the models" if several else "the round" if result["rounds"] else "when training stopped"
        return (
            "these labels were held out from the models that predict them here. Such a model learned fewer labels, "
            f"which lowers the accuracy; the same labels chose {chose}, which raises it"
        )
    if result["rounds"]:
        return "they chose the round, so their accuracy is optimistic"
    return "they decided when training stopped, so their accuracy is a little optimistic"


def _of_fit(run_data: RunData) -> dict[str, Any]:
    result = run_data.result
    validation, test = result["validation"], result["test"]
    figures = []
    if test is not None:
        figures.append(_accuracy("Test accuracy", test, test["nodes"], "used for nothing else", result))
    if validation["accuracy"] is not None:
        folds = ("Accuracy on held-out labels", "held out from the models")
        label, which = folds if result.get("folds") else ("Validation accuracy", "held back")
        figures.append(_accuracy(label, validation, result["held"], which, result))
    figures += _predicted(run_data) if result.get("soft") else [_pseudo_labels(result)]
    if validation["error_after"] is not None:
        low, high = validation["error_interval"]
        on_test = f"; {test['error']:.3f} on the {counted(test['nodes'], 'node')} of the test" if test else ""
        figures.append(
            {
                "label": "Calibration error",
                "value": f"{validation['error_after']:.3f}",
                "interval": f"95\N{NO-BREAK SPACE}% interval {low:.3f} to {high:.3f}",
                "note": f"{validation['error_before']:.3f} before calibration; measured on the same "
                f"{counted(result['held'], 'node')}, each without its own label{on_test}",
            }
        )
    notes = [f"{note[0].upper()}{note[1:]}." for note in result.get("notes", [])]
    return {"lead": _lead(result), "protocol": _protocol(result), "figures": figures, "notes": notes}


def _lead(result: Mapping[str, Any]) -> str:
    sizes = f"{result['nodes']:,} nodes in {len(result['classes'])} classes, {result['given']:,} labels to learn from. "
    candidates = result.get("leaderboard", [])
    if not result["adopted"] and any(one["weight"] > 0 and one["round"] > 0 for one in candidates[1:]):
        return f"{sizes}The model with the most weight learned from these only; others learned from soft labels too."
    if not result["rounds"]:
        return f"{sizes}The model learned from these labels only: no rounds of self-training were asked for."
    if not result["adopted"]:
        return f"{sizes}No round of self-training did better than these alone, so the model learned from them only."
    if result.get("soft"):
        return (
            f"{sizes}The model then gave {result['adopted']:,} more nodes soft labels, the probabilities it had "
            "predicted for each class, and learned again from both."
        )
    return (
        f"{sizes}The model then labelled {result['adopted']:,} more nodes itself, those that teach it most, "
        "and learned again."
    )


def _protocol(result: Mapping[str, Any]) -> str:
    bias = accuracy_bias(result)
    chosen = (
        f"{bias[0].upper()}{bias[1:]}"
        if result.get("folds")
        else f"The model is that of round {result['chosen']} of {result['rounds']}, which did best on the validation "
        f"nodes; {bias}"
        if result["rounds"]
        else f"The validation nodes were held back from learning; {bias}"
    )
    test = (
        "test nodes were used for nothing else."
        if result["test"] is not None
        else "for an unbiased accuracy, add a column named split with the word test in some rows."
    )
    return (
        f"{chosen}; {test} The 95\N{NO-BREAK SPACE}% intervals (Wilson) say how "
        "much an accuracy depends on the nodes it was measured on."
    )


def _predicted(run_data: RunData) -> list[dict[str, str]]:
    """The figure of the nodes without a label; none if all have one."""
    snapshot = run_data.snapshot
    if snapshot is None or not bool((snapshot.known < 0).any()):
        return []
    confidence = snapshot.calibrated[snapshot.known < 0].softmax(-1).amax(-1).double()
    mean, errors = float(confidence.mean()), float((1 - confidence).sum())
    note = f"mean confidence {_percent(mean)}: about {errors:,.0f} of them are expected to be wrong"
    return [{"label": "Predicted nodes", "value": f"{len(confidence):,}", "note": note}]


def _pseudo_labels(result: Mapping[str, Any]) -> dict[str, str]:
    unused = result["adopted_in_all"] - result["adopted"]
    note = f"adopted in {counted(result['chosen'], 'round')}" + (
        f"; {unused:,} of later rounds not used" if unused else ""
    )
    if averaged(result.get("leaderboard", [])):
        note = "of the model with the most weight"
    return {"label": "Pseudo-labels", "value": f"{result['adopted']:,}", "note": note}


def _of_run(run_data: RunData) -> dict[str, Any]:
    result = run_data.result
    rules = [
        ("raw", "Without self-training", "test accuracy of round 0"),
        ("validation", "At the chosen round", "test accuracy at the round with the best validation accuracy"),
        ("last", "At the last round", "test accuracy"),
        ("best_test", "At the best round", "of rounds after 0, chosen by test labels, so it is too high"),
    ]
    figures = [
        {
            "label": label,
            "value": f"{result[name]['mean']:.2f}\N{NO-BREAK SPACE}%",
            "spread": f"± {result[name]['std']:.2f}" if len(result[name]["per_seed"]) > 1 else "",
            "note": note,
        }
        for name, label, note in rules
        if isinstance(result.get(name), dict)
    ]
    seeds = len(run_data.rows[0]["validation"])
    return {
        "lead": (
            f"Model {result.get('model', 'unknown')}, {counted(len(run_data.rows) - 1, 'round')} of self-training, "
            f"{counted(seeds, 'seed')}."
        ),
        "protocol": (
            "Mean and standard deviation over seeds. The round is chosen by validation labels; test labels are only "
            "compared with the predictions."
        ),
        "figures": figures,
    }


def _accuracy(
    label: str, scores: Mapping[str, Any], nodes: int, which: str, result: Mapping[str, Any]
) -> dict[str, str]:
    """The figure of an accuracy on so many nodes; and that of round 0, unless several models are averaged."""
    alone = result["rounds"] and averaged(result.get("leaderboard", [])) < 2
    raw = f"; {_percent(scores['raw'])} without pseudo-labels" if alone else ""
    return {
        "label": label,
        "value": _percent(scores["accuracy"]),
        "interval": f"95\N{NO-BREAK SPACE}% interval {in_percent(scores['accuracy'], nodes)}",
        "note": f"on {counted(nodes, 'node')} {which}{raw}",
    }


def _percent(share: float) -> str:
    return f"{100 * share:.1f}\N{NO-BREAK SPACE}%"
