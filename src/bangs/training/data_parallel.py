"""Mini-batch training of one run by several processes, each with its pieces of every batch."""

from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from bangs.core.rng import Streams
from bangs.distributed import ranks
from bangs.nn.dropout import dropout_masks
from bangs.nn.ensemble import Network
from bangs.training.minibatch import MinibatchSession, NodeLoader, prefetch
from bangs.utils import signals

if TYPE_CHECKING:
    from bangs.training.trainer import Trainer


class DistributedSession(MinibatchSession):
    """A batch is divided into `Sampling.pieces`, each with its own random numbers; ranks share the pieces.

    The loss of a batch is the mean over its nodes, so the mean of a piece is weighted by its share of them. The
    gradients of all ranks are summed before the step of Adam. The learned weights depend on the number of pieces, but
    on the number of ranks only by rounding. Validation nodes are shared in the same way.
    """

    def __init__(
        self, network: Network, train_nodes: NodeLoader, val_nodes: NodeLoader, settings: "Trainer", classes: int
    ):
        super().__init__(network, train_nodes, val_nodes, settings)
        self.classes = classes

    def epoch(self) -> Tensor:
        """One step for every batch and one validation; returns whether the run improved: bool [1]."""
        plan = self._plan(Streams(tuple(self.numbers)).at("epoch", self.epochs))
        draws = [partial(self.train_loader.part, index, rng) for pieces in plan for index, _, rng in pieces]
        parts = prefetch(draws, self.train_loader.sampling.workers)
        for pieces in plan:
            signals.check()
            self.optimiser.zero_grad()
            for _, share, rng in pieces:
                masks = dropout_masks(rng.at("noise").numbers(), self.device)
                part = next(parts)
                loss = self.network.loss(part.subgraph, part.targets, masks, self.transition)
                (loss.sum() * share).backward()
            ranks.sum_gradients(self.network.parameters())
            self.optimiser.step()
        logits = self._val_logits()
        self.train_loader.sampler.release()
        return self._update_best(logits)

    def _plan(self, rng: Streams) -> list[list[tuple[Tensor, float, Streams]]]:
        """This rank's pieces of every batch: the positions of their nodes, their share of the batch, random numbers."""
        loader, plan = self.train_loader, []
        for number, batch in enumerate(loader.order(rng).split(loader.sampling.size)):
            pieces = [piece.sort().values for piece in batch.tensor_split(loader.sampling.pieces) if len(piece)]
            mine = [(piece, pieces[piece]) for piece in ranks.shard(len(pieces))]
            batch_rng = rng.at("batch", number, "piece")
            plan.append([(index, len(index) / len(batch), batch_rng.at(piece)) for piece, index in mine])
        return plan

    def _val_logits(self) -> Tensor:
        """The logits of the validation nodes [1, n, C]; each rank computes its batches, which are always the same."""
        loader, rng = self.val_loader, Streams((0,)).at("look")
        batches = torch.arange(len(loader.nodes)).split(loader.sampling.size)
        logits = torch.zeros(1, len(loader.nodes), self.classes, device=self.device)
        my_batches = ranks.shard(len(batches))
        draws = [partial(loader.part, batches[number], rng.at("batch", number)) for number in my_batches]
        with torch.no_grad():
            for number, part in zip(my_batches, prefetch(draws, loader.sampling.workers), strict=True):
                logits[:, batches[number].to(self.device)] = self.network(part.subgraph)
        return ranks.all_reduce(logits)
