"""Outputs: commands whose output is given a path where somebody else's files are."""

import random
from pathlib import Path

from tests.hostile import canary
from tests.hostile.commands import QUIET, Finding, run_bangs
from tests.hostile.sample_files import SampleFiles

Draw = random.Random


def mistaken(samples: SampleFiles, place: Path, draw: Draw) -> str:
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
            ("fit", samples.tables, "--out", inner, *flag, *quick),
            ("run", f"--dataset={samples.graph}", "--out", inner, "--k=3", "--seeds=1", *flag, *quick),
            ("convert", samples.tables, inner, *over, "--quiet"),
            ("demo", "--out", inner, *QUIET),
            ("reproduce", samples.suite, "--out", inner, *QUIET),
            ("reproduce", samples.suite, "--out", place / "runs", "--export", file, *QUIET),
            ("predict", samples.fit, samples.tables, "--out", file, *QUIET),
            ("suggest", samples.fit, "--out", file),
            ("label", samples.tables, "--out", inner, "--prepare", "--quiet", "--device=cpu", "--time-limit=0"),
            ("fit", samples.tables, "--labels", file, "--out", place / "out", *quick),
            ("table", samples.rows, "--page", file),
            ("figure", samples.rows, "--suite", samples.suite, "--out", inner),
            ("report", folder / "rows.jsonl"),
            ("report", folder),
            ("table", folder),
        )
    )
    result = run_bangs(*words)
    if (change := canary.touched(before, canary.seen(folder), new=False)) is not None:
        raise Finding(
            "canary", f"`bangs {words[0]}` {' '.join(map(str, words[1:]))[-60:]!r} {change} (code {result.code})"
        )
    return str(words[0])
