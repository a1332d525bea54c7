"""Things that a stranger may have put where a file of ours belongs."""

import os
from collections.abc import Callable
from pathlib import Path

STRANGE: dict[str, Callable[[Path], None]] = {
    "a pipe": os.mkfifo,
    "an endless file": lambda path: path.symlink_to("/dev/zero"),
    "a giant": lambda path: (path.touch(), os.truncate(path, 2**43))[1],
    "a folder": lambda path: path.mkdir(),
}
