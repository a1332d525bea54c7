"""SelfTrainingClassifier among the functions of scikit-learn: each works, or says in one sentence what to do."""

import re
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
import torch
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.neighbors import kneighbors_graph
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator
from torch_geometric.data import Data

from bangs import LabelMask, NodeRows, SelfTrainingClassifier, cross_validate
from bangs.errors import InvalidInput
from tests import ROOT
from tests.conftest import two_rings

library = pytest.importorskip  # of those that not every machine has

HARD: dict[str, Any] = {"method": "hard", "validation": 0.25}
QUICK: dict[str, Any] = {**HARD, "rounds": 1, "epochs": 20, "patience": 20}

data = two_rings(60, 2)
X, EDGES, TRUTH = data.x.numpy(), data.edge_index.numpy(), data.y.numpy()
Y = np.where(np.arange(60) < 30, TRUTH, -1)
KNOWN = Y >= 0
SCALED = (X - X.mean(0)) / X.std(0)  # as a frame is
NODES = NodeRows(X, EDGES)


def model(**settings: Any) -> SelfTrainingClassifier:
    return SelfTrainingClassifier(**{**QUICK, **settings})


def routing() -> Any:
    return sklearn.config_context(enable_metadata_routing=True)


class TestSplits:
    def test_every_label_is_hidden_once_and_every_part_has_its_share_of_a_class(self) -> None:
        parts = list(LabelMask(3).split(X, Y))
        assert sorted(np.concatenate([hidden for _, hidden in parts]).tolist()) == list(range(30))
        for seen, hidden in parts:
            assert sorted([*seen, *hidden]) == list(range(30))
            assert np.bincount(Y[hidden]).tolist() == [5, 5]

    def test_a_class_with_one_label_is_never_hidden(self) -> None:
        y = np.where(np.arange(60) == 7, 2, Y)
        assert all(7 in seen for seen, _ in LabelMask(3).split(X, y))

    def test_a_class_of_many_labels_is_hidden_though_most_classes_have_one(self) -> None:
        y = [0, 0, 0, 0, 1, 2, *[-1] * 54]
        parts = list(LabelMask(2).split(X, y))
        assert sorted(np.concatenate([hidden for _, hidden in parts]).tolist()) == [0, 1, 2, 3]
        assert all({4, 5} < set(seen.tolist()) for seen, _ in parts)

    def test_words_bools_and_gaps_are_labels_too(self) -> None:
        words = [None if label < 0 else ["a", "b"][label] for label in Y]
        assert [h.tolist() for _, h in LabelMask(3).split(X, words)] == [
            h.tolist() for _, h in LabelMask(3).split(X, Y)
        ]

    def test_more_parts_than_labels_is_a_sentence(self) -> None:
        with pytest.raises(InvalidInput, match=r"LabelMask\(5\) needs 5 labels in classes of two or more, got 4"):
            list(LabelMask(5).split(X, [0, 0, 1, 1, 2, *[-1] * 55]))
        with pytest.raises(InvalidInput, match="whole number of parts from 2, got 1"):
            cross_validate(model(), X, EDGES, Y, cv=1)
        with pytest.raises(InvalidInput, match="give y"):
            list(LabelMask(5).split(X, None))

    def test_some_rows_keep_their_graph(self) -> None:
        some = NODES[KNOWN][10:20]
        assert some.shape == (10, 2)
        assert some.rows.tolist() == list(range(10, 20))
        assert some.edge_index is EDGES
        np.testing.assert_array_equal(np.asarray(some), X[10:20])

    def test_rows_are_fitted_and_answered_on_the_whole_graph(self) -> None:
        on_graph = model().fit(X, Y, edge_index=EDGES)
        on_rows = model().fit(NODES[KNOWN], Y[KNOWN])
        np.testing.assert_allclose(on_rows.predict_proba(), on_graph.predict_proba())
        np.testing.assert_allclose(on_rows.predict_proba(NODES[40:]), on_graph.predict_proba(X, EDGES)[40:])
        np.testing.assert_allclose(model().fit(NodeRows(data), Y).predict_proba(), on_graph.predict_proba())


class TestCrossValidation:
    def test_hidden_nodes_are_scored(self) -> None:
        scores = cross_validate(model(), X, EDGES, Y, cv=3, scoring=["accuracy", "neg_log_loss"])
        assert scores["test_accuracy"].shape == scores["test_neg_log_loss"].shape == (3,)
        assert scores["test_accuracy"].mean() > 0.8
        assert sorted(np.concatenate(scores["hidden"]).tolist()) == list(range(30))

    def test_a_hidden_label_teaches_nobody(self) -> None:
        """Labels that say nothing are guessed by chance, though every one of them is in y."""
        noise = np.random.default_rng(0).integers(0, 2, 60)
        features = np.random.default_rng(1).normal(size=(60, 3))
        scores = cross_validate(model(), features, EDGES, noise, cv=5)
        assert scores["test_score"].mean() < 0.75
        split = next(iter(LabelMask(3).split(X, Y)))
        scrambled = Y.copy()
        scrambled[split[1]] = 1 - scrambled[split[1]]
        one, other = (model().fit(NODES[split[0]], y[split[0]]).predict_proba() for y in (Y, scrambled))
        np.testing.assert_array_equal(one, other)

    def test_test_nodes_of_a_data_are_neither_learned_nor_scored(self) -> None:
        graph = data.clone()
        graph.train_mask, graph.test_mask = torch.arange(60) < 30, torch.arange(60) >= 30
        scores = cross_validate(model(), graph, cv=3)
        assert sorted(np.concatenate(scores["hidden"]).tolist()) == list(range(30))

    def test_frames_words_and_names(self) -> None:
        names = [f"n{i}" for i in range(60)]
        frame = pd.DataFrame({"a": X[:, 0], "town": np.where(X[:, 1] > 0, "Rome", "Oslo")}, index=names)
        edges = pd.DataFrame({"s": [names[i] for i in EDGES[0]], "t": [names[i] for i in EDGES[1]]})
        y = pd.Series(np.array(["cat", "dog"])[TRUTH], index=names)[:30][::-1]
        scores = cross_validate(model(), frame, edges, y, cv=3, return_estimator=True)
        assert sorted(np.concatenate(scores["hidden"]).tolist()) == list(range(30))
        assert scores["estimator"][0].classes_.tolist() == ["cat", "dog"]


class TestFunctionsOfScikitLearn:
    @pytest.mark.parametrize("routed", [False, True])
    def test_cross_val_score(self, routed: bool) -> None:
        with sklearn.config_context(enable_metadata_routing=routed):
            assert cross_val_score(model(), NODES, Y, cv=LabelMask(3)).mean() > 0.8
            assert cross_val_score(model(), NODES[KNOWN], Y[KNOWN], cv=3, scoring="f1_macro").mean() > 0.8

    def test_cross_val_predict(self) -> None:
        assert cross_val_predict(model(), NODES[KNOWN], Y[KNOWN], cv=3, method="predict_proba").shape == (30, 2)
        assert (cross_val_predict(model(), NODES[KNOWN], Y[KNOWN], cv=LabelMask(3)) == Y[KNOWN]).mean() > 0.8

    def test_grid_search(self) -> None:
        search = GridSearchCV(model(), {"rounds": [0, 1]}, cv=LabelMask(3)).fit(NODES, Y)
        assert search.best_score_ > 0.8
        assert search.best_estimator_.predict().shape == (60,)
        assert search.score(NODES[30:], TRUTH[30:]) > 0.8

    def test_a_stack_and_a_vote_with_an_estimator_that_knows_no_graph(self) -> None:
        both = [("graph", model()), ("plain", LogisticRegression())]
        for kind in (StackingClassifier(both, cv=3), VotingClassifier(both, voting="soft")):
            predicted = kind.fit(NODES[KNOWN], Y[KNOWN]).predict(NODES)
            assert (predicted == TRUTH).mean() > 0.8

    def test_words_beside_an_estimator_that_knows_no_graph_are_a_sentence(self) -> None:
        towns = NodeRows(pd.DataFrame({"town": ["Rome", "Oslo"] * 30}), EDGES)
        stack = StackingClassifier([("graph", model()), ("plain", LogisticRegression())], cv=3)
        with pytest.raises(ValueError, match=r"an estimator that knows no graph needs numbers.*encode its words first"):
            stack.fit(towns[KNOWN], Y[KNOWN])

    def test_calibration(self) -> None:
        fitted = CalibratedClassifierCV(model(), cv=3).fit(NODES[KNOWN], Y[KNOWN])
        assert fitted.predict_proba(NODES).shape == (60, 2)

    def test_a_pipeline_with_routing_needs_no_request(self) -> None:
        with routing():
            pipeline = make_pipeline(StandardScaler(), model()).fit(X, Y, edge_index=EDGES)
            assert pipeline.predict(X, edge_index=EDGES).shape == (60,)
            assert pipeline.predict_proba(X, edge_index=EDGES).shape == (60, 2)
            assert pipeline.score(X, TRUTH, edge_index=EDGES) > 0.8

    @pytest.mark.parametrize("steps", ["scaler", "columns"])
    def test_a_pipeline_of_frames_equals_one_of_arrays(self, steps: str) -> None:
        frame = pd.DataFrame(X * [3.0, 900.0] + [1.0, -40.0], columns=["a", "b"])
        first: Any = StandardScaler()
        if steps == "columns":
            first = ColumnTransformer([("a", StandardScaler(), ["a"])], remainder=StandardScaler())
        with routing():
            frames = make_pipeline(clone(first).set_output(transform="pandas"), model())
            arrays = make_pipeline(clone(first), model())
            one, other = (pipeline.fit(frame, Y, edge_index=EDGES) for pipeline in (frames, arrays))
            for rows, edges in ((frame, EDGES), (frame[:9] * 2, np.array([[0, 1], [1, 2]]))):
                predicted, expected = (pipeline.predict_proba(rows, edge_index=edges) for pipeline in (one, other))
                np.testing.assert_allclose(predicted, expected, atol=1e-4)

    def test_edges_can_be_refused_by_request(self) -> None:
        with routing():
            quiet = model().set_fit_request(edge_index=False)
        assert quiet.get_metadata_routing().fit.requests["edge_index"] is False
        assert "checkpoints" not in quiet.get_metadata_routing().fit.requests

    @pytest.mark.parametrize(
        "call",
        [
            lambda: cross_val_score(model(), X, Y, cv=3, params={"edge_index": EDGES}),
            lambda: cross_val_predict(model(), X, Y, cv=3, params={"edge_index": EDGES}),
            lambda: GridSearchCV(model(), {"rounds": [0]}, cv=3).fit(X, Y, edge_index=EDGES),
            lambda: StackingClassifier([("graph", model())], cv=3).fit(X, Y, edge_index=EDGES),
            lambda: CalibratedClassifierCV(model(), cv=3).fit(X, Y, edge_index=EDGES),
            lambda: cross_val_score(model(), X, Y, cv=3, params={"edge_index": _adjacency()}),
            lambda: cross_val_score(model(), X, Y, cv=3, params={"edge_index": nx.cycle_graph(60)}),
        ],
    )
    @pytest.mark.filterwarnings("ignore")
    def test_where_rows_were_cut_a_sentence_says_what_to_do(self, call: Any) -> None:
        with routing(), pytest.raises(ValueError, match=r"use bangs\.cross_validate or bangs\.NodeRows"):
            call()

    @pytest.mark.parametrize(
        "kind", [lambda: make_pipeline(StandardScaler(), model()), lambda: BaggingClassifier(model())]
    )
    def test_what_makes_an_array_of_the_rows_is_told_so(self, kind: Any) -> None:
        with pytest.raises(InvalidInput, match=r"edge_index is missing.*transform X before NodeRows\(X, edges\)"):
            kind().fit(NODES[KNOWN], Y[KNOWN])


def _adjacency() -> Any:
    return sp.csr_array((np.ones(EDGES.shape[1]), (EDGES[0], EDGES[1])), shape=(60, 60))


class TestWithoutFeatures:
    def test_edges_alone_are_learned_from_as_the_command_line_does(self) -> None:
        from bangs.graphs.structural_features import standardised

        fitted = model(features="features").fit(None, Y, edge_index=EDGES)
        assert fitted.n_features_in_ == 66
        names = np.array([str(i) for i in range(60)], dtype=object)
        expected, _ = standardised(Data(edge_index=data.edge_index, num_nodes=60), names, 0)
        same = model(features="features").fit(expected, Y, edge_index=EDGES)
        np.testing.assert_allclose(fitted.predict_proba(), same.predict_proba())
        np.testing.assert_allclose(fitted.predict_proba(edge_index=EDGES), fitted.predict_proba(), atol=1e-5)
        bare = Data(edge_index=data.edge_index, y=torch.from_numpy(Y), num_nodes=60)
        np.testing.assert_allclose(model(features="features").fit(bare).predict_proba(), fitted.predict_proba())

    def test_it_is_saved_and_loaded(self, tmp_path: Any) -> None:
        fitted = model().fit(None, Y, edge_index=EDGES)
        fitted.save(tmp_path)
        loaded = SelfTrainingClassifier.load(tmp_path)
        np.testing.assert_array_equal(loaded.predict_proba(edge_index=EDGES), fitted.predict_proba(edge_index=EDGES))

    def test_features_where_there_were_none_are_refused_and_the_other_way_round(self) -> None:
        with pytest.raises(InvalidInput, match="fitted without features; leave X out"):
            model().fit(None, Y, edge_index=EDGES).predict(X, edge_index=EDGES)
        with pytest.raises(InvalidInput, match="fitted with features; give X"):
            model().fit(X, Y, edge_index=EDGES).predict(edge_index=EDGES)

    def test_cross_validation(self) -> None:
        assert cross_validate(model(), None, EDGES, TRUTH, cv=3)["test_score"].shape == (3,)
        named = nx.Graph([(f"n{a}", f"n{b}") for a, b in EDGES.T])
        labels = {f"n{i}": int(TRUTH[i]) for i in range(30)}
        assert cross_validate(model(), None, named, labels, cv=3)["test_score"].shape == (3,)
        pairs = pd.DataFrame(EDGES.T).map(lambda node: f"n{node}")
        rows = NodeRows(None, pairs)
        assert cross_val_score(model(), rows, [TRUTH[int(name[1:])] for name in rows.X.index], cv=3).shape == (3,)


class TestGraphsOfOtherLibraries:
    names = tuple(f"n{i}" for i in range(60))
    pairs = tuple((f"n{a}", f"n{b}") for a, b in EDGES.T if a < b)

    def graphs(self) -> list[Any]:
        named = nx.Graph(self.pairs[::-1])  # its nodes stand in another order than the rows
        other = library("igraph").Graph.TupleList(self.pairs[::-1])
        return [named, other]

    def test_names_meet_the_index_of_a_frame(self) -> None:
        frame = pd.DataFrame(X, columns=["a", "b"], index=list(self.names))
        expected = model().fit(SCALED, Y, edge_index=EDGES).predict_proba()
        for graph in self.graphs():
            np.testing.assert_allclose(model().fit(frame, Y, edge_index=graph).predict_proba(), expected, atol=1e-5)

    @pytest.mark.parametrize("form", ["frame", "both ways", "polars", "multigraph", "igraph"])
    @pytest.mark.parametrize("weighted", [False, True])
    def test_repeats_and_loops_count_as_on_the_command_line(self, form: str, weighted: bool, tmp_path: Any) -> None:
        from bangs.estimator.inputs import as_graph
        from bangs.graphs.tables import read

        ends = [*self.pairs, *self.pairs[:9], ("n3", "n3")]
        edges = pd.DataFrame(ends, columns=["source", "target"])
        if weighted:
            edges["weight"] = np.arange(len(edges)) % 5 + 0.5
        edges.to_csv(tmp_path / "edges.csv", index=False)
        frame = pd.DataFrame({"id": self.names, "a": X[:, 0], "label": TRUTH})
        frame.to_csv(tmp_path / "nodes.csv", index=False)
        expected = read(tmp_path).data
        rows = list(edges.itertuples(index=False, name=None))
        given: Any = edges
        if form == "both ways":
            back = edges.rename(columns={"source": "target", "target": "source"})[edges.columns]
            given = pd.concat([edges, back], ignore_index=True)
        elif form == "polars":
            given = library("polars").from_pandas(edges).lazy()
        elif form == "multigraph":
            given = nx.MultiGraph()
            given.add_edges_from((a, b, {"weight": w[0]} if w else {}) for a, b, *w in rows)
        elif form == "igraph":
            given = library("igraph").Graph.TupleList(rows, weights=weighted)
        graph = as_graph(frame.set_index("id")[["a"]], given)
        assert torch.equal(graph.edge_index, expected.edge_index)
        if weighted:
            torch.testing.assert_close(graph.edge_weight, expected.edge_weight)

    def test_numbers_are_rows_of_an_array_whatever_their_order(self) -> None:
        numbered = nx.Graph([(int(a), int(b)) for a, b in EDGES.T][::-1])
        other = library("igraph").Graph(60, [(int(a), int(b)) for a, b in EDGES.T if a < b])
        expected = model().fit(X, Y, edge_index=EDGES).predict_proba()
        for graph in (numbered, other):
            np.testing.assert_allclose(model().fit(X, Y, edge_index=graph).predict_proba(), expected, atol=1e-5)

    def test_without_x_nodes_are_those_of_the_graph_and_labels_are_read_by_name(self) -> None:
        labels = {f"n{i}": bool(TRUTH[i]) for i in range(30)}
        for graph in self.graphs():
            fitted = model().fit(None, labels, edge_index=graph)
            assert sorted(fitted.node_names_) == sorted(self.names)
            assert fitted.explain("n45").node == "n45"
            assert fitted.score(y=labels) > 0.8

    def test_weights_and_directions(self) -> None:
        from bangs.estimator.edge_inputs import edges

        heavy = nx.DiGraph()
        heavy.add_edge("a", "b", weight=2.0)
        heavy.add_edge("b", "c")
        index, weight = edges(heavy, 3)
        assert index.tolist() == [[0, 1], [1, 2]]
        assert weight is not None
        assert weight.tolist() == [2.0, 1.0]
        assert edges(heavy.to_undirected(), 3)[0].shape == (2, 4)
        other = library("igraph").Graph([(0, 1), (1, 2)], directed=True, edge_attrs={"weight": [2.0, 1.0]})
        assert edges(other, 3)[1].tolist() == [2.0, 1.0]  # type: ignore[union-attr]

    def test_places_on_a_grid_are_names(self) -> None:
        grid = nx.grid_2d_graph(4, 4)
        labels = {node: int(node[0] > 1) for node in grid.nodes}
        assert model().fit(None, labels, edge_index=grid).explain("(0, 1)").node == "(0, 1)"


class TestLabels:
    def test_bools_come_back_as_bools(self, tmp_path: Any) -> None:
        y = [None if label < 0 else bool(label) for label in Y]
        fitted = model().fit(X, y, edge_index=EDGES)
        assert fitted.classes_.dtype == bool
        assert fitted.predict().dtype == bool
        assert set(fitted.labels_) <= {True, False, None}
        fitted.save(tmp_path)
        assert SelfTrainingClassifier.load(tmp_path).predict().dtype == bool
        assert model().fit(X, TRUTH.astype(bool), edge_index=EDGES).predict().dtype == bool

    def test_floats_that_repeat_are_classes_as_on_the_command_line(self) -> None:
        fitted = model().fit(X, np.where(Y < 0, np.nan, Y + 0.5), edge_index=EDGES)
        assert fitted.classes_.tolist() == [0.5, 1.5]
        whole = model().fit(X, np.where(Y < 0, np.nan, Y), edge_index=EDGES)
        assert [str(name) for name in whole.classes_] == ["0", "1"]

    def test_a_score_needs_no_x(self) -> None:
        names = [f"n{i}" for i in range(60)]
        fitted = model().fit(pd.DataFrame(X, index=names), Y, edge_index=EDGES)
        right = float((fitted.predict() == TRUTH).mean())
        assert fitted.score(y=TRUTH) == fitted.score(None, TRUTH) == pytest.approx(right)
        assert fitted.score(y=pd.Series(TRUTH, index=names)[::-1]) == pytest.approx(right)
        assert fitted.score(y=TRUTH, sample_weight=np.arange(60) < 1) in (0.0, 1.0)

    def test_a_score_matches_labels_with_the_names_of_the_nodes_that_are_predicted(self) -> None:
        fitted = model().fit(X, Y, edge_index=EDGES)
        right = float((fitted.predict() == TRUTH).mean())
        backwards = {row: TRUTH[row] for row in reversed(range(60))}
        assert fitted.score(X, backwards, edge_index=EDGES) == pytest.approx(right)
        assert cross_validate(model(), X, EDGES, {row: Y[row] for row in reversed(range(60))}, cv=2)[
            "test_score"
        ] == pytest.approx(cross_validate(model(), X, EDGES, Y, cv=2)["test_score"])
        links = pd.DataFrame(np.char.add("n", EDGES.T.astype(str)))
        names = pd.Index(pd.unique(links.to_numpy().ravel()))
        by_name = pd.Series(TRUTH, index=[f"n{i}" for i in range(60)])[names]
        bare = model().fit(None, by_name.where(by_name.index.str.len() < 3), edge_index=links)
        said = pd.Series(bare.predict(edge_index=links[::-1]), index=pd.unique(links[::-1].to_numpy().ravel()))
        assert bare.score(y=by_name, edge_index=links[::-1]) == pytest.approx((said[names] == by_name).mean())

    def test_labels_of_node_rows_are_matched_by_the_names_in_the_index_of_the_frame(self) -> None:
        frame = pd.DataFrame(X, index=[f"n{i}" for i in range(60)])
        nodes, in_order = NodeRows(frame, EDGES), pd.Series(Y, index=frame.index)
        expected = model().fit(nodes, in_order).predict_proba()
        np.testing.assert_array_equal(model().fit(nodes, in_order[::-1]).predict_proba(), expected)
        np.testing.assert_array_equal(model().fit(nodes[:30], in_order[:30][::-1]).predict_proba(), expected)
        scores = [cross_validate(model(), nodes, y=y, cv=2)["test_score"] for y in (in_order, in_order[::-1], Y)]
        assert np.ptp(scores, axis=0).max() == 0
        known = pd.Series(Y)[Y >= 0]  # an index that names no node
        np.testing.assert_array_equal(model().fit(nodes[Y >= 0], known).predict_proba(), expected)

    def test_labels_of_other_rows_than_those_given_are_refused(self) -> None:
        frame = pd.DataFrame(X, index=[f"n{i}" for i in range(60)])
        backwards = pd.Series(Y, index=frame.index)[::-1]
        with pytest.raises(InvalidInput, match="y has a label for 'n59', which is not the name of a node"):
            model().fit(NodeRows(frame, EDGES)[:30], backwards[:30])

    def test_numbers_of_folds_may_be_those_of_numpy(self, tmp_path: Any) -> None:
        folded = model(validation=None)
        search = GridSearchCV(folded, {"folds": np.arange(2, 4)}, cv=LabelMask(np.int64(2)))  # type: ignore[arg-type]
        best = search.fit(NodeRows(X, EDGES), Y).best_estimator_
        best.save(tmp_path / "best")
        assert SelfTrainingClassifier.load(tmp_path / "best").folds == best.folds
        expected = cross_validate(model(), X, EDGES, Y, cv=2)["test_score"]
        assert cross_validate(model(), X, EDGES, Y, cv=np.int64(2))["test_score"] == pytest.approx(expected)

    def test_words_are_not_scored_against_numbers_nor_nodes_without_weight(self) -> None:
        fitted = model().fit(X, Y, edge_index=EDGES)
        with pytest.raises(InvalidInput, match="y has labels such as '0', the model has classes such as 0"):
            fitted.score(y=TRUTH.astype(str))
        with pytest.raises(InvalidInput, match="every labelled node has sample_weight 0"):
            fitted.score(y=TRUTH, sample_weight=np.zeros(60))
        assert fitted.score(y=TRUTH.astype(float)) == fitted.score(y=TRUTH)

    def test_7_and_7_0_and_the_word_7_are_one_name_as_in_tables(self) -> None:
        expected = model().fit(SCALED, Y, edge_index=EDGES)
        words = pd.DataFrame(X, index=[str(i) for i in range(1000, 1060)])
        links = pd.DataFrame({"s": EDGES[0] + 1000, "t": EDGES[1] + 1000.0})
        fitted = model().fit(words, pd.Series(Y, index=range(1000, 1060)), edge_index=links)
        np.testing.assert_allclose(fitted.predict_proba(), expected.predict_proba(), atol=1e-5)
        numbers = words.set_axis(range(1000, 1060))
        assert model().fit(numbers, Y, edge_index=links).score(y=pd.Series(TRUTH, index=numbers.index)) > 0.8
        with pytest.raises(InvalidInput, match="names node 1059 in column"):
            model().fit(words[:-1], Y[:-1], edge_index=links)

    @pytest.mark.parametrize("word", ["unknown", "Unlabeled", "TBD", "missing", "to do", "N/A", "none", "?"])
    def test_a_word_for_no_label_stops_the_fit_until_it_is_none_or_kept(self, word: str, tmp_path: Any) -> None:
        words = np.where(Y < 0, word, np.array(["Cat", "dog"])[Y])
        with pytest.raises(
            InvalidInput, match=f"'{re.escape(word)}' looks like a word for \"no label\".*None.*keep="
        ) as error:
            model().fit(X, words, edge_index=EDGES)
        without = model().fit(X, np.where(words == word, None, words), edge_index=EDGES)
        assert without.classes_.tolist() == ["Cat", "dog"]
        suggested = eval(re.findall(r"keep=(.*)\)", str(error.value))[0])
        kept = model(keep=suggested).fit(X, words, edge_index=EDGES)
        assert sorted(kept.classes_) == sorted(["Cat", "dog", word])
        assert model(keep=word).fit(X, words, edge_index=EDGES).classes_.tolist() == kept.classes_.tolist()
        kept.save(tmp_path)
        assert list(SelfTrainingClassifier.load(tmp_path).keep) == [word]

    def test_two_spellings_of_a_class_stop_the_fit_until_they_are_written_alike_or_kept(self) -> None:
        words = np.where(np.arange(60) < 9, "Dog", np.where(Y < 0, "dog", "cat"))
        with pytest.raises(InvalidInput, match=r"'Dog', 'dog' differ in capital letters only.*keep=\['Dog', 'dog'\]"):
            model().fit(X, words, edge_index=EDGES)
        assert model().fit(X, [word.lower() for word in words], edge_index=EDGES).classes_.tolist() == ["cat", "dog"]
        assert model(keep=["Dog", "dog"]).fit(X, words, edge_index=EDGES).classes_.tolist() == ["Dog", "cat", "dog"]
        with pytest.raises(InvalidInput, match="keep must be a list of labels that are words"):
            model(keep=3).fit(X, words, edge_index=EDGES)

    def test_an_explanation_speaks_names_and_class_words(self) -> None:
        names = [f"n{i}" for i in range(60)]
        words = [None if label < 0 else ["cat", "dog"][label] for label in Y]
        explanation = model().fit(pd.DataFrame(X, index=names), words, edge_index=EDGES).explain("n41")
        assert explanation.node == "n41"
        assert explanation.label in ("cat", "dog")
        assert set(explanation.probs) == {"cat", "dog"}
        assert all(near.node in names and near.label in ("cat", "dog") for near in explanation.neighbours)
        assert "cat" in str(explanation)


class TestFrames:
    def frame(self, rows: int = 60) -> pd.DataFrame:
        number = np.arange(rows)
        joined = pd.Series(pd.to_datetime("2019-01-01") + pd.to_timedelta(number * 50, unit="D"))
        return pd.DataFrame(
            {
                "age": np.where(number % 7 == 3, np.nan, number * 1.5),
                "town": [["Rome", "Oslo", None][i % 3] for i in number],
                "joined": joined.where(number % 11 != 5),
            }
        )

    def test_gaps_are_refused_or_filled_as_on_the_command_line(self) -> None:
        frame = self.frame()
        with pytest.raises(ValueError, match='fill="mean"'):
            model().fit(frame, Y, edge_index=EDGES)
        with pytest.raises(ValueError, match="column 'age' holds '', where a number should be"):
            model().fit(frame[["age"]], Y, edge_index=EDGES)
        with pytest.raises(InvalidInput, match="fill must be 'mean' or None, got 'median'"):
            model(fill="median").fit(frame[["town"]], Y, edge_index=EDGES)
        fitted = model(fill="mean").fit(frame, Y, edge_index=EDGES)
        np.testing.assert_allclose(fitted.predict_proba(frame, EDGES), fitted.predict_proba(), atol=1e-5)

    @pytest.mark.parametrize("kind", ["pandas", "polars"])
    def test_a_frame_is_read_as_the_folder_with_the_same_table(self, kind: str, tmp_path: Any) -> None:
        from bangs.estimator.inputs import prepare
        from bangs.graphs.tables import read

        frame = self.frame()
        frame.assign(id=range(60), label=np.where(Y < 0, None, Y)).to_csv(tmp_path / "nodes.csv", index=False)
        pd.DataFrame({"source": EDGES[0], "target": EDGES[1]}).to_csv(tmp_path / "edges.csv", index=False)
        table = read(tmp_path, fill="mean")
        given: Any = frame if kind == "pandas" else library("polars").from_pandas(frame)
        edges: Any = pd.DataFrame({"source": EDGES[0], "target": EDGES[1]})
        edges = edges if kind == "pandas" else library("polars").from_pandas(edges)
        inputs = prepare(given, None, edges, fill="mean")
        assert inputs.columns is not None
        assert inputs.columns.columns == table.columns.columns
        np.testing.assert_array_equal(inputs.graph.x.numpy(), table.data.x.numpy())
        assert sorted(map(tuple, inputs.graph.edge_index.T.tolist())) == sorted(
            map(tuple, table.data.edge_index.T.tolist())
        )


class OnTable(SelfTrainingClassifier):
    """The classifier on a graph of nearest neighbours, so that scikit-learn can call fit(X, y) and predict(X)."""

    def __init__(self, epochs: int = 25, rounds: int = 1, random_state: Any = 0):
        super().__init__(**HARD, epochs=epochs, rounds=rounds, random_state=random_state)

    def fit(self, X: Any, y: Any = None) -> "OnTable":  # type: ignore[override]
        return super().fit(X, y, edge_index=_neighbours(X))

    def predict_proba(self, X: Any) -> Any:  # type: ignore[override]
        return super().predict_proba(X, _neighbours(X))

    def predict(self, X: Any) -> Any:  # type: ignore[override]
        return super().predict(X, _neighbours(X))

    def score(self, X: Any, y: Any) -> float:  # type: ignore[override]
        return float((self.predict(X) == np.asarray(y)).mean())


def _neighbours(X: Any) -> Any:
    """Every row and the three nearest ones; no edges where X is no table, so that the classifier itself complains."""
    try:
        table = X if sp.issparse(X) else np.asarray(X)
        return kneighbors_graph(table, min(3, table.shape[0] - 1))
    except (ValueError, TypeError, IndexError):
        return np.zeros((2, 0), int)


NOT_FOR_GRAPHS = {
    "check_methods_subset_invariance": "a node's prediction depends on the other rows: they are its neighbours",
    "check_methods_sample_order_invariance": "sums in float32 depend on the order of rows in the eighth digit",
    "check_classifiers_classes": "-1 is no class here but says that a label is unknown",
}


def test_the_page_tells_which_checks_are_skipped() -> None:
    page = (ROOT / "docs" / "scikit-learn.md").read_text()
    assert set(re.findall(r"`(check_\w+)`", page)) - {"check_estimator"} == set(NOT_FOR_GRAPHS)


def test_scikit_learns_checks_pass_but_for_those_that_make_no_sense_on_a_graph() -> None:
    results = check_estimator(OnTable(), expected_failed_checks=NOT_FOR_GRAPHS, on_fail=None, on_skip=None)
    failed = {r["check_name"]: repr(r["exception"])[:300] for r in results if r["status"] == "failed"}
    assert not failed
    assert sum(r["status"] == "passed" for r in results) >= 40
