"""Models: fits, stores and checkpoints that were damaged, or edited and sealed again."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bangs.errors import BangsError
from bangs.estimator import model_file
from bangs.estimator.classifier import SelfTrainingClassifier
from bangs.runs.checkpoint_file import decode, encode
from tests.fuzz import mutations
from tests.hostile.commands import QUIET, Finding, describe, run_bangs
from tests.hostile.sample_files import SampleFiles, copied, files_of

Draw = random.Random
MODEL = model_file.FILE


def edited(samples: SampleFiles, place: Path, draw: Draw) -> str:
    """A model whose tensors or facts a stranger changed and sealed again: refused, or it says sound numbers."""
    folder = copied(samples.fit, place / "fit")
    held = decode((folder / MODEL).read_bytes(), model_file.KIND)
    for _ in range(draw.choice((1, 1, 2, 4))):
        if draw.random() < 0.6:
            name = draw.choice(sorted(held.tensors))
            held.tensors[name] = draw.choice(TENSORS)(held.tensors[name], draw)
        else:
            mutations.value(held.facts, draw)
    try:
        body = b"".join(encode(held, model_file.KIND))
    except Exception:  # what cannot be sealed cannot be sent
        return "not sealed"
    (folder / MODEL).write_bytes(body)
    _used(samples, folder, place, draw)
    return "edited"


def damaged(samples: SampleFiles, place: Path, draw: Draw) -> str:
    """A fit with a changed file and the old seal: refused, or it answers as before."""
    folder = copied(samples.fit, place / "fit")
    victim = draw.choice([path for path in files_of(folder) if path.suffix in (".json", ".safetensors")])
    victim.write_bytes(mutations.BYTES(victim.read_bytes(), draw))
    probs = _used(samples, folder, place, draw)
    if probs is not None and victim.name == MODEL and not np.array_equal(probs, sound(samples)):
        raise Finding("silent", "a damaged model answers otherwise")
    return f"damaged {victim.name}"


def edited_store(samples: SampleFiles, place: Path, draw: Draw) -> str:
    """A store with changed bytes, or another manifest: refused, or used without a crash."""
    folder = copied(samples.store, place / "store")
    victim = draw.choice(files_of(folder))
    change = mutations.SEALED if victim.suffix == ".json" and draw.random() < 0.8 else mutations.BYTES
    victim.write_bytes(change(victim.read_bytes(), draw))
    quick = ("--rounds=1", "--epochs=2", *QUIET)
    run_bangs(
        *draw.choice(
            (
                ("fit", folder, "--out", place / "out", *quick),
                ("predict", samples.fit, folder, "--out", place / "p.csv", *QUIET),
                ("run", f"--dataset={folder}", "--k=3", "--seeds=1", *quick),
                ("convert", samples.tables, folder, "--overwrite", "--quiet"),
            )
        )
    )
    return f"store {victim.name}"


def sound(samples: SampleFiles) -> "np.ndarray[Any, Any]":
    """What the sound model says of its graph."""
    return SelfTrainingClassifier.load(samples.fit).predict_proba()


def _used(samples: SampleFiles, folder: Path, place: Path, draw: Draw) -> "np.ndarray[Any, Any] | None":
    """The model read by Python and by a command; its probabilities, None where it is refused."""
    command = draw.choice(
        (
            ("explain", folder, "n1"),
            ("report", folder),
            ("predict", folder, samples.tables, "--out", place / "p.csv", *QUIET),
            ("fit", samples.tables, "--out", folder, "--resume", "--rounds=2", "--k=3", "--epochs=5", *QUIET),
        )
    )
    run_bangs(*command)
    try:
        model = SelfTrainingClassifier.load(folder)
        probs = model.predict_proba()
        model.explain(draw.randrange(len(probs)))
    except BangsError:
        return None
    except Exception as error:
        raise Finding("tracebacks", describe(error)) from error
    if not np.isfinite(probs).all() or not np.allclose(probs.sum(1), 1):
        raise Finding("silent", "an edited model says what is no probability")
    return probs


def _put(tensor: torch.Tensor, draw: Draw) -> torch.Tensor:
    out = tensor.clone()
    if out.numel():
        values = (0, 1, -1, 7, 2**31) if not out.is_floating_point() else (0.0, 1e38, float("nan"), float("inf"), -1e30)
        out.view(-1)[draw.randrange(out.numel())] = (
            draw.choice(values) if out.dtype not in (torch.bool, torch.uint8) else 1
        )
    return out


TENSORS: tuple[Callable[[torch.Tensor, Draw], torch.Tensor], ...] = (
    _put,
    _put,
    _put,
    lambda tensor, draw: tensor[: len(tensor) // 2].clone() if tensor.dim() else tensor,
    lambda tensor, draw: torch.cat([tensor, tensor]) if tensor.dim() else tensor,
    lambda tensor, draw: tensor.to(draw.choice((torch.float64, torch.float16, torch.int8, torch.bool, torch.int64))),
    lambda tensor, draw: tensor.flatten(),
    lambda tensor, draw: tensor[None],
    lambda tensor, draw: torch.zeros_like(tensor),
    lambda tensor, draw: tensor.flip(0) if tensor.dim() else tensor,
    lambda tensor, draw: torch.empty(0, dtype=tensor.dtype),
    lambda tensor, draw: torch.zeros((), dtype=tensor.dtype),
)
