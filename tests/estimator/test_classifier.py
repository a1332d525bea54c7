"""SelfTrainingClassifier: what a person who knows scikit-learn may expect."""

import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from torch_geometric.data import Data, HeteroData

from bangs.calibration.calibrators import Temperature
from bangs.core.types import Prediction, Ranking, Round, Task
from bangs.errors import BangsError, InvalidInput, UnknownName
from bangs.estimator.classifier import SelfTrainingClassifier
from bangs.estimator.label_inputs import labelled
from bangs.nn.models import APPNP, GCN
from bangs.selection.scores import Confidence
from bangs.training.trainer import Trainer
from tests.conftest import few_labels, two_rings

# one model that adopts nodes, a quarter of the labels held back
HARD: dict[str, Any] = {"method": "hard", "validation": 0.25}
QUICK: dict[str, Any] = {**HARD, "rounds": 2, "epochs": 30, "patience": 30}


def half_known() -> tuple[Data, torch.Tensor]:
    """Two rings where twelve nodes have a label, and the truth of all."""
    return few_labels(), two_rings(40).y


def fit(X: Any, edge_index: Any = None, y: Any = None) -> SelfTrainingClassifier:
    return SelfTrainingClassifier(**QUICK).fit(X, y, edge_index=edge_index)


@pytest.fixture(scope="module")
def fitted() -> SelfTrainingClassifier:
    return SelfTrainingClassifier(**QUICK).fit(half_known()[0])


def test_a_fit_has_the_attributes_of_scikit_learns_self_training(fitted: SelfTrainingClassifier) -> None:
    data, truth = half_known()
    assert fitted.classes_.tolist() == [0, 1]
    assert fitted.predict().shape == (40,)
    assert fitted.score(data.clone().update({"y": truth})) > 0.8
    assert fitted.n_iter_ == 2
    assert fitted.termination_condition_ == "max_iter"
    assert [row["round"] for row in fitted.history_] == [0, 1, 2]
    given = fitted.labeled_iter_ == 0
    assert (fitted.labels_[given] == truth.numpy()[given]).all()
    assert ((fitted.labels_ == -1) == (fitted.labeled_iter_ == -1)).all()
    assert fitted.validation_score_ == fitted.history_[fitted.best_iter_]["validation"][0]


def test_probabilities_sum_to_one_and_agree_with_the_prediction(fitted: SelfTrainingClassifier) -> None:
    probs = fitted.predict_proba()
    assert probs.sum(1) == pytest.approx(np.ones(40))
    assert (fitted.classes_[probs.argmax(1)] == fitted.predict()).all()


def test_the_fitted_graph_handed_in_again_gives_the_same_probabilities(fitted: SelfTrainingClassifier) -> None:
    assert fitted.predict_proba(half_known()[0]) == pytest.approx(fitted.predict_proba(), abs=1e-6)


def test_probabilities_are_those_of_the_calibrator() -> None:
    data, _ = half_known()
    raw = SelfTrainingClassifier(**QUICK, calibrator="none").fit(data)
    warm = SelfTrainingClassifier(**QUICK, selector="random", calibrator=UniformCalibrator()).fit(data)
    assert raw.predict_proba().max() > 0.6
    assert warm.predict_proba() == pytest.approx(np.full((40, 2), 0.5))
    assert warm.predict_proba(data) == pytest.approx(np.full((40, 2), 0.5))


@dataclass(frozen=True)
class UniformCalibrator:
    """A calibrator that gives all classes the same probability."""

    def __call__(self, prediction: Prediction, task: Task) -> Prediction:
        return Prediction(torch.zeros_like(prediction.logits))


@dataclass(frozen=True)
class PrefersOneNode:
    """A score that is highest for one node."""

    node: int

    def __call__(self, round: Round) -> Ranking:
        score = torch.zeros_like(round.prediction.confidence)
        score[:, self.node] = 1.0
        return Ranking(score.masked_fill(~round.pool, float("-inf")))


def test_a_score_of_the_user_decides_who_is_adopted() -> None:
    data, _ = half_known()
    model = SelfTrainingClassifier(**HARD, selector=PrefersOneNode(31), k=1, rounds=1, epochs=5).fit(data)
    assert model.history_[1]["adopted"][0]["node"] == [31]


@pytest.mark.parametrize("model", ["appnp", APPNP(hidden=8), Trainer(GCN(hidden=8), epochs=20), "sgc"])
def test_models_come_as_names_or_parts(model: Any) -> None:
    classifier = SelfTrainingClassifier(model, "confidence", Temperature(), **HARD, rounds=1, epochs=10)
    assert classifier.fit(half_known()[0]).predict().shape == (40,)


class TestInputs:
    """The same graph in any form gives the same answer."""

    data, truth = half_known()
    x, edges, y = data.x.numpy(), data.edge_index.numpy(), data.y.numpy()

    @pytest.fixture(scope="class")
    @classmethod
    def probs(cls) -> Any:
        return SelfTrainingClassifier(**QUICK).fit(cls.x, cls.y, edge_index=cls.edges).predict_proba()

    @pytest.mark.parametrize("form", ["torch", "lists", "scipy", "pandas", "data", "float labels", "sparse tensor"])
    def test_forms(self, form: str, probs: Any) -> None:
        x, edges, y = self.x, self.edges, self.y
        one = np.ones(edges.shape[1])
        named = pd.DataFrame(x, columns=["a", "b"], index=[f"n{i}" for i in range(40)])
        arguments = {
            "torch": (self.data.x, self.data.edge_index, self.data.y),
            "lists": (x.tolist(), edges.tolist(), y.tolist()),
            "scipy": (sp.csr_matrix(x), sp.coo_array((one, (edges[0], edges[1])), shape=(40, 40)), y),
            "pandas": (named, pd.DataFrame({"from": named.index[edges[0]], "to": named.index[edges[1]]}), pd.Series(y)),
            "data": (self.data,),
            "float labels": (x, edges, np.where(y < 0, np.nan, y)),
            "sparse tensor": (self.data.x.to_sparse_coo(), self.data.edge_index, self.data.y),
        }[form]
        model = fit(*arguments)
        if form == "pandas":  # its numbers are scaled, as those of a table
            probs = fit((x - x.mean(0)) / x.std(0), edges, y).predict_proba()
        assert model.predict_proba() == pytest.approx(probs, abs=1e-4)
        assert model.classes_.tolist() == [0, 1]

    def test_a_frame_with_words_for_labels_gives_words_back(self) -> None:
        frame = pd.DataFrame(self.x, columns=["a", "b"])
        words = pd.Series(np.where(self.y < 0, None, np.array(["cat", "dog"])[self.y]), dtype=object)
        model = SelfTrainingClassifier(**QUICK).fit(frame, words, edge_index=self.edges)
        assert model.classes_.tolist() == ["cat", "dog"]
        assert set(model.predict()) <= {"cat", "dog"}
        assert model.feature_names_in_.tolist() == ["a", "b"]
        assert (model.labels_[model.labeled_iter_ == -1] == "").all()
        assert model.score(frame, np.array(["cat", "dog"])[self.truth.numpy()], edge_index=self.edges) > 0.8

    def test_categories_and_missing_words_are_unknown(self) -> None:
        words = pd.Series(pd.Categorical(np.where(self.y < 0, None, np.array(["x", "y"])[self.y])))
        assert SelfTrainingClassifier(**QUICK).fit(self.x, words, edge_index=self.edges).classes_.tolist() == ["x", "y"]

    def test_minus_one_among_words_is_unknown_too(self) -> None:
        mixed = [["x", "y"][label] if label >= 0 else -1 for label in self.y]
        for y in (
            np.array(mixed),
            np.array(mixed, dtype=object),
            np.array([str(word) for word in mixed], dtype=object),
        ):
            target, classes, _ = labelled(self.x, y, 40)
            assert classes.tolist() == ["x", "y"]
            assert target.tolist() == self.y.tolist()

    def test_a_series_is_read_by_its_index_where_x_is_a_frame(self) -> None:
        names = [f"n{i}" for i in range(40)]
        frame, words = pd.DataFrame(self.x, index=names), pd.Series(self.y, index=names)
        for y in (words.sample(frac=1, random_state=0), words[words >= 0], pd.Series(self.y), self.y):
            target, classes, _ = labelled(frame, y, 40)
            assert target.tolist() == self.y.tolist()
            assert classes.tolist() == [0, 1]
        with pytest.raises(InvalidInput, match="y has a label for 'zz', which is not the name of a node"):
            labelled(frame, words.rename({"n3": "zz"}), 40)

    def test_a_frame_of_one_column_is_read_by_its_index_too(self) -> None:
        names = [f"n{i}" for i in range(40)]
        frame, column = pd.DataFrame(self.x, index=names), pd.DataFrame({"label": self.y}, index=names)
        target, _, _ = labelled(frame, column.sample(frac=1, random_state=0), 40)
        assert target.tolist() == self.y.tolist()

    def test_names_that_stand_for_several_rows_put_no_labels_in_order(self) -> None:
        twice = pd.DataFrame(np.eye(3), index=["p", "p", "q"])
        other = pd.Series([0, 1, 1], index=["q", "p", "p"])
        with pytest.raises(InvalidInput, match=r"index of X must name every row once, or be the same.*got 'p' twice"):
            labelled(twice, other, 3)
        with pytest.raises(InvalidInput, match=r"index of y must name every row once.*give y.to_numpy\(\)"):
            labelled(twice.set_axis(["p", "r", "q"]), other, 3)
        for y in (other.set_axis(twice.index), other.to_numpy()):
            assert labelled(twice, y, 3)[0].tolist() == [0, 1, 1]

    def test_weights_in_the_adjacency_count(self) -> None:
        heavy = sp.coo_array((np.where(self.edges[0] < 20, 9.0, 1.0), (self.edges[0], self.edges[1])), shape=(40, 40))
        weights = np.where(self.edges[0] < 20, 9.0, 1.0)
        one = SelfTrainingClassifier(**QUICK).fit(self.x, self.y, edge_index=heavy)
        two = SelfTrainingClassifier(**QUICK).fit(self.x, self.y, edge_index=self.edges, edge_weight=weights)
        assert one.predict_proba() == pytest.approx(two.predict_proba(), abs=1e-4)

    def test_masks_say_which_labels_may_be_read(self) -> None:
        node = torch.arange(40)
        data = self.data.clone()
        data.y = torch.where(node < 20, self.truth, 7 + node)  # under no mask, so never looked at
        data.train_mask, data.val_mask, data.test_mask = node < 10, (node >= 10) & (node < 20), node >= 20
        model = SelfTrainingClassifier(**QUICK).fit(data)
        assert model.classes_.tolist() == [0, 1]
        assert (model.snapshot_.held >= 0).nonzero().flatten().tolist() == list(range(10, 20))
        data.y = self.truth
        right = (model.predict() == self.truth.numpy())[20:].mean()
        assert model.score(data) == pytest.approx(right)  # the test nodes alone


class TestComplaints:
    data, _ = half_known()
    x, edges, y = data.x.numpy(), data.edge_index.numpy(), data.y.numpy()

    @pytest.mark.parametrize(
        ("arguments", "sentence"),
        [
            ((x,), "edge_index is missing"),
            ((x, edges), "requires y"),
            ((x, edges, y[:-1]), "one label per node"),
            ((x, edges, np.full(40, -1)), "no node has a label"),
            ((x, edges, np.where(y >= 0, 0, -1)), "one class"),
            ((x, edges, np.where(np.arange(40) == 0, 5, y)), "class 5 has one labelled node"),
            ((x, edges, np.array(["a", "b", *["c"] * 38])), "class 'a' has one labelled node"),
            ((np.eye(300), np.zeros((2, 0), int), np.arange(300) / 7), "Unknown label type: continuous"),
            ((x, edges, np.array([1, "a"] * 20, dtype=object)), "mixture"),
            ((x[:, 0], edges, y), "Expected 2D array"),
            ((x * np.nan, edges, y), "X holds NaN, infinity or a number above 3e38 in row 0"),
            ((x, edges + 30, y), "numbered 0 … 39"),
            ((x, edges.T, y), "write edge_index.T"),
            ((x, np.eye(40), y), "an adjacency is given sparse"),
            ((x, None, edges), "edge_index is missing: give edge_index=edges, the row numbers"),
            ((pd.DataFrame(x), pd.DataFrame({"s": [0], "t": [77]}), y), "names node 77 in column 't'.* index of X"),
            ((x, pd.DataFrame({"s": [0], "t": [77]}), y), "row numbers 0 … 39"),
            (
                (pd.DataFrame(x), pd.DataFrame({"s": [0], "t": [1], "w": ["x"]}), y),
                "weight of an edge must be a number",
            ),
            ((x, edges.astype(str), y), "must hold row numbers, got <U"),
            ((x, edges.astype(float), y), r"whole numbers of shape \[2, E\], got torch.float64"),
            ((x, nx.path_graph(41), y), "the graph has 41 nodes, X has 40 rows"),
            ((pd.DataFrame(x), nx.path_graph(41), y), "names node 39 in column|names node 40 in column"),
            (("examples/own-graph",), "`bangs fit`"),
            ((HeteroData(),), "to_homogeneous"),
            ((data, edges), "a Data carries its own edges"),
            ((x.astype(complex), edges, y), "Complex"),
        ],
    )
    def test_input(self, arguments: tuple[Any, ...], sentence: str) -> None:
        with pytest.raises((BangsError, ValueError), match=sentence):
            fit(*arguments)

    @pytest.mark.parametrize(
        ("params", "error", "sentence"),
        [
            ({"model": "gcnn"}, UnknownName, "did you mean 'gcn'"),
            ({"model": "GCN"}, UnknownName, "did you mean 'gcn'"),
            ({"selector": "banzaf"}, UnknownName, "did you mean 'banzhaf'"),
            ({"calibrator": "etz"}, UnknownName, "did you mean 'ets'"),
            ({"teacher": "worst"}, UnknownName, "teacher 'worst' is unknown"),
            ({"preset": "mine"}, UnknownName, "preset"),
            ({"device": "tpu"}, UnknownName, "device"),
            ({"k": 0}, InvalidInput, "k must be a whole number from 1"),
            ({"k": 2.5}, InvalidInput, "k must be a whole number"),
            ({"k": 30, "candidates": 3}, InvalidInput, "candidates"),
            ({"rounds": -1}, InvalidInput, "rounds must be a whole number from 0"),
            ({"epochs": 0}, InvalidInput, "epochs must be at least 1"),
            ({"validation": 0}, InvalidInput, "validation share"),
            ({"model": 5}, InvalidInput, "model must be a name"),
            ({"selector": 5}, InvalidInput, "selector must be a name"),
        ],
    )
    def test_parameters_are_stored_as_given_and_checked_in_fit(
        self, params: dict[str, Any], error: type[Exception], sentence: str
    ) -> None:
        model = SelfTrainingClassifier(**{**HARD, **params})
        assert params.items() <= model.get_params().items()
        with pytest.raises(error, match=sentence):
            model.fit(self.data)

    @pytest.mark.parametrize(
        ("weight", "sentence"),
        [
            (np.ones(3), r"one number per edge \[\d+\], got shape \[3\]"),
            (np.full(edges.shape[1], -2.0), "non-negative numbers, got -2.0 for edge 0"),
            (["heavy"] * edges.shape[1], "weight of an edge must be a number"),
        ],
    )
    def test_weights(self, weight: Any, sentence: str) -> None:
        with pytest.raises(InvalidInput, match=sentence):
            SelfTrainingClassifier(**QUICK).fit(self.x, self.y, edge_index=self.edges, edge_weight=weight)

    @pytest.mark.parametrize(
        ("part", "sentence"),
        [
            ({"selector": lambda round: round.prediction.confidence}, r"must return a Ranking, got Tensor"),
            ({"selector": lambda round: Ranking(round.prediction.confidence[:, 1:])}, r"\[1, 40\], got \[1, 39\]"),
            ({"selector": lambda round: Ranking(round.prediction.confidence / 0 * 0)}, "got NaN"),
            ({"calibrator": lambda prediction, task: prediction.logits}, "must return a Prediction, got Tensor"),
            ({"calibrator": lambda p, task: Prediction(p.logits[:, 1:])}, r"\[1, 40, 2\], got \[1, 39, 2\]"),
        ],
    )
    def test_what_a_part_of_the_user_returns_is_checked(self, part: dict[str, Any], sentence: str) -> None:
        with pytest.raises(InvalidInput, match=sentence):
            SelfTrainingClassifier(**QUICK, **part).fit(self.data)

    def test_columns_in_another_order(self) -> None:
        frame = pd.DataFrame(self.x, columns=["a", "b"])
        model = SelfTrainingClassifier(**HARD, rounds=0, epochs=5).fit(frame, self.y, edge_index=self.edges)
        with pytest.raises(InvalidInput, match=r"it had 'a', 'b', X has 'b', 'a'; write X\[list"):
            model.predict(frame[["b", "a"]], self.edges)
        assert (model.predict(frame.to_numpy(), self.edges) == model.predict(frame, self.edges)).all()

    def test_a_node_is_found_by_its_name_or_if_names_are_words_by_its_row(self) -> None:
        def fit(names: Any) -> SelfTrainingClassifier:
            frame = pd.DataFrame(self.x, index=names)
            return SelfTrainingClassifier(**HARD, rounds=0, epochs=5).fit(frame, self.y, edge_index=self.edges)

        from_one, words = fit(range(1, 41)), fit([f"n{i}" for i in range(40)])
        assert [from_one.explain(node).node for node in (1, "1", 40)] == ["1", "1", "40"]
        assert [words.explain(node).node for node in ("n7", 7, np.int64(7))] == ["n7"] * 3
        for model, node, sentence in (
            (from_one, 0, "no node is called '0'"),
            (words, 40, "numbered 0 … 39"),
            (words, 1.0, "by its name or its number, got 1.0"),
            (words, None, "by its name or its number"),
            (words, True, "by its name or its number"),
        ):
            with pytest.raises(InvalidInput, match=sentence):
                model.explain(node)

    def test_another_width(self, fitted: SelfTrainingClassifier) -> None:
        with pytest.raises(InvalidInput, match="X has 1 features, but SelfTrainingClassifier is expecting 2"):
            fitted.predict(self.x[:, :1], self.edges)

    def test_before_fit(self) -> None:
        with pytest.raises(NotFittedError):
            SelfTrainingClassifier().predict()
        assert not hasattr(SelfTrainingClassifier(), "labels_")


class TestRounds:
    def test_by_default_half_of_the_pool_is_adopted(self) -> None:
        data, _ = half_known()
        model = SelfTrainingClassifier(**HARD, rounds=4, epochs=3).fit(data)
        assert [len(row["adopted"][0]["node"]) for row in model.history_] == [0, 4, 4, 4, 4]  # 28 free nodes: ⌈28 / 8⌉

    def test_it_ends_when_every_node_has_a_label(self) -> None:
        model = SelfTrainingClassifier(**HARD, k=20, rounds=5, epochs=3).fit(half_known()[0])
        assert model.termination_condition_ == "all_labeled"
        assert model.n_iter_ == 2

    def test_it_ends_when_no_node_is_good_enough(self) -> None:
        model = SelfTrainingClassifier(**HARD, selector=Nobody(), rounds=5, epochs=3).fit(half_known()[0])
        assert model.termination_condition_ == "no_change"
        assert model.n_iter_ == 0

    def test_no_rounds_is_a_plain_network(self) -> None:
        model = SelfTrainingClassifier(**HARD, rounds=0, epochs=3).fit(half_known()[0])
        assert (model.labeled_iter_ <= 0).all()

    def test_observers_see_every_round(self) -> None:
        rounds = []
        SelfTrainingClassifier(**QUICK).fit(half_known()[0], observers=[lambda state: rounds.append(state.index)])
        assert rounds == [0, 1, 2]


@dataclass(frozen=True)
class Nobody:
    def __call__(self, round: Round) -> Ranking:
        return Ranking(torch.full_like(round.prediction.confidence, float("-inf")))


class TestRepetition:
    def test_a_search_over_k_gives_the_same_for_the_same_random_state(self) -> None:
        data, truth = half_known()
        base = SelfTrainingClassifier(**QUICK, random_state=3)
        data.test_mask = data.y < 0

        def search() -> list[Any]:
            out = []
            for k in (1, 5, 9):
                model = clone(base).set_params(k=k).fit(data)
                out.append((k, model.score(data.clone().update({"y": truth})), model.predict_proba()))
            return out

        for (k, score, probs), (same_k, same_score, same_probs) in zip(search(), search(), strict=True):
            assert (k, score) == (same_k, same_score)
            assert (probs == same_probs).all()

    def test_another_random_state_gives_another_model(self) -> None:
        one, two = (SelfTrainingClassifier(**QUICK, random_state=s).fit(half_known()[0]) for s in (0, 1))
        assert (one.predict_proba() != two.predict_proba()).any()

    def test_random_state_may_be_a_generator_or_nothing(self) -> None:
        data, _ = half_known()
        one, two = (SelfTrainingClassifier(**QUICK, random_state=np.random.RandomState(5)).fit(data) for _ in range(2))
        assert (one.predict_proba() == two.predict_proba()).all()
        SelfTrainingClassifier(**QUICK, random_state=None).fit(data)

    def test_parts_survive_clone(self) -> None:
        model = SelfTrainingClassifier(GCN(hidden=4), Confidence(), Temperature(), **HARD, k=3)
        cloned = clone(model)
        assert cloned.get_params() == model.get_params()
        assert cloned.model == GCN(hidden=4)


class TestSaving:
    def test_a_saved_model_predicts_the_same(self, fitted: SelfTrainingClassifier, tmp_path: Path) -> None:
        fitted.save(tmp_path)
        loaded = SelfTrainingClassifier.load(tmp_path)
        assert loaded.get_params() == fitted.get_params()
        assert (loaded.predict_proba() == fitted.predict_proba()).all()
        data, _ = half_known()
        assert (loaded.predict_proba(data) == fitted.predict_proba(data)).all()
        for name in ("labels_", "labeled_iter_", "classes_"):
            assert (getattr(loaded, name) == getattr(fitted, name)).all()
        assert loaded.history_ == fitted.history_
        assert loaded.termination_condition_ == fitted.termination_condition_

    def test_words_names_and_parts_come_back(self, tmp_path: Path) -> None:
        data, _ = half_known()
        words = np.where(data.y < 0, "", np.array(["no", "yes"])[data.y])
        frame = pd.DataFrame(data.x.numpy(), columns=["a", "b"])
        model = SelfTrainingClassifier(Trainer(GCN(hidden=4), epochs=9), calibrator="vector", **HARD, rounds=1)
        model.fit(frame, words, edge_index=data.edge_index).save(tmp_path / "mine.safetensors")
        loaded = SelfTrainingClassifier.load(tmp_path / "mine.safetensors")
        assert loaded.model == model.model
        assert loaded.feature_names_in_.tolist() == ["a", "b"]
        assert (loaded.predict() == model.predict()).all()
        assert loaded.predict_proba(frame, data.edge_index) == pytest.approx(
            model.predict_proba(frame, data.edge_index)
        )

    def test_a_part_of_the_user_must_be_given_when_loading(self, tmp_path: Path) -> None:
        data, _ = half_known()
        model = SelfTrainingClassifier(**HARD, selector=PrefersOneNode(3), rounds=1, epochs=3).fit(data)
        model.save(tmp_path)
        with pytest.raises(
            InvalidInput, match=r"selector of your own, PrefersOneNode\(node=3\).*load\(path, selector=…\)"
        ):
            SelfTrainingClassifier.load(tmp_path)
        loaded = SelfTrainingClassifier.load(tmp_path, selector=PrefersOneNode(3))
        assert (loaded.predict_proba() == model.predict_proba()).all()

    def test_a_changed_file_is_refused(self, fitted: SelfTrainingClassifier, tmp_path: Path) -> None:
        fitted.save(tmp_path)
        file = tmp_path / "model.safetensors"
        body = bytearray(file.read_bytes())
        body[-5] ^= 1
        file.write_bytes(body)
        with pytest.raises(InvalidInput, match="checksum does not match"):
            SelfTrainingClassifier.load(tmp_path)

    def test_a_missing_file_gives_a_clear_error(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidInput, match="does not exist"):
            SelfTrainingClassifier.load(tmp_path)

    @pytest.mark.parametrize(
        ("damage", "sentence"),
        [
            (lambda t, f: t.pop("given"), "holds no 'given'"),
            (lambda t, f: t.update(given=t["given"][:-1]), "must have shape"),
            (lambda t, f: t.update(edge_index=t["edge_index"] + 35), "edge_index"),
            (lambda t, f: t.update({"weights.w0": torch.zeros(1)}), "its members are not those its weights belong to"),
            (lambda t, f: f["members"][0]["architecture"]["settings"].update(hidden=10**12), "claims hidden = "),
            (lambda t, f: f["members"][0]["architecture"].update(part="os.system"), "does not know"),
            (lambda t, f: f.update(features=3), "must be torch.float32 of shape"),
            (lambda t, f: f.pop("classes"), "not a model as bangs writes it"),
            (lambda t, f: f["snapshot"].update(chosen=99), "chosen round"),
            (lambda t, f: f["params"].update(sudo=1), "unexpected keyword"),
        ],
    )
    def test_a_well_formed_file_with_odd_content_is_refused(
        self, fitted: SelfTrainingClassifier, tmp_path: Path, damage: Any, sentence: str
    ) -> None:
        from bangs.estimator import model_file

        fitted.save(tmp_path)
        tensors, facts = model_file.load(tmp_path)
        damage(tensors, facts)
        model_file.save(tmp_path, tensors, facts)
        with pytest.raises(InvalidInput, match=sentence):
            SelfTrainingClassifier.load(tmp_path)

    def test_pickle_works_too(self, fitted: SelfTrainingClassifier) -> None:
        loaded = pickle.loads(pickle.dumps(fitted))
        assert (loaded.predict_proba() == fitted.predict_proba()).all()
