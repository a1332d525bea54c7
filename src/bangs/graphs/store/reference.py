"""StoreReference: a store by the place it lies at and the checksums it must have, for what was made from it."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from bangs.errors import InvalidInput
from bangs.graphs.store.folder import is_store
from bangs.graphs.store.manifest import FILE
from bangs.graphs.store.stored_graph import Store

WAY_OUT = "put it back, or say where it lies now: --store PATH, in Python load(…, store=PATH)"


@dataclass(frozen=True)
class StoreReference:
    """Where a store lies and what it holds; it is opened, and compared, when it is first asked for."""

    path: Path
    digest: str  # of its manifest, which covers the checksums
    nodes: int
    checksums: Mapping[str, str]  # the sha256 of every array, by name

    @classmethod
    def of(cls, store: Store) -> "StoreReference":
        manifest = store.manifest
        checksums = {name: array.sha256 for name, array in manifest.arrays.items()}
        found = cls(Path(store.path).resolve(), manifest.digest, manifest.nodes, checksums)
        found.__dict__["store"] = store
        return found

    @cached_property
    def store(self) -> Store:
        """The store itself; raises where it is gone or another one lies there."""
        if not is_store(self.path):
            raise InvalidInput(
                f"the model was fitted on a store at '{self.path}', and none lies there (no {FILE}); {WAY_OUT}"
            )
        found = Store.open(self.path)
        if found.manifest.digest != self.digest:
            raise InvalidInput(
                f"the store at '{self.path}' is not as it was when the model was fitted on it: {self._changed(found)}; "
                f"{WAY_OUT}, or fit the model again"
            )
        return found

    def at(self, path: str | Path) -> "StoreReference":
        """The same store at another place."""
        return replace(self, path=Path(path).resolve())

    def to_plain(self, folder: Path) -> dict[str, Any]:
        """JSON-able facts for a file in the folder, from which the store's path is told."""
        path = os.path.relpath(self.path, folder.resolve())
        return {"path": path, "digest": self.digest, "nodes": self.nodes, "checksums": dict(self.checksums)}

    @classmethod
    def from_plain(cls, facts: Mapping[str, Any], folder: Path) -> "StoreReference":
        """What `to_plain` told of a file in the folder; kinds are checked."""
        path, digest, nodes, checksums = (facts[name] for name in ("path", "digest", "nodes", "checksums"))
        if not isinstance(checksums, dict) or "\0" in path:
            raise InvalidInput("the saved run does not name its store as bangs does")
        spelled = {str(name): str(value) for name, value in checksums.items()}
        return cls(Path(os.path.normpath(folder.resolve() / str(path))), str(digest), int(nodes), spelled)

    def _changed(self, found: Store) -> str:
        """What is not as it was."""
        if found.num_nodes != self.nodes:
            return f"it has {found.num_nodes:,} nodes and had {self.nodes:,}"
        now = {name: array.sha256 for name, array in found.manifest.arrays.items()}
        odd = sorted(name for name in now.keys() | self.checksums.keys() if now.get(name) != self.checksums.get(name))
        return f"other checksums of {', '.join(odd)}" if odd else "other facts in its manifest, such as classes"
