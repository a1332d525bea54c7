"""SampleFiles: sound files of every kind that commands read, made once and shared by all cases."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz import sound
from tests.hostile.commands import QUIET, run_bangs

SUITE = """
title = "Tiny"
focus = "bangs"
[experiment]
rounds = 1
k = 5
candidates = 10
seeds = 2
changes = {{ epochs = 4, patience = 4 }}
[axes]
dataset = ["{graph}"]
method = ["raw", "bangs"]
[names]
bangs = "BANGS"
"""
FIT = ("--rounds=2", "--k=3", "--epochs=5", *QUIET)


@dataclass(frozen=True)
class SampleFiles:
    """Where the sound files lie; cases read them and work in a folder of their own."""

    root: Path

    @property
    def tables(self) -> Path:
        return self.root / "tables"

    @property
    def others(self) -> Path:
        """The same nodes with fewer edges."""
        return self.root / "others"

    @property
    def graph(self) -> Path:
        return self.root / "graph.npz"

    @property
    def suite(self) -> Path:
        return self.root / "suite.toml"

    @property
    def fit(self) -> Path:
        return self.root / "fit"

    @property
    def store(self) -> Path:
        return self.root / "store"

    @property
    def results(self) -> Path:
        return self.root / "results"

    @property
    def rows(self) -> Path:
        return self.root / "rows.jsonl"

    @property
    def run(self) -> Path:
        return self.root / "run"

    @property
    def predictions(self) -> Path:
        return self.root / "predictions.csv"

    @classmethod
    def create(cls, root: Path) -> "SampleFiles":
        samples = cls(root)
        samples.tables.mkdir(parents=True)
        for name, content in sound.csv().items():
            (samples.tables / name).write_bytes(content)
        copied(samples.tables, samples.others)
        lines = (samples.tables / "edges.csv").read_text().splitlines(keepends=True)
        (samples.others / "edges.csv").write_text("".join(lines[:-20]))
        samples.graph.write_bytes(sound.dense())
        samples.suite.write_text(SUITE.format(graph=samples.graph))
        for words in (
            ("fit", samples.tables, "--out", samples.fit, *FIT),
            ("predict", samples.fit, samples.others, "--out", samples.predictions, *QUIET),
            ("convert", samples.tables, samples.store, "--quiet"),
            ("reproduce", samples.suite, "--out", samples.results, "--export", samples.rows, *QUIET),
            (
                "run",
                f"--dataset={samples.graph}",
                "--out",
                samples.run,
                "--rounds=1",
                "--k=3",
                "--seeds=2",
                "--epochs=5",
            ),
        ):
            result = run_bangs(*words)
            assert result.code == 0, result.err
        return samples


def copied(source: Path, target: Path) -> Path:
    """A copy of a sound file or folder, for a case to spoil."""
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
    return target


def files_of(folder: Path) -> list[Path]:
    """The files below a folder, in order."""
    return sorted(Path(place) / name for place, _, names in os.walk(folder) for name in names)
