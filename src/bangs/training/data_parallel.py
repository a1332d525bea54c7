"""DistributedSession: the epochs of one run's fit in batches whose pieces several processes share."""

from collections.abc import Iterator, Sequence
from functools import partial

import torch
from torch import Tensor

from bangs.core.rng import Streams
from bangs.distributed import ranks
from bangs.nn.dropout import source
from bangs.nn.ensemble import Network
from bangs.training.epochs import Settings, TargetNodes
from bangs.training.minibatch import MinibatchSession, NodeLoader, ahead
from bangs.utils import signals


class DistributedSession(MinibatchSession):
    """A step's nodes fall into `Sampling.pieces`, each with draws of its own; ranks share the pieces.

    The loss of a batch is the mean over its nodes, so a piece's mean weighs by its share of them, and the gradients of
    all ranks are added up before Adam steps. What is learned depends on the number of pieces, and on that of
    ranks by rounding only. Validation nodes are shared in the same way.
    """

    def __init__(
        self, network: Network, train_nodes: NodeLoader, val_nodes: NodeLoader, settings: Settings, classes: int
    ):
        super().__init__(network, train_nodes, val_nodes, settings)
        self.classes = classes

    def epoch(self) -> Tensor:
        """One step for every batch and one look at the validation nodes; whether the run improved: bool [1]."""
        rng = Streams(tuple(self.numbers)).at("epoch", self.epochs)
        batches = self._batches(rng)
        parts = self._parts(batches, rng)
        for number, batch in enumerate(batches):
            signals.check()
            self.optimiser.zero_grad()
            for piece, places in _own_pieces(batch):
                masks = source(rng.at("batch", number, "piece", piece, "noise").numbers(), self.device)
                part = next(parts)
                loss = self.network.loss(part.subgraph, part.targets, masks, self.transition)
                (loss.sum() * (len(places) / sum(map(len, batch)))).backward()
            ranks.sum_gradients(self.network.parameters())
            self.optimiser.step()
        logits = self._look()
        self.pages.sampler.release()
        return self._judge(logits)

    def _batches(self, rng: Streams) -> list[Sequence[Tensor]]:
        """The places of every batch, in pieces."""
        order = torch.randperm(len(self.pages.nodes), generator=rng.at("order").generators()[0])
        pieces = self.pages.sampling.pieces
        return [
            [piece.sort().values for piece in batch.tensor_split(pieces) if len(piece)]
            for batch in order.split(self.pages.sampling.size)
        ]

    def _parts(self, batches: list[Sequence[Tensor]], rng: Streams) -> Iterator[TargetNodes]:
        """This rank's pieces, drawn ahead."""
        draws = [
            partial(self.pages.part, places, rng.at("batch", number, "piece", piece))
            for number, batch in enumerate(batches)
            for piece, places in _own_pieces(batch)
        ]
        return ahead(draws, self.pages.sampling.workers)

    def _look(self) -> Tensor:
        """The logits of the validation nodes [1, n, C], each rank reading its batches, which are always the same."""
        pages, rng = self.exam, Streams((0,)).at("look")
        batches = torch.arange(len(pages.nodes)).split(pages.sampling.size)
        logits = torch.zeros(1, len(pages.nodes), self.classes, device=self.device)
        mine = ranks.shard(len(batches))
        draws = [partial(pages.part, batches[number], rng.at("batch", number)) for number in mine]
        with torch.no_grad():
            for number, part in zip(mine, ahead(draws, pages.sampling.workers), strict=True):
                logits[:, batches[number].to(self.device)] = self.network(part.subgraph)
        return ranks.all_reduce(logits)


def _own_pieces(batch: Sequence[Tensor]) -> list[tuple[int, Tensor]]:
    return [(piece, batch[piece]) for piece in ranks.shard(len(batch))]
