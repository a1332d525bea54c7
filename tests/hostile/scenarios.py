"""Scenarios: commands that write, what must be there after a disturbance, and after another attempt."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bangs.cli.demo
from bangs.errors import BangsError
from bangs.estimator.classifier import SelfTrainingClassifier
from bangs.experiments.results import rows_in_file
from bangs.graphs.store import Store
from bangs.runs import read_run
from tests.helpers.without_seconds import without_seconds
from tests.hostile.commands import QUIET, Finding
from tests.hostile.sample_files import FIT, SampleFiles, copied

# the demo, made short
bangs.cli.demo.SETTINGS |= {"seeds": (0, 1), "rounds": 1, "k": 20, "candidates": 30, "changes": {"epochs": 3}}

Outcome = Any


@dataclass(frozen=True)
class Scenario:
    """A command, and what is promised of the folder it works in whenever it is stopped."""

    name: str
    lay: Callable[[SampleFiles, Path], None]  # what is there before
    words: Callable[[SampleFiles, Path], tuple[object, ...]]
    again: tuple[str, ...]  # flags of the next attempt
    outcome: Callable[[Path], Outcome]  # what a finished command leaves, but for its seconds
    check: Callable[[SampleFiles, Path, Outcome], None]  # raises a Finding where a stopped one left something wrong
    weight: int = 1


def _nothing(samples: SampleFiles, place: Path) -> None:
    pass


def _unchecked(samples: SampleFiles, place: Path, expected: Outcome) -> None:
    pass


# ── fits ─────────────────────────────────────────────────────────────────────


def _predictions(place: Path) -> Outcome:
    folder = place / "fit"
    files = {name: (folder / name).read_text() for name in ("predictions.csv", "pseudo_labels.csv")}
    record = read_run(folder)
    return (
        files,
        record.config,
        without_seconds(record.result),
        SelfTrainingClassifier.load(folder).predict_proba().tolist(),
    )


def _readable_run(samples: SampleFiles, place: Path, expected: Outcome) -> None:
    if (place / "fit" / "config.json").exists():
        _read(place / "fit")


def _read(folder: Path) -> Any:
    try:
        return read_run(folder)
    except BangsError as error:
        raise Finding("lost", f"the folder cannot be read: {error}") from error


def _one_of_two_fits(samples: SampleFiles, place: Path, expected: Outcome) -> None:
    """The model answers for the configuration beside it, or there is none."""
    folder = place / "fit"
    if not (folder / "config.json").exists():
        return
    record = _read(folder)
    try:
        probs = SelfTrainingClassifier.load(folder).predict_proba().tolist()
    except BangsError:
        return
    before = SelfTrainingClassifier.load(samples.fit).predict_proba().tolist()
    of_model = "new" if probs == expected[3] else "old" if probs == before else "neither"
    of_config = "new" if record.config == expected[1] else "old"
    if of_model != of_config:
        raise Finding("silent", f"the model of the {of_model} fit stands beside the configuration of the {of_config}")


OTHER = ("--rounds=1", "--k=4", "--epochs=6", "--seed=5", *QUIET)


# ── stores ───────────────────────────────────────────────────────────────────


def _stored(place: Path) -> Outcome:
    store = Store.open(place / "store")
    store.verify()
    strange = sorted(path.name for path in place.iterdir() if path.name.startswith("."))
    return store.manifest.features, store.manifest.nodes, strange


def _whole_store(samples: SampleFiles, place: Path, expected: Outcome) -> None:
    try:
        features, _, _ = _stored(place)
    except BangsError as error:
        raise Finding("lost", f"no sound store is left: {error}") from error
    if features not in (expected[0], Store.open(samples.store).manifest.features):
        raise Finding("silent", "the store is neither the old one nor the new one")


# ── suites ───────────────────────────────────────────────────────────────────


def _exported(place: Path) -> Outcome:
    return _rows(place / "rows.jsonl")


def _rows(path: Path) -> list[str]:
    return sorted(json.dumps({**without_seconds(row), "environment": {}}, sort_keys=True) for row in rows_in_file(path))


def _whole_export(samples: SampleFiles, place: Path, expected: Outcome) -> None:
    """The rows that were there are still there, or new ones in their place."""
    path = place / "rows.jsonl"
    if not path.exists() or not path.read_bytes():
        raise Finding("lost", "the rows of an earlier export are gone")
    try:
        now = _exported(place)
    except ValueError as error:
        raise Finding("lost", f"the export is torn: {error}") from error
    old, now = _rows(samples.rows), [row for row in now if '"error"' not in row]
    if not set(now) <= {*old, *expected}:
        raise Finding("silent", "the export holds rows of neither suite")
    if not set(old) <= set(now) and now != expected:
        raise Finding("lost", f"an export of {len(now)} rows took the place of {len(old)}")


def _suite_words(samples: SampleFiles, place: Path) -> tuple[object, ...]:
    return "reproduce", samples.suite, "--seeds=3", "--out", place / "runs", "--export", place / "rows.jsonl", *QUIET


# ── single files ─────────────────────────────────────────────────────────────


def _csv(place: Path) -> Outcome:
    return (place / "p.csv").read_text()


def _old_or_new_csv(samples: SampleFiles, place: Path, expected: Outcome) -> None:
    if _csv(place) not in (expected, samples.predictions.read_text()):
        raise Finding("lost", "the predictions are torn")


def _run_outcome(place: Path) -> Outcome:
    return without_seconds(read_run(place / "run").result)


def _demo_outcome(place: Path) -> Outcome:
    result = json.loads((place / "demo" / "result.json").read_text())
    lines = (place / "demo" / "history.jsonl").read_text().splitlines()
    page = (place / "demo" / "report.html").read_text().rstrip().endswith("</html>")
    return _without_places(without_seconds(result)), len(lines), page


def _without_places(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_places(own) for key, own in value.items() if key not in ("environment", "sha256")}
    return [_without_places(own) for own in value] if isinstance(value, list) else value


SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario(
            "fit",
            _nothing,
            lambda samples, place: ("fit", samples.tables, "--out", place / "fit", *FIT),
            ("--resume",),
            _predictions,
            _readable_run,
            weight=3,
        ),
        Scenario(
            "fit --overwrite",
            lambda samples, place: copied(samples.fit, place / "fit") and None,
            lambda samples, place: ("fit", samples.tables, "--out", place / "fit", "--overwrite", *OTHER),
            (),
            _predictions,
            _one_of_two_fits,
            weight=3,
        ),
        Scenario(
            "convert",
            _nothing,
            lambda samples, place: ("convert", samples.tables, place / "store", "--quiet"),
            ("--overwrite",),
            _stored,
            _unchecked,
        ),
        Scenario(
            "convert --overwrite",
            lambda samples, place: copied(samples.store, place / "store") and None,
            lambda samples, place: (
                "convert",
                samples.tables,
                place / "store",
                "--ignore=age",
                "--overwrite",
                "--quiet",
            ),
            (),
            _stored,
            _whole_store,
            weight=3,
        ),
        Scenario(
            "reproduce",
            lambda samples, place: copied(samples.rows, place / "rows.jsonl") and None,
            _suite_words,
            (),
            _exported,
            _whole_export,
            weight=2,
        ),
        Scenario(
            "predict",
            lambda samples, place: copied(samples.predictions, place / "p.csv") and None,
            lambda samples, place: ("predict", samples.fit, samples.tables, "--out", place / "p.csv", *QUIET),
            (),
            _csv,
            _old_or_new_csv,
        ),
        Scenario(
            "run",
            _nothing,
            lambda samples, place: (
                *("run", f"--dataset={samples.graph}", "--out", place / "run", "--rounds=2", "--k=3"),
                *("--seeds=2", "--epochs=5", *QUIET),
            ),
            ("--resume",),
            _run_outcome,
            _unchecked,
        ),
        Scenario(
            "demo",
            _nothing,
            lambda samples, place: ("demo", "--out", place / "demo", *QUIET),
            (),
            _demo_outcome,
            _unchecked,
        ),
    )
}
WORKERS = Scenario(
    "reproduce --jobs 2",
    lambda samples, place: copied(samples.rows, place / "rows.jsonl") and None,
    lambda samples, place: (*_suite_words(samples, place), "--jobs=2"),
    (),
    _exported,
    _whole_export,
)
