"""Strangers: suites, rows and folders in which something lies that no command expects."""

import json
import os
import random
import socket
from collections.abc import Callable
from pathlib import Path

from tests.fuzz import mutations
from tests.hostile.commands import QUIET, Finding, run_bangs
from tests.hostile.sample_files import SampleFiles, copied, files_of

Draw = random.Random
ESCAPE = "\x1b]0;owned\x07\x1b[2J<script>alert(1)</script>"


def _fifo(path: Path, draw: Draw) -> None:
    os.mkfifo(path)


def _socket(path: Path, draw: Draw) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # the name of a socket is short
    try:
        socket.socket(socket.AF_UNIX).bind(path.name[:90])
    finally:
        os.chdir(here)


def _link(path: Path, draw: Draw) -> None:
    path.symlink_to(draw.choice(("/dev/zero", "/dev/random", "/dev/tty", "/etc/passwd", "/nowhere", path.name, "..")))


def _sparse(path: Path, draw: Draw) -> None:
    path.touch()
    os.truncate(path, draw.choice((2**31, 2**36, 2**43)))


def _deep(path: Path, draw: Draw) -> None:
    depth = draw.choice((500, 5_000, 50_000))
    path.write_text(
        draw.choice(
            (
                "[" * depth + "]" * depth,
                '{"a":' * depth + "1" + "}" * depth,
                ".".join(["a"] * depth) + " = 1\n",
                "[" + ".".join(["axes"] * depth) + "]\n",
                "\n".join(".".join(f"a{i}_{j}" for j in range(200)) + " = 1" for i in range(depth // 200)),
            )
        )
    )


def _long(path: Path, draw: Draw) -> None:
    path.write_text(draw.choice(('"' + "x" * 5_000_000 + '"', "x" * 5_000_000, "\n" * 5_000_000, "," * 5_000_000)))


def _folder(path: Path, draw: Draw) -> None:
    path.mkdir()
    (path / "inside").write_text("x")


def _binary(path: Path, draw: Draw) -> None:
    path.write_bytes(draw.choice((b"", b"\0" * 4096, draw.randbytes(4096), b"\xff\xfe" + "é".encode("utf-16"))))


THINGS: dict[str, Callable[[Path, Draw], None]] = {
    "a pipe": _fifo,
    "a socket": _socket,
    "a link": _link,
    "a sparse giant": _sparse,
    "a deep nest": _deep,
    "a long line": _long,
    "a folder": _folder,
    "bytes": _binary,
}


def replaced(samples: SampleFiles, place: Path, draw: Draw) -> str:
    """A file of a sound folder replaced by something else, and a command that reads the folder."""
    source, commands = _readers(samples, draw)
    subject = copied(source, place / ("mine" + source.suffix))
    victim = draw.choice(files_of(subject)) if subject.is_dir() else subject
    name = draw.choice(sorted(THINGS))
    victim.unlink()
    THINGS[name](victim, draw)
    run_bangs(*(word.replace("*", str(subject)) for word in draw.choice(commands)))
    return f"{name} as {victim.name}"


def added(samples: SampleFiles, place: Path, draw: Draw) -> str:
    """Something strange put into a sound folder, under a name that a command may look for."""
    source, commands = _readers(samples, draw, folders=True)
    subject = copied(source, place / "mine")
    inner = draw.choice([path.parent for path in files_of(subject)])
    names = (
        "x.toml",
        "rows.jsonl",
        "suites/x.toml",
        "report.html",
        "features.npy",
        "\x1b[31m.jsonl",
        "a" * 200,
        "lock",
    )
    victim = inner / draw.choice(names)
    victim.parent.mkdir(exist_ok=True)
    if victim.exists():
        victim.unlink()
    name = draw.choice(sorted(THINGS))
    THINGS[name](victim, draw)
    run_bangs(*(word.replace("*", str(subject)) for word in draw.choice(commands)))
    return f"{name} beside, as {victim.name[:20]}"


def damaged(samples: SampleFiles, place: Path, draw: Draw) -> str:
    """Rows, suites and tables with values of a stranger's choice; none of them commands a terminal."""
    kind = draw.choice(("rows", "suite", "tables", "names"))
    if kind == "rows":
        rows = [json.loads(line) for line in samples.rows.read_text().splitlines()]
        for row in rows:
            row["config"] = mutations.value(row["config"], draw)
            if isinstance(row["config"], dict) and draw.random() < 0.5:
                row["config"][draw.choice(("dataset", "method", "model"))] = ESCAPE
            row |= {"environment": {"device": ESCAPE}} if draw.random() < 0.3 else {}
        path = place / "rows.jsonl"
        path.write_text("".join(json.dumps(mutations.value(row, draw)) + "\n" for row in rows))
        command = draw.choice(("table", "figure", "report"))
        result = run_bangs(command, path, *(("--suite", samples.suite) if draw.random() < 0.7 else ()))
        if "<script>" in result.out:
            raise Finding("tracebacks", f"markup of a row reaches the output of `bangs {command}`")
    elif kind == "suite":
        text = samples.suite.read_text()
        spoilt = text.replace("Tiny", ESCAPE.encode("unicode_escape").decode().replace("\\x", "\\u00"))
        body = mutations.TEXT((spoilt if draw.random() < 0.5 else text).encode(), draw)
        (place / "suite.toml").write_bytes(body)
        rows = copied(samples.rows, place / "rows.jsonl")
        run_bangs(*draw.choice((("table", rows, "--suite"), ("report", rows, "--suite"))), place / "suite.toml")
    else:
        folder = copied(samples.tables, place / "tables")
        file = draw.choice(files_of(folder))
        file.write_bytes(mutations.TEXT(file.read_bytes(), draw))
        out = ("--out", place / "out")
        fit = ("fit", folder, *out, "--rounds=1", "--epochs=2", *QUIET)
        run_bangs(*draw.choice((fit, ("convert", folder, place / "out"), ("predict", samples.fit, folder, *out))))
    return kind


def _readers(samples: SampleFiles, draw: Draw, folders: bool = False) -> tuple[Path, list[list[str]]]:
    """A sound file or folder, and commands that read it; * stands for its copy."""
    quick = ["--rounds=1", "--epochs=2", *QUIET]
    known: list[tuple[Path, list[list[str]]]] = [
        (
            samples.fit,
            [
                ["explain", "*", "n1"],
                ["report", "*"],
                ["suggest", "*", "--count=3"],
                ["label", "*", "--out=labels", "--prepare", *QUIET],
                ["predict", "*", str(samples.tables), "--out=p.csv"],
            ],
        ),
        (samples.fit, [["fit", str(samples.tables), "--out=*", "--resume", *quick], ["table", "*"]]),
        (samples.fit, [["convert", str(samples.tables), "store", "--like=*"]]),
        (samples.run, [["report", "*"], ["run", f"--dataset={samples.graph}", "--out=*", "--resume", *quick]]),
        (samples.results, [["table", "*"], ["figure", "*"], ["report", "*"]]),
        (samples.results, [["reproduce", str(samples.suite), "--out=*", *QUIET]]),
        (samples.store, [["fit", "*", "--out=out", *quick], ["predict", str(samples.fit), "*", "--out=p.csv"]]),
        (samples.store, [["run", "--dataset=*", "--k=3", "--seeds=1", *quick], ["convert", "*", "other"]]),
        (samples.tables, [["fit", "*", "--out=out", *quick], ["convert", "*", "store"]]),
        (samples.tables, [["predict", str(samples.fit), "*", "--out=p.csv"]]),
    ]
    if not folders:
        known += [
            (samples.rows, [["table", "*"], ["report", "*"], ["figure", "*"]]),
            (samples.rows, [["reproduce", str(samples.suite), "--out=runs", "--known=*", *QUIET]]),
            (samples.suite, [["table", str(samples.rows), "--suite=*"], ["reproduce", "*", "--out=runs", *QUIET]]),
            (samples.graph, [["fit", "*", "--out=out", *quick], ["convert", "*", "store"]]),
            (samples.graph, [["run", "--dataset=*", "--k=3", "--seeds=1", *quick]]),
        ]
    return draw.choice(known)
