"""Canary: a folder of files that look like ours and are somebody else's; no command may touch them."""

import os
from hashlib import sha256
from pathlib import Path

CONTENT = {
    "manifest.json": b'{"name": "my web app", "start_url": "/"}\n',
    "src/app.js": b"console.log('years of work')\n",
    "config.json": b'{"config": {"port": 8080}}\n',
    "result.json": b'{"mine": 1}\n',
    "history.jsonl": b'{"mine": 1}\n',
    "events.jsonl": b'{"mine": 1}\n',
    "rows.jsonl": b'{"mine": 1}\n',
    "rows.html": b"<p>mine</p>\n",
    "report.html": b"<p>mine</p>\n",
    "notes.md": b"# Mine\n",
    "predictions.csv": b"id,mine\n1,2\n",
    "model.safetensors": b"the only copy",
    "lock": b"my own lock",
    "picture.png": b"\x89PNG mine",
    "suites/suite.toml": b"title = 'mine'\n",
    "asked.txt": b"what they asked me\n",
    "labels.csv": b"id,label",
    "queue.json": b'{"jobs": []}',
    "checkpoints/round-000001.safetensors": b"the only copy",
    ".store.0123456789abcdef.tmp/nodes.bin": b"the only copy",
    ".rows.jsonl.0123456789abcdef.tmp": b"the only copy",
}

Seen = dict[str, tuple[int, int, int, str]]


def lay(folder: Path) -> Seen:
    """Put the canary there; what is to be seen of it from now on."""
    for name, content in CONTENT.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (folder / "link").symlink_to("notes.md")
    return seen(folder)


def seen(folder: Path) -> Seen:
    """Every entry below the folder: its mode, links, time and content."""
    out: Seen = {}
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = os.path.join(place, name)
            stat = os.lstat(path)
            if os.path.islink(path):
                content = os.readlink(path)
            elif os.path.isfile(path):
                content = sha256(Path(path).read_bytes()).hexdigest()
            else:
                content = ""
            time = 0 if os.path.isdir(path) else stat.st_mtime_ns
            out[os.path.relpath(path, folder)] = stat.st_mode, stat.st_nlink, time, content
    return out


def touched(before: Seen, after: Seen, *, new: bool = True) -> str | None:
    """The first entry that was changed, removed or (where `new` counts) added; None if there is none."""
    for name, state in before.items():
        if name not in after:
            return f"removed {name}"
        if after[name] != state and not _only_links(state, after[name]):
            return f"changed {name}"
    return next((f"added {name}" for name in after if new and name not in before), None)


def _only_links(one: tuple[int, int, int, str], other: tuple[int, int, int, str]) -> bool:
    """A folder has more links where folders were added to it; the added folders are entries of their own."""
    return (one[0], one[2], one[3]) == (other[0], other[2], other[3])
