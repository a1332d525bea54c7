"""Outputs: commands that are told to write where somebody else's files are."""

import random
from pathlib import Path

from tests.hostile import canary
from tests.hostile.commands import QUIET, Finding, here
from tests.hostile.world import World

Draw = random.Random


def mistaken(world: World, place: Path, draw: Draw) -> str:
    """A command whose output is a folder or a file of somebody else's; it may add files and change none."""
    folder = place / "theirs"
    before = canary.lay(folder)
    quick = ("--rounds=1", "--epochs=2", *QUIET)
    flag = draw.choice(((), ("--overwrite",), ("--resume",)))
    over = draw.choice(((), ("--overwrite",)))
    inner = folder / draw.choice(("", "src", "checkpoints", ".store.0123456789abcdef.tmp", "manifest.json", "link"))
    file = folder / draw.choice(sorted(name for name in canary.CONTENT))
    words: tuple[object, ...] = draw.choice(
        (
            ("fit", world.tables, "--out", inner, *flag, *quick),
            ("run", f"--dataset={world.graph}", "--out", inner, "--k=3", "--seeds=1", *flag, *quick),
            ("convert", world.tables, inner, *over, "--quiet"),
            ("demo", "--out", inner, *QUIET),
            ("reproduce", world.suite, "--out", inner, *QUIET),
            ("reproduce", world.suite, "--out", place / "runs", "--export", file, *QUIET),
            ("predict", world.fit, world.tables, "--out", file, *QUIET),
            ("suggest", world.fit, "--out", file),
            ("label", world.tables, "--out", inner, "--prepare", "--quiet", "--device=cpu", "--time-limit=0"),
            ("fit", world.tables, "--labels", file, "--out", place / "out", *quick),
            ("table", world.rows, "--page", file),
            ("figure", world.rows, "--suite", world.suite, "--out", inner),
            ("report", folder / "rows.jsonl"),
            ("report", folder),
            ("table", folder),
        )
    )
    said = here(*words)
    if (change := canary.touched(before, canary.seen(folder), new=False)) is not None:
        raise Finding(
            "canary", f"`bangs {words[0]}` {' '.join(map(str, words[1:]))[-60:]!r} {change} (code {said.code})"
        )
    return str(words[0])
