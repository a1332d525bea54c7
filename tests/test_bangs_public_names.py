"""Public names are imported when they are first used."""

from typing import Any

import pytest

import bangs


def test_a_broken_package_is_named_where_a_public_name_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> Any:
        raise AttributeError("module 'triton' has no attribute 'language'")

    monkeypatch.setattr(bangs, "import_module", broken)
    monkeypatch.delitem(vars(bangs), "Top", raising=False)
    with pytest.raises(ImportError, match=r"bangs\.Top cannot be imported: module 'triton'"):
        from bangs import Top  # noqa: F401
