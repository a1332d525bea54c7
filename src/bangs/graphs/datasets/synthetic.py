"""Generate a random citation network from a seed."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from bangs.core.rng import Streams
from bangs.errors import InvalidInput
from bangs.graphs.edges import distinct
from bangs.graphs.sparse import to_torch
from bangs.utils.setting_checks import check_number

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

TOPICS_PER_CLASS = 4
COHESION = 0.8  # share of the edges inside a class that stay inside a topic
LEXICON_DIVISOR = 16  # the vocabulary of a topic is one in this many words
MEAN_WORDS = 18  # of a node; Cora has 18.2
DEGREE_EXPONENT = 2.8  # of the degree distribution
LEANING_CONCENTRATION = 0.8  # if smaller, more nodes are either firmly in their class or mostly in another


def citation(
    nodes: int = 2708,
    classes: int = 7,
    features: int = 1433,
    seed: int = 0,
    *,
    mean_degree: float = 3.9,
    homophily: float = 0.81,
    signal: float = 0.35,
    balance: float = 0.25,
    isolated: float = 0.005,
) -> Data:
    """A citation network: x sparse [N, F] with rows summing to one, edge_index [2, E] in both directions, y [N].

    Every node has a class, a topic of this class, and a second topic of another class with a strength m, which is Beta
    distributed with mean 1 − homophily. The edges follow a degree-corrected block model (Karrer and Newman, 2011): the
    source is drawn by its heavy-tailed attractiveness, and the target by attractiveness from the class of the source
    with probability 1 − m, else from its second topic. A word of a node comes with probability `signal` from one of
    its topics (the second with probability m), else from a vocabulary common to all. Nodes with a large m have
    misleading words and neighbours, so no model gets all of them right.

    Args:
        mean_degree: mean number of neighbours of a node.
        homophily: expected share of edges that join two nodes of one class.
        signal: share of words that come from a topic.
        balance: size of the smallest class over that of the largest.
        isolated: share of nodes without an edge.
    """
    if classes < 2 or nodes < classes or features < 1:
        raise InvalidInput(
            "citation needs at least two classes, a node for each and one feature, "
            f"got classes={classes}, nodes={nodes}, features={features}"
        )
    if not 0 <= mean_degree <= (nodes - 1) / 2:
        raise InvalidInput(f"mean_degree must lie between 0 and half of nodes − 1, got {mean_degree} for {nodes} nodes")
    for name, value in (("homophily", homophily), ("signal", signal), ("isolated", isolated)):
        check_number(name, value, within="[0, 1]")
    check_number("balance", balance, within="(0, 1]")
    random = np.random.default_rng(Streams((seed,)).at("citation").numbers()[0])
    people = _population(random, nodes, classes, homophily, balance)
    edges = _edges(random, people, mean_degree, isolated)
    data = Data(
        x=to_torch(_words(random, people, features, signal)),
        edge_index=torch.from_numpy(edges),
        y=torch.from_numpy(people.label),
        num_nodes=nodes,
    )
    data.num_classes = classes
    return data


@dataclass(frozen=True, eq=False)
class _Population:
    label: Ints  # [N]
    topic: Ints  # [N], in 0 … classes · TOPICS_PER_CLASS − 1; a topic belongs to class topic // TOPICS_PER_CLASS
    second: Ints  # [N], a topic of another class
    leaning: Floats  # [N], strength of the second topic


def _population(random: np.random.Generator, nodes: int, classes: int, homophily: float, balance: float) -> _Population:
    share = balance ** (np.arange(classes) / (classes - 1))
    # one node of every class first, so that a small graph misses none
    sizes = 1 + random.multinomial(nodes - classes, random.permutation(share / share.sum()))
    label = random.permutation(np.repeat(np.arange(classes), sizes))
    other_class = (label + random.integers(1, classes, nodes)) % classes
    mean = 1 - homophily
    leaning = (
        random.beta(LEANING_CONCENTRATION * mean, LEANING_CONCENTRATION * homophily, nodes)
        if 0 < mean < 1
        else np.full(nodes, mean)
    )
    return _Population(
        label=label,
        topic=label * TOPICS_PER_CLASS + random.integers(0, TOPICS_PER_CLASS, nodes),
        second=other_class * TOPICS_PER_CLASS + random.integers(0, TOPICS_PER_CLASS, nodes),
        leaning=leaning,
    )


def _edges(random: np.random.Generator, people: _Population, mean_degree: float, isolated: float) -> Ints:
    nodes = len(people.label)
    attraction = random.pareto(DEGREE_EXPONENT - 1, nodes) + 1
    # a hub with more attraction than this would mostly draw edges it already has
    attraction = np.minimum(attraction, attraction.mean() * np.sqrt(nodes))
    attraction[random.permutation(nodes)[: round(isolated * nodes)]] = 0
    sampler = _WeightedSampler(people.topic, attraction)
    target_count = round(nodes * mean_degree / 2)
    edges = np.empty(0, np.int64)
    for _ in range(20):
        remaining = target_count - len(edges)
        if remaining <= 0 or sampler.total == 0:
            break
        edges = distinct(np.concatenate([edges, _draw(random, people, sampler, remaining + remaining // 8 + 8)]))
        # a surplus is cut at random, not by node number
        edges = edges[np.sort(random.permutation(len(edges))[:target_count])]
    first, last = np.divmod(edges, nodes)
    return np.stack([np.concatenate([first, last]), np.concatenate([last, first])])


def _draw(random: np.random.Generator, people: _Population, sampler: "_WeightedSampler", count: int) -> Ints:
    """Candidates for edges as numbers lower · N + higher, without loops; long [<= count]."""
    source = sampler.draw(random, np.zeros(count), np.full(count, sampler.total))
    away = random.random(count) < people.leaning[source]
    close = random.random(count) < COHESION
    start = np.where(
        away, people.second[source], np.where(close, people.topic[source], people.label[source] * TOPICS_PER_CLASS)
    )
    stop = np.where(away | close, start + 1, start + TOPICS_PER_CLASS)
    low, high = sampler.bounds[start], sampler.bounds[stop]
    # an empty topic has no node to cite
    nonempty = high > low
    source, target = source[nonempty], sampler.draw(random, low[nonempty], high[nonempty])
    not_loop = source != target
    source, target = source[not_loop], target[not_loop]
    candidates: Ints = np.minimum(source, target) * len(people.label) + np.maximum(source, target)
    return candidates


class _WeightedSampler:
    """Draws nodes by weight from a range of topics: nodes lie side by side on a line, sorted by topic."""

    def __init__(self, topic: Ints, weight: Floats):
        self.order = np.argsort(topic, kind="stable")  # [N]
        self.ends: Floats = np.cumsum(weight[self.order])  # [N], where the interval of each node ends
        topics = (int(topic.max()) // TOPICS_PER_CLASS + 1) * TOPICS_PER_CLASS
        starts = np.searchsorted(topic[self.order], np.arange(topics + 1))
        self.bounds = np.concatenate([[0.0], self.ends])[starts]  # [topics + 1], where topics begin
        self.total = float(self.bounds[-1])

    def draw(self, random: np.random.Generator, low: Floats, high: Floats) -> Ints:
        """Nodes [count], each drawn by weight between its bounds."""
        position = low + random.random(len(low)) * (high - low)
        nodes: Ints = self.order[np.minimum(np.searchsorted(self.ends, position, side="right"), len(self.order) - 1)]
        return nodes


def _words(
    random: np.random.Generator, people: _Population, features: int, signal: float
) -> "sp.csr_array[np.float32]":
    nodes = len(people.label)
    size = max(1, features // LEXICON_DIVISOR)
    topics = int(max(people.topic.max(), people.second.max())) + 1
    lexicon = np.stack([random.permutation(features)[:size] for _ in range(topics)])
    common = random.permutation(features)
    counts = 1 + random.poisson(MEAN_WORDS - 1, nodes)
    speaker = np.repeat(np.arange(nodes, dtype=np.int64), counts)
    topic = np.where(
        random.random(len(speaker)) < people.leaning[speaker], people.second[speaker], people.topic[speaker]
    )
    # squared, so that the first words of a list occur most often
    rank = random.random(len(speaker)) ** 2
    from_topic = random.random(len(speaker)) < signal
    word = np.where(
        from_topic, lexicon[topic, (rank * size).astype(np.int64)], common[(rank * features).astype(np.int64)]
    )
    pointers = np.concatenate([[0], np.cumsum(counts)])
    bags = sp.csr_array((np.ones(len(word), np.float32), word, pointers), shape=(nodes, features))
    bags.sum_duplicates()
    per_node = np.diff(bags.indptr)
    return sp.csr_array(
        ((1 / per_node).astype(np.float32).repeat(per_node), bags.indices, bags.indptr), shape=bags.shape
    )
