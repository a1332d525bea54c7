"""`convert --overwrite` replaces stores only, and a kill in the meantime leaves a complete store."""

import json
import os
from pathlib import Path

import pytest

from bangs.errors import InvalidInput
from bangs.graphs.store import Store, convert_from, is_store, store_folder, writer
from bangs.graphs.store.writer import Writer
from tests.helpers.killing import in_a_child

OLD, NEW = ("synthetic:nodes=120,edges=300,classes=2", "synthetic:nodes=90,edges=300,classes=2")
KILLED = 7


@pytest.fixture
def store(tmp_path: Path) -> Path:
    convert_from(OLD, tmp_path / "store")
    return tmp_path / "store"


def everything(path: Path) -> dict[str, bytes]:
    return {str(file.relative_to(path)): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}


def test_a_store_is_replaced_with_the_option_overwrite(store: Path) -> None:
    with pytest.raises(InvalidInput, match=r"exists already.*--overwrite"):
        convert_from(NEW, store)
    convert_from(NEW, store, overwrite=True)
    assert Store.open(store).num_nodes == 90
    assert os.listdir(store.parent) == ["store"]


def test_a_folder_with_another_programs_manifest_is_never_replaced(tmp_path: Path) -> None:
    app = tmp_path / "app"
    (app / "src").mkdir(parents=True)
    (app / "manifest.json").write_text('{"name": "my web app", "kind": "bangs graph"}')
    (app / "src" / "index.js").write_text("years of work")
    before = everything(tmp_path)
    with pytest.raises(InvalidInput, match="is not a store that bangs wrote"):
        convert_from(NEW, app, overwrite=True)
    assert everything(tmp_path) == before


def test_other_files_in_a_store_are_named_and_kept(store: Path) -> None:
    (store / "fit").mkdir()
    (store / "fit" / "model.safetensors").write_text("a model")
    (store / "notes.txt").write_text("mine")
    before = everything(store)
    with pytest.raises(InvalidInput, match=r"also holds 'fit', 'notes.txt', which is not part of the store"):
        convert_from(NEW, store, overwrite=True)
    assert everything(store) == before


def test_a_file_added_to_a_store_during_a_conversion_is_kept(store: Path) -> None:
    with Writer(store, overwrite=True) as new:
        (store / "late.txt").write_text("mine")
        with pytest.raises(InvalidInput, match=r"'late.txt'"):
            new.finish(nodes=1, edges=0, features=1, classes=())
    assert (store / "late.txt").read_text() == "mine"
    assert Store.open(store).num_nodes == 120


def test_a_manifest_that_someone_edited_does_not_make_a_folder_ours(store: Path) -> None:
    content = json.loads((store / "manifest.json").read_text())
    (store / "manifest.json").write_text(json.dumps({**content, "nodes": 121}))
    with pytest.raises(InvalidInput, match=r"the seal in .* does not match"):
        convert_from(NEW, store, overwrite=True)
    assert is_store(store)


def test_a_damaged_store_can_be_replaced(store: Path) -> None:
    (store / "in.nodes.bin").write_bytes(b"cut")
    (store / "labels.bin").unlink()
    convert_from(NEW, store, overwrite=True)
    assert Store.open(store).num_nodes == 90


@pytest.mark.parametrize("kind", ["file", "link", "photos"])
def test_only_the_folder_of_a_store_is_replaced(store: Path, tmp_path: Path, kind: str) -> None:
    target = tmp_path / "place"
    if kind == "file":
        target.write_text("mine")
    elif kind == "link":
        target.symlink_to(store)
    else:
        target.mkdir()
        (target / "one.jpg").touch()
    with pytest.raises(InvalidInput, match="--overwrite replaces a store and nothing else"):
        convert_from(NEW, target, overwrite=True)
    assert os.path.lexists(target)
    assert Store.open(store).num_nodes == 120


def test_an_empty_folder_is_filled(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    convert_from(NEW, tmp_path / "empty", overwrite=True)
    assert Store.open(tmp_path / "empty").num_nodes == 90


def die(*_: object) -> None:
    os._exit(KILLED)


@pytest.mark.parametrize("exchange", [True, False], ids=["one step", "two renames"])
@pytest.mark.parametrize("moment", ["before", "between", "after"])
def test_a_kill_while_a_store_is_replaced_leaves_a_store_and_the_next_start_cleans_up(
    store: Path, moment: str, exchange: bool
) -> None:
    def killed() -> int:
        rename, renames = os.rename, []

        def second_kills(source: Path, target: Path) -> None:
            renames.append(target)
            die() if len(renames) == 2 else rename(source, target)

        if not exchange:
            store_folder._exchange = lambda *_: False
        if moment == "before":
            writer.move_into_place = die
        elif moment == "between":
            store_folder.os.rename = second_kills
        if moment == "after":
            store_folder._remove = die
        convert_from(NEW, store, overwrite=True)
        return 0

    _, status = os.waitpid(in_a_child(killed), 0)
    survives = exchange and moment == "between"  # there is no moment between in one step
    assert os.waitstatus_to_exitcode(status) == (0 if survives else KILLED)
    assert is_store(store)
    nodes = Store.open(store).num_nodes
    assert nodes == (120 if moment == "before" else 90)
    convert_from("synthetic:nodes=80,edges=300,classes=2", store, overwrite=True)
    assert Store.open(store).num_nodes == 80
    assert os.listdir(store.parent) == ["store"]


def test_a_first_conversion_killed_at_its_end_is_finished_with_a_message(tmp_path: Path) -> None:
    def killed() -> int:
        writer.move_into_place = die
        convert_from(NEW, tmp_path / "store")
        return 0

    os.waitpid(in_a_child(killed), 0)
    with pytest.raises(InvalidInput, match="an interrupted conversion left unfinished; it is now in place"):
        convert_from(NEW, tmp_path / "store")
    assert Store.open(tmp_path / "store").num_nodes == 90
    assert os.listdir(tmp_path) == ["store"]


def test_leftovers_are_removed_unless_they_are_in_use_or_not_ours(tmp_path: Path) -> None:
    dead, strange, other = (
        tmp_path / f".{name}.{number:016x}.tmp" for number, name in enumerate(("store", "store", "another"))
    )
    for leftover in (dead, strange, other):
        (leftover / "scratch").mkdir(parents=True)
        (leftover / "features.bin").write_bytes(b"half")
        (leftover / "scratch" / "in.0.keys").write_bytes(b"half")
    (strange / "diary.txt").write_text("mine")
    with Writer(tmp_path / "store") as running:
        convert_from(NEW, tmp_path / "store")
        assert running.folder.is_dir()
    assert sorted(os.listdir(tmp_path)) == sorted([strange.name, other.name, "store"])
    assert (strange / "diary.txt").read_text() == "mine"
