"""The reference of a fitted model to its store: a path and checksums."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from bangs.errors import InvalidInput
from bangs.graphs.store.manifest import FILE
from bangs.graphs.store.store_folder import is_store
from bangs.graphs.store.stored_graph import Store

REMEDY = "put it back, or give its new path: --store PATH, in Python load(…, store=PATH)"


@dataclass(frozen=True)
class StoreReference:
    """The path of a store and its checksums. The first access to `store` opens and compares it."""

    path: Path
    digest: str  # of its manifest, which includes the checksums
    nodes: int
    checksums: Mapping[str, str]  # the sha256 of every array, by name

    @classmethod
    def of(cls, store: Store) -> "StoreReference":
        manifest = store.manifest
        checksums = {name: array.sha256 for name, array in manifest.arrays.items()}
        reference = cls(Path(store.path).resolve(), manifest.digest, manifest.nodes, checksums)
        reference.__dict__["store"] = store
        return reference

    @cached_property
    def store(self) -> Store:
        """The open store; raises if it is missing or another one."""
        if not is_store(self.path):
            raise InvalidInput(
                f"the model was fitted on a store at '{self.path}', which is not there (no {FILE}); {REMEDY}"
            )
        store = Store.open(self.path)
        if store.manifest.digest != self.digest:
            raise InvalidInput(
                f"the store at '{self.path}' is not the one the model was fitted on: {self._changed(store)}; "
                f"{REMEDY}, or fit the model again"
            )
        return store

    def at(self, path: str | Path) -> "StoreReference":
        """The same store at another path."""
        return replace(self, path=Path(path).resolve())

    def to_plain(self, folder: Path) -> dict[str, Any]:
        """The reference as JSON for a file in this folder; the path is relative to it."""
        path = os.path.relpath(self.path, folder.resolve())
        return {"path": path, "digest": self.digest, "nodes": self.nodes, "checksums": dict(self.checksums)}

    @classmethod
    def from_plain(cls, facts: Mapping[str, Any], folder: Path) -> "StoreReference":
        """The reference that `to_plain` wrote for a file in this folder."""
        path, digest, nodes, checksums = (facts[name] for name in ("path", "digest", "nodes", "checksums"))
        if not isinstance(checksums, dict) or "\0" in path:
            raise InvalidInput("the saved run does not name its store as bangs does")
        by_name = {str(name): str(value) for name, value in checksums.items()}
        return cls(Path(os.path.normpath(folder.resolve() / str(path))), str(digest), int(nodes), by_name)

    def _changed(self, store: Store) -> str:
        """How a store differs from this reference."""
        if store.num_nodes != self.nodes:
            return f"it has {store.num_nodes:,} nodes, the other had {self.nodes:,}"
        current = {name: array.sha256 for name, array in store.manifest.arrays.items()}
        changed = sorted(
            name for name in current.keys() | self.checksums.keys() if current.get(name) != self.checksums.get(name)
        )
        return (
            f"the checksums of {', '.join(changed)} differ" if changed else "its manifest differs, such as the classes"
        )
