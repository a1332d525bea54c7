"""World: sound files of every kind that commands read, made once and shared by all cases."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz import sound
from tests.hostile.commands import QUIET, here

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
class World:
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
    def made(cls, root: Path) -> "World":
        world = cls(root)
        world.tables.mkdir(parents=True)
        for name, content in sound.csv().items():
            (world.tables / name).write_bytes(content)
        copied(world.tables, world.others)
        lines = (world.tables / "edges.csv").read_text().splitlines(keepends=True)
        (world.others / "edges.csv").write_text("".join(lines[:-20]))
        world.graph.write_bytes(sound.dense())
        world.suite.write_text(SUITE.format(graph=world.graph))
        for words in (
            ("fit", world.tables, "--out", world.fit, *FIT),
            ("predict", world.fit, world.others, "--out", world.predictions, *QUIET),
            ("convert", world.tables, world.store, "--quiet"),
            ("reproduce", world.suite, "--out", world.results, "--export", world.rows, *QUIET),
            ("run", f"--dataset={world.graph}", "--out", world.run, "--rounds=1", "--k=3", "--seeds=2", "--epochs=5"),
        ):
            said = here(*words)
            assert said.code == 0, said.err
        return world


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
