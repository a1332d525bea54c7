"""The short form of `make fuzz`, and every input that once broke a reader."""

import io
import json
import pickle
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from bangs.estimator import model_file
from bangs.runs.checkpoint_file import Checkpoint, decode, encode
from bangs.runs.folder import config_hash
from bangs.utils.files import digest
from tests import ROOT
from tests.fuzz.campaign import feed, make
from tests.fuzz.targets import targets
from tests.helpers.forking import FORKING


@pytest.mark.slow
def test_mutated_inputs_are_read_or_refused_and_nothing_else() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz", "--inputs=300", "--seed=5", "--json"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=FORKING,
    )
    report = json.loads(done.stdout)
    assert done.returncode == 0, report["findings"]
    assert (report["inputs"], report["uncaught"], report["hangs"], report["deaths"], report["outside"]) == (
        300,
        0,
        0,
        0,
        0,
    )
    assert report["refused"] > 100
    assert report["slowest"] < 10


@pytest.mark.parametrize("name", targets())
def test_what_is_sound_is_read(name: str, tmp_path: Path) -> None:
    target = targets()[name]
    assert taken(target.name, {}, tmp_path) == "read"


def test_an_input_is_a_function_of_seed_and_number() -> None:
    one, same, other = make(3, 17), make(3, 17), make(3, 18)
    assert one.files == same.files
    assert one.files != other.files


def taken(name: str, changed: dict[str, bytes], folder: Path) -> str:
    """How the reader takes its sound files with some of them changed."""
    target = targets()[name]
    for file, content in {**target.files, **target.also, **changed}.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_bytes(content)
    kind, seconds, what = feed(target, folder)
    assert seconds < 10
    return f"{kind} {what}".strip()


def npy(header: str, body: bytes = b"") -> bytes:
    spelled = header.encode().ljust(118) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(spelled)) + spelled + body


def suite(old: str, new: str) -> bytes:
    text = targets()["suite"].files["small.toml"].decode()
    assert old in text
    return text.replace(old, new).encode()


def row(**changes: Any) -> bytes:
    run = json.loads(targets()["rows"].files["rows.jsonl"].splitlines()[0])
    (first, *_) = run.pop("rows")
    return json.dumps({**run, "rows": [{**first, **changes}]}).encode() + b"\n"


def resealed(name: str, file: str, change: Callable[[dict[str, Any]], None]) -> bytes:
    body = json.loads(targets()[name].files[file])
    content = body[Path(file).stem]
    change(content)
    return json.dumps({**body, "sha256": digest(content)}).encode()


CHECKPOINT = "checkpoints/round-000002.safetensors"


def checkpoint(change: Callable[[dict[str, torch.Tensor], dict[str, Any]], None]) -> bytes:
    files = targets()["run folder"].files
    owner = config_hash(json.loads(files["config.json"])["config"])
    held = decode(files[CHECKPOINT], owner)
    change(held.tensors, held.facts)
    return b"".join(encode(Checkpoint(2, held.tensors, held.facts), owner))


def model(change: Callable[[dict[str, Any]], None]) -> bytes:
    return edited_model(lambda tensors, facts: change(facts))


def edited_model(change: Callable[[dict[str, torch.Tensor], dict[str, Any]], None]) -> bytes:
    held = decode(targets()["model"].files["model.safetensors"], model_file.KIND)
    change(held.tensors, held.facts)
    return b"".join(encode(held, model_file.KIND))


def calibrated(facts: dict[str, Any], by: Any) -> None:
    facts["params"]["calibrator"] = by


def fit_checkpoint(change: Callable[[dict[str, Any]], None]) -> bytes:
    owner = config_hash({"fit": "small"})
    held = decode(targets()["stopped fit"].files[CHECKPOINT], owner)
    change(held.facts)
    return b"".join(encode(held, owner))


def spoilt(member: str) -> bytes:
    """The features with one member of the archive packed into nonsense."""
    body = bytearray(targets()["array beside"].files["features.npz"])
    with zipfile.ZipFile(io.BytesIO(body)) as archive:
        place = archive.getinfo(member)
    start = place.header_offset + 30 + sum(struct.unpack("<HH", body[place.header_offset + 26 :][:4]))
    body[start : start + place.compress_size] = b"\xff" * place.compress_size
    return bytes(body)


def again(name: str, file: str, **changes: Any) -> bytes:
    """An archive of arrays with some of them changed."""
    out = io.BytesIO()
    with np.load(io.BytesIO(targets()[name].files[file])) as held:
        np.savez(out, **{**held, **changes})
    return out.getvalue()


def no_text() -> bytes:
    body = targets()["parquet"].files["nodes.parquet"]
    return body.replace(b"green", b"gr\xff\xfen")


class Named:
    """A pickle of an array whose content is a number: as many zero bytes as the number."""

    def __reduce__(self) -> Any:
        make, kind, _ = np.zeros(1, np.int32).__reduce__()  # type: ignore[misc]
        return make, kind, (1, (14, 3), np.dtype(np.int32), False, 10**13)


def matrix(*pointers: int) -> bytes:
    held = sp.csr_matrix((len(pointers) - 1, 5), dtype=np.float32)
    held.indptr = np.array(pointers, np.int32)
    return pickle.dumps(held, protocol=4)


def many_times(keys: int, length: int) -> bytes:
    shared = [1] * length
    return pickle.dumps(dict.fromkeys(range(keys), shared), protocol=4)


HEADER = "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }"
AXES = "".join(f"x{n} = [{', '.join([f'{{ x{n} = 1 }}'] * 9)}]\n" for n in range(30))
RUN = "runs/0123456789abcdef"
CRASHERS: dict[str, Callable[[], tuple[str, dict[str, bytes]]]] = {
    "a header that is an unfinished line of Python": lambda: (
        "npy beside",
        {"features.npy": npy("{'descr': '<f4', 'shape': ((")},
    ),
    "a header whose shape is a truth": lambda: ("flickr", {"feats.npy": npy(HEADER % "(True, 0)")}),
    "an empty array of impossible sides": lambda: (
        "flickr",
        {"feats.npy": npy(HEADER % "(0, 99999999999999999999999999)")},
    ),
    "a pickle of nine bytes that asks for gigabytes": lambda: (
        "planetoid",
        {"ind.small.graph": b"\x80\x04Nr\xff\xff\xff\x7f."},
    ),
    "an array whose content is a number": lambda: (
        "planetoid",
        {"ind.small.ally": pickle.dumps(Named(), protocol=4)},
    ),
    "a matrix of fewer than no entries": lambda: ("planetoid", {"ind.small.tx": matrix(0, 0, 0, 0, -7)}),
    "one long list of links named again and again": lambda: ("planetoid", {"ind.small.graph": many_times(18, 30_000)}),
    "a million million seeds": lambda: ("suite", {"small.toml": suite("seeds = 2", "seeds = 999999999999")}),
    "more combinations than atoms": lambda: ("suite", {"small.toml": suite("[axes]\n", "[axes]\n" + AXES)}),
    "a published number without end": lambda: ("suite", {"small.toml": suite("80.1", "9" * 400)}),
    "a number of too many digits": lambda: ("suite", {"small.toml": suite("80.1", "9" * 5000)}),
    "lists in lists in lists": lambda: ("suite", {"small.toml": suite("80.1", "[" * 3000 + "]" * 3000)}),
    "a dataset with a name too long for a file": lambda: (
        "suite",
        {"small.toml": suite('["synthetic", "cora"]', f'["{"9" * 5000}"]')},
    ),
    "rows that are no text": lambda: ("rows", {"rows.jsonl": b"\xff\xfe\n"}),
    "a row without a seed": lambda: ("rows", {"rows.jsonl": row(seed=None)}),
    "a row of curves of unequal length": lambda: ("rows", {"rows.jsonl": row(validation=[0.5])}),
    "a row without curves": lambda: ("rows", {"rows.jsonl": row(test=[], validation=[])}),
    "a row whose run is a list": lambda: ("rows", {"rows.jsonl": row(run=[1])}),
    "a config without seeds": lambda: (
        "finished run",
        {f"{RUN}/config.json": resealed("finished run", f"{RUN}/config.json", lambda c: c.pop("seeds"))},
    ),
    "a result with a round of nonsense": lambda: (
        "finished run",
        {f"{RUN}/result.json": resealed("finished run", f"{RUN}/result.json", lambda c: c["rounds"].append("x"))},
    ),
    "a graph that is a list": lambda: (
        "fit folder",
        {"config.json": resealed("fit folder", "config.json", lambda c: c.update(graph=[]))},
    ),
    "a result without counts": lambda: (
        "fit folder",
        {"result.json": resealed("fit folder", "result.json", lambda c: c.pop("adopted"))},
    ),
    "a checkpoint that knows no data": lambda: ("run folder", {CHECKPOINT: checkpoint(lambda t, f: f.pop("identity"))}),
    "a checkpoint whose rows are a number": lambda: (
        "run folder",
        {CHECKPOINT: checkpoint(lambda t, f: f["parts"].update(rows=7))},
    ),
    "a checkpoint without roles": lambda: (
        "run folder",
        {CHECKPOINT: checkpoint(lambda t, f: f["parts"]["state"].pop("roles"))},
    ),
    "a checkpoint whose roles are lists": lambda: (
        "run folder",
        {CHECKPOINT: checkpoint(lambda t, f: f["parts"]["state"]["roles"].update(best=[1]))},
    ),
    "a checkpoint with a label of no class": lambda: (
        "run folder",
        {CHECKPOINT: checkpoint(lambda t, f: t["state.labels.target"].fill_(99))},
    ),
    "a checkpoint of other sizes": lambda: (
        "run folder",
        {CHECKPOINT: checkpoint(lambda t, f: t.update({"state.logits": torch.zeros(2, 3)}))},
    ),
    "a checkpoint without weights": lambda: (
        "run folder",
        {CHECKPOINT: checkpoint(lambda t, f: t.pop(next(name for name in t if ".weights." in name)))},
    ),
    "a calibrator that is a number": lambda: ("model", {"model.safetensors": model(lambda f: calibrated(f, 3))}),
    "a calibrator that is a model": lambda: (
        "model",
        {"model.safetensors": model(lambda f: calibrated(f, f["members"][0]["architecture"]))},
    ),
    "a form that cannot be unpacked": lambda: ("array beside", {"features.npz": spoilt("format.npy")}),
    "sparse features in no axis at all": lambda: (
        "npz sparse",
        {"graph.npz": again("npz sparse", "graph.npz", x_indices=np.int64(3))},
    ),
    "features beside a table in no axis at all": lambda: (
        "array beside",
        {"features.npz": again("array beside", "features.npz", indices=np.int64(3))},
    ),
    "row pointers that fall": lambda: (
        "array beside",
        {"features.npz": again("array beside", "features.npz", indptr=np.r_[0, 2, [-236] * 28, 66])},
    ),
    "bytes that a file calls text": lambda: ("parquet", {"nodes.parquet": no_text()}),
    "a fit whose merit is a list": lambda: (
        "stopped fit",
        {CHECKPOINT: fit_checkpoint(lambda f: f["parts"]["record"].update(merit=[[1], 2]))},
    ),
    "a fit whose rows tell nonsense": lambda: (
        "stopped fit",
        {CHECKPOINT: fit_checkpoint(lambda f: f["parts"]["record"]["rows"][1].update(took_part=["x"]))},
    ),
    "a fit without a record": lambda: ("stopped fit", {CHECKPOINT: fit_checkpoint(lambda f: f["parts"].pop("record"))}),
}
HARMLESS = {
    "a form that cannot be unpacked",  # the arrays themselves are whole
    "a graph that is a list",  # the page is refused, the rest of the folder still tells its configuration
    "a result without counts",
    "a checkpoint whose rows are a number",  # the run begins again, with an event that says why
}


EDITS: dict[str, Callable[[dict[str, torch.Tensor], dict[str, Any]], Any]] = {
    "a candidate_log with fewer truths than lines": lambda t, f: t.update(
        {"candidate_log.taken": t["candidate_log.taken"][:-1]}
    ),
    "a candidate_log with a truth for every line and node": lambda t, f: t.update(
        {"candidate_log.taken": torch.ones(len(t["candidate_log.taken"]), 200, dtype=torch.bool)}
    ),
    "a candidate_log whose rounds are one number": lambda t, f: t.update({"candidate_log.round": torch.tensor(1)}),
    "a candidate_log whose nodes are small numbers": lambda t, f: t.update(
        {"candidate_log.node": t["candidate_log.node"].int()}
    ),
    "a candidate_log whose truths are numbers": lambda t, f: t.update(
        {"candidate_log.taken": t["candidate_log.taken"].long()}
    ),
    "a candidate_log in no order": lambda t, f: t.update({"candidate_log.round": t["candidate_log.round"].flip(0)}),
    "a candidate_log with a place past the last": lambda t, f: t["candidate_log.place"].fill_(30),
    "a candidate_log that is not sure of anything": lambda t, f: t["candidate_log.confidence"].fill_(float("nan")),
    "a value that is no number": lambda t, f: t["candidate_log.score"].fill_(float("nan")),
    "a model that is nan % sure": lambda t, f: t["calibrated"][3].fill_(float("nan")),
    "logits without end": lambda t, f: t["raw"][3, 1].fill_(float("inf")),
    "a node without any chance": lambda t, f: t["raw"][3].fill_(float("-inf")),
    "a past that is nan % sure": lambda t, f: t["round_confidence"][0, 3].fill_(float("nan")),
    "logits that are whole numbers": lambda t, f: t.update(raw=t["raw"].long()),
    "logits of more classes": lambda t, f: t.update({name: torch.zeros(30, 5) for name in ("raw", "calibrated")}),
    "labels that are one number": lambda t, f: t.update(given=torch.tensor(1)),
    "labels that are truths": lambda t, f: t.update(given=t["given"] > 0),
    "a pseudo-label without a label": lambda t, f: t["adopted_round"].fill_(1),
    "a given label that was not given": lambda t, f: t["given"].fill_(-1),
    "edges that weigh less than nothing": lambda t, f: t.update(
        edge_weight=torch.full(t["edge_index"].shape[1:], -1.0)
    ),
    "edges that weigh nan": lambda t, f: t.update(edge_weight=torch.full(t["edge_index"].shape[1:], float("nan"))),
    "edges between complex numbers": lambda t, f: t.update(edge_index=t["edge_index"].to(torch.complex64)),
    "fewer rows than rounds": lambda t, f: f["snapshot"]["rows"].pop(),
    "no rows at all": lambda t, f: f["snapshot"].update(rows=[]),
    "rows that are numbers": lambda t, f: f["snapshot"].update(rows=[1, 2, 3]),
    "a row that took part in words": lambda t, f: f["snapshot"]["rows"][1].update(took_part="yes"),
    "classes in classes": lambda t, f: f.update(classes=[[0, 1], [1, 2], [2, 3]]),
    "features without end": lambda t, f: f.update(features=float("inf")),
}


@pytest.mark.parametrize("name", EDITS)
def test_a_model_that_someone_edited_and_sealed_again_gives_a_clear_error(name: str, tmp_path: Path) -> None:
    assert taken("model", {"model.safetensors": edited_model(EDITS[name])}, tmp_path) == "refused"


@pytest.mark.parametrize("name", CRASHERS)
def test_what_once_broke_a_reader_gives_a_clear_error(name: str, tmp_path: Path) -> None:
    target, files = CRASHERS[name]()
    assert taken(target, files, tmp_path) == ("read" if name in HARMLESS else "refused")


def test_the_guard_sees_what_a_reader_must_not_do(tmp_path: Path) -> None:
    code = f"""
import sys; sys.path.insert(0, {str(ROOT)!r})
import os, pickle
from tests.fuzz.guard import Guard
guard = Guard(); guard.watching = True; guard.allowed = {str(tmp_path)!r}
open({str(tmp_path / "mine")!r}, "w").close()
os.mkdir({str(tmp_path / "folder")!r})
assert guard.seen == [], guard.seen
open(os.devnull, "w").close()
pickle.loads(b"cos\\ngetcwd\\n.")
os.rename({str(tmp_path / "mine")!r}, {str(tmp_path / "yours")!r})
guard.watching = False
print(len(guard.seen))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "2", done.stderr


def test_an_error_that_is_no_sentence_is_a_finding(tmp_path: Path) -> None:
    class Broken:
        writes = False

        def read(self, folder: Path) -> None:
            raise KeyError("x")

    kind, _, what = feed(Broken(), tmp_path)  # type: ignore[arg-type]
    assert kind == "uncaught"
    assert what.startswith("KeyError at test_fuzz.py:")
