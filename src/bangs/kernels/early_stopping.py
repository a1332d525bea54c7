"""Triton kernels for early stopping: which runs improved, and the copy of their weights."""

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 1024  # elements of a weight that one program copies


@triton.jit(do_not_specialize=["nodes", "classes", "patience"])
def _update_best(
    logits, target, counts, accuracy, nll, last_progress, best_epoch, epoch_count, unfinished, improved,
    nodes, classes, patience, LOSS: tl.constexpr, B: tl.constexpr, C: tl.constexpr,
):  # fmt: skip
    run = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, C)
    hits = tl.zeros([B], dtype=tl.int64)
    nll_sum = tl.zeros([B], dtype=tl.float64)
    for start in range(0, nodes, B):
        node = start + tl.arange(0, B)
        label = tl.load(target + run * nodes + node, mask=node < nodes, other=-1)
        known = label >= 0
        loaded = known[:, None] & (column < classes)[None, :]
        address = logits + (run * nodes + node[:, None]) * classes + column[None, :]
        score = tl.load(address, mask=loaded, other=-float("inf"))
        score = tl.where(known[:, None], score, tl.where(column[None, :] == 0, 0.0, -float("inf")))
        top = tl.max(score, axis=1)
        total = top + tl.log(tl.sum(tl.exp(score - top[:, None]), axis=1))
        target_score = tl.sum(tl.where(column[None, :] == label[:, None], score, 0.0), axis=1)
        hits += (known & (tl.argmax(score, axis=1) == label)).to(tl.int64)
        nll_sum += tl.where(known, total - target_score, 0.0).to(tl.float64)
    count = tl.load(counts + run).to(tl.float64)
    share, loss = tl.sum(hits, axis=0).to(tl.float64) / count, tl.sum(nll_sum, axis=0) / count
    best, least, now = tl.load(accuracy + run), tl.load(nll + run), tl.load(epoch_count + run)
    learning = tl.load(unfinished + run) != 0
    sound = learning & (loss < float("inf")) & (loss > -float("inf"))
    lower = sound & (loss < least)
    progress = lower if LOSS else sound & (share > best)
    gain = lower if LOSS else progress | (lower & (share == best))
    since = tl.where(progress, now, tl.load(last_progress + run))
    tl.store(accuracy + run, tl.where(gain, share, best))
    tl.store(nll + run, tl.where(gain, loss, least))
    tl.store(last_progress + run, since)
    tl.store(unfinished + run, learning & (now - since < patience))
    tl.store(best_epoch + run, tl.where(gain, now + 1, tl.load(best_epoch + run)))
    tl.store(epoch_count + run, now + 1)
    tl.store(improved + run, gain)


@triton.jit(do_not_specialize=["count"])
def _copy_improved(improved, weight, best, count, B: tl.constexpr):
    run = tl.program_id(1).to(tl.int64)
    if tl.load(improved + run) != 0:
        position = tl.program_id(0) * B + tl.arange(0, B)
        inside = position < count
        tl.store(best + run * count + position, tl.load(weight + run * count + position, mask=inside), mask=inside)


def update_best(
    logits: Tensor, target: Tensor, counts: Tensor, state: tuple[Tensor, ...], patience: int, monitor: str
) -> Tensor:
    """Update early stopping by the validation logits [R, n, C]; returns which runs improved: bool [R].

    The state, changed in place, is accuracy, nll (float64), last_progress, best_epoch, epoch_count (long) and
    unfinished (bool), each [R].
    """
    runs, nodes, classes = logits.shape
    improved = torch.empty(runs, dtype=torch.bool, device=logits.device)
    columns = triton.next_power_of_2(classes)
    _update_best[(runs,)](
        logits.contiguous(), target, counts, *state, improved, nodes, classes, patience,
        LOSS=monitor == "loss", B=max(16, min(512, 8192 // columns)), C=columns, num_warps=8,
    )  # fmt: skip
    return improved


def copy_improved(improved: Tensor, weight: Tensor, best: Tensor) -> None:
    """Copy a weight [R, …] to the best one, in place, for the runs that improved."""
    count = weight.numel() // len(weight)
    _copy_improved[(triton.cdiv(count, BLOCK), len(weight))](improved, weight, best, count, B=BLOCK, num_warps=4)
