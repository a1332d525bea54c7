"""The training loss: weighted cross-entropy to hard labels, or to soft labels, which are distributions."""

from dataclasses import dataclass
from functools import cached_property

from torch import Tensor, nn


@dataclass(frozen=True, eq=False)
class Targets:
    """Training targets of some nodes: a class each, or a distribution over the classes."""

    target: Tensor  # long [R, n], -1 = none
    weight: Tensor  # float [R, n]
    belief: Tensor | None = None  # float [R, n, C], zeros where target is -1; None = hard labels

    @cached_property
    def counts(self) -> Tensor:
        """The number of nodes with a target: long [R]."""
        return (self.target >= 0).sum(1)

    @property
    def nodes(self) -> Tensor:
        """The nodes that have a target in any run: long [n]."""
        return (self.target >= 0).any(0).nonzero().squeeze(1)

    def at(self, nodes: Tensor) -> "Targets":
        """The targets of some of the nodes, long [n]."""
        belief = None if self.belief is None else self.belief[:, nodes].contiguous()
        return Targets(self.target[:, nodes].contiguous(), self.weight[:, nodes].contiguous(), belief)

    def copy_(self, other: "Targets") -> None:
        """Copy the other targets in place, where a captured CUDA graph reads them."""
        self.target.copy_(other.target)
        self.weight.copy_(other.weight)
        if self.belief is not None and other.belief is not None:
            self.belief.copy_(other.belief)

    def cross_entropy(self, logits: Tensor, transition: Tensor | None = None) -> Tensor:
        """Mean of weight · H(q, p) per run [R], over the nodes with a target, whatever their weight.

        H(q, p) = −Σ_c q_c log p_c with the belief q, which is −log p(target) for hard labels. With a transition
        T [R, C, C], p = softmax(logits)·T: the labels a noisy annotator would give (DR-GST's correction).
        """
        log_p = log_softmax(logits) if transition is None else (logits.softmax(-1) @ transition).clamp_min(1e-12).log()
        loss = node_nll(log_p, self.target) if self.belief is None else -(self.belief * log_p).sum(-1)
        # counted here, not cached, since a captured CUDA graph reads targets that change in place
        return (loss * self.weight).sum(1) / (self.target >= 0).sum(1)


def log_softmax(logits: Tensor) -> Tensor:
    """log p of every class [R, n, C]; on a CPU the class axis comes first, which is faster for few classes."""
    if logits.is_cuda:
        return logits.log_softmax(-1)
    return logits.transpose(1, 2).log_softmax(1).transpose(1, 2)


def node_nll(log_probs: Tensor, target: Tensor) -> Tensor:
    """−log p(target) of every node, zero where there is no target: [R, n]."""
    if not log_probs.is_cuda:
        return nn.functional.nll_loss(log_probs.transpose(1, 2), target, ignore_index=-1, reduction="none")
    flat = nn.functional.nll_loss(log_probs.flatten(0, 1), target.flatten(), ignore_index=-1, reduction="none")
    return flat.view(target.shape)
