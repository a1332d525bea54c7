"""What the authors suggest and what the paper ran, as written down in the papers, scripts and READMEs."""

from dataclasses import replace

import pytest

from bangs.calibration.calibrators import ETS
from bangs.calibration.graph_calibrators import CaGCN
from bangs.errors import InvalidInput, UnknownName
from bangs.graphs.augmentations import DropEdges, Same
from bangs.selection.quotas import Above, Top, TopPerClass
from bangs.selection.scores import Agreement, Banzhaf, Chance, Logit
from bangs.selftraining.methods import METHODS, multiview
from bangs.selftraining.published_settings import authors, paper
from bangs.selftraining.uncertainty import InformationGain
from bangs.training.augmented_prediction import Dropout
from bangs.valuation.banzhaf import MSR

CITATION = ("cora", "citeseer", "pubmed")


@pytest.mark.parametrize("dataset", CITATION)
@pytest.mark.parametrize("name", METHODS)
def test_every_method_has_its_authors_settings_on_the_citation_graphs(name, dataset):
    assert authors(name, dataset) == authors(name, dataset.upper())


@pytest.mark.parametrize("dataset", [*CITATION, "lastfm_asia", "flickr", "somebody's own"])
@pytest.mark.parametrize("name", [name for name in METHODS if name != "drgst-dropedge"])
def test_every_system_of_the_paper_has_its_settings_everywhere(name, dataset):
    assert paper(name, dataset).rounds <= 40


@pytest.mark.parametrize(
    ("dataset", "k", "rounds", "rate"),
    [("cora", 100, 25, 0.1), ("citeseer", 70, 30, 0.05), ("pubmed", 1000, 20, 0.1), ("lastfm-asia", 400, 20, 0.2)],
)
def test_cpl_as_its_script_runs_it(dataset, k, rounds, rate):
    recipe = authors("cpl", dataset)
    assert (recipe.quota, recipe.rounds, recipe.views) == (Top(k), rounds, multiview(rate))
    assert (recipe.start, recipe.teacher, recipe.pool) == (100, "first", "open")


@pytest.mark.parametrize(
    ("dataset", "nodes", "edges", "classes"),
    [("cora", 2708, 10556, 7), ("citeseer", 3327, 9104, 6), ("pubmed", 19717, 88648, 3)],
)
def test_m3s_takes_what_its_formula_gives(dataset, nodes, edges, classes):
    recipe = authors("m3s", dataset)
    t = int(3 * nodes / (edges / nodes) ** 2 / classes) // 5
    assert recipe.score == Agreement(200, among=TopPerClass(t), space="embeddings")
    assert (recipe.rounds, recipe.quota, recipe.start) == (5, Above(0.0), "fresh")


@pytest.mark.parametrize(
    ("dataset", "rounds", "threshold"), [("cora", 3, 0.8), ("citeseer", 4, 0.9), ("pubmed", 5, 0.8)]
)
def test_cagcn_never_adopts_test_nodes_in_its_authors_hands(dataset, rounds, threshold):
    recipe = authors("cagcn", dataset)
    assert (recipe.rounds, recipe.quota, recipe.pool) == (rounds, Above(threshold), "unused")
    assert recipe.calibrate == CaGCN()
    assert paper("cagcn", dataset) == recipe


@pytest.mark.parametrize("dataset", ["lastfm_asia", "amazon_computers"])
def test_where_its_authors_tried_nothing_cagcn_may_adopt_test_nodes_since_shares_leave_none_unused(dataset):
    assert paper("cagcn", dataset) == replace(authors("cagcn", "cora"), pool="free")


@pytest.mark.parametrize(
    ("dataset", "rounds", "threshold", "beta", "rate"),
    [("cora", 1, 0.53, 1 / 3, 0.5), ("citeseer", 8, 0.7, 0.5, 0.3), ("pubmed", 1, 0.74, 1.0, 0.5)],
)
def test_drgst_as_its_readme_has_it(dataset, rounds, threshold, beta, rate):
    recipe = authors("drgst", dataset)
    assert (recipe.rounds, recipe.quota) == (rounds, Above(threshold))
    assert recipe.weigh == InformationGain(Dropout(rate), beta=beta)
    assert (recipe.memory, recipe.pool) == ("rebuild", "unused")


def test_drgst_drops_edges_instead():
    recipe = authors("drgst-dropedge", "cora")
    assert recipe.weigh == InformationGain(DropEdges(0.4), beta=0.5)
    assert (recipe.rounds, recipe.quota) == (4, Above(0.54))


def test_authors_who_tried_no_such_dataset_suggest_nothing():
    with pytest.raises(InvalidInput, match=r"the authors of cagcn suggest no settings for 'flickr', only for cora, "):
        authors("cagcn", "flickr")


@pytest.mark.parametrize("preset", [authors, paper])
def test_an_unknown_method_is_named(preset):
    with pytest.raises(UnknownName, match=r"'cpll' is unknown; did you mean 'cpl'\?"):
        preset("cpll", "cora")


def test_the_papers_text_has_the_last_student_teach():
    assert authors("bangs", "cora").teacher == "latest"


@pytest.mark.parametrize(("dataset", "k"), [("cora", 100), ("pubmed", 100), ("lastfm_asia", 400), ("flickr", 400)])
def test_bangs_as_the_paper_ran_it(dataset, k):
    recipe = paper("bangs", dataset)
    assert recipe.score == Banzhaf(k, k + 100, MSR(500))
    assert recipe.calibrate == (CaGCN(margin=0.0) if dataset == "pubmed" else ETS())
    assert (recipe.rounds, recipe.teacher, recipe.pool, recipe.start) == (40, "first", "open", "fresh")


def test_cpl_and_random_share_their_settings_in_the_paper():
    recipe = paper("cpl", "citeseer")
    assert (recipe.quota, recipe.views, recipe.start, recipe.rounds) == (Top(100), multiview(0.1), "fresh", 40)
    assert paper("random", "citeseer").views == recipe.views
    assert paper("random", "citeseer").score == Chance()


def test_the_quirks_of_the_published_code_have_names():
    port = paper("drgst", "citeseer")
    assert (port.score, port.quota, port.memory, port.pool) == (Logit(), Above(0.2), "alternate", "open")
    assert port.weigh == InformationGain(Dropout()), "at the rate the model was trained with"
    assert (paper("m3s", "cora").score, paper("m3s", "cora").quota) == (Agreement(200, space="logits"), Above(0.53))
    assert paper("m3s", "cora").start == 100
    for name in ("confidence", "bangs-uncalibrated"):
        assert paper(name, "cora").views == (Dropout(),)
    for name in ("confidence-calibrated", "bangs", "bangs-no-banzhaf"):
        assert paper(name, "cora").views == (Same(),)


def test_drop_edge_was_not_in_the_paper():
    with pytest.raises(UnknownName, match=r"method of the BANGS paper 'drgst-dropedge' is unknown"):
        paper("drgst-dropedge", "cora")
