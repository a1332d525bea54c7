"""The named datasets: their addresses, checksums and readers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from torch_geometric.data import Data

from bangs.graphs import splits
from bangs.graphs.datasets import flickr, lastfm, planetoid, synthetic
from bangs.graphs.datasets.download import Remote


@dataclass(frozen=True)
class Dataset:
    """What is known about a dataset before it is read."""

    name: str
    description: str
    classes: int
    source: str
    folder: str  # of its files, below the data folder
    files: Mapping[str, Remote]  # file name -> source
    read: Callable[[Path], Data]  # folder of the files -> graph
    instead: tuple[str, ...] = ()  # other files that can be read instead


_PLANETOID = "https://github.com/kimiyoung/planetoid"
_SHA256 = {
    "cora": (
        "23cfa55d91c6f624233f5eb7b6e3f141f1bd2b2ae39608a63cf5d084bb27baab",
        "b9afbaa4a400df991f6f02ef677e1e44da55ffc04801fd02f9e673987829226a",
        "9419ba2f26f5c35243db64aba110e0f35a04851609e0dc5433450676ca6b8543",
        "94465c14eb53e04ca262198dcbb2521ee8af60fb3f3d546cd6ca24a511b0e7d1",
        "41f5ac76596a1699cc33f53084a2419e92961c42bb75f36fc38e616d348532ad",
        "2b998f5cc7fedc86e7f97ca2498f47a1ffc1462c29e2d578b23bf3f62b6e7d71",
        "58f13302f39dde8852dad6fe6d15b89b077b6d7f837626bce671ef80344b383d",
        "297ce89af2b51a6a194181c7dbe1796c6a1cf9cd9349a88383b1b1e227867875",
    ),
    "citeseer": (
        "d20de19150741e555de0ed037195630fc194114ebc7fd72ced62810148aa22f6",
        "539a8906a2da97628d212f2fdd668c109a8b3f0d36574b59e5d3fd5b5303da21",
        "2ac30345d95c9ec933a817ee0bdd6a5f077f8c184a20e696910192d534414668",
        "8ba87e515d8e3ee3cf52f6d2c5b86aa73f11ecad825a808455209ec26cd54924",
        "55e5bd1ba1e733a04598753ad1a8d57957f4b8f89e74519f41f4f4938767e4ce",
        "f704b2d986dde6c2669934de1f3ae5696a6cf9455c0f6b2646a2d135ea0a1c95",
        "d79a4ef9d3e7169aee8946145f6b7306e35bc79bffad26346cfb94e10e9912a7",
        "2af990671580b6b2df5d158d1038f8292e30c9cd821b5453f399659b25b723d4",
    ),
    "pubmed": (
        "fbe9cb5c47200d1b7769a26e579be3b7130b556831f9d850e77c4c74f2599b33",
        "4eb5f5d0f30f26497eb0ac6ac9719d09c67e284f1ed0385c93f3ef27a671da3d",
        "508e538e2abdccdd54c4d3e9f49d638b4af7107d85845f66ddea5a5152658b7e",
        "e6c807633307a07ed659249006536a147c7999c797f11a2560752990181b41b3",
        "ee2e0d4819d9fbcc403689c3bf2e49face401b605932f093bc58ab6461130fdd",
        "0c37bbe3b5014ec365e9d393cf4791925e5ed94fb194305d74f064a8d7b50f0e",
        "5b89f0036ca22909471f1e6558eb42fa06e0c730a577bde5b058b40638f81dc9",
        "b101d421688bbaecbd82e8a18f1e282378d6830f3a37666f28ebc47f844341b5",
    ),
}


def _planetoid(name: str, folder: str, description: str, classes: int) -> Dataset:
    files = {
        f"ind.{name}.{part}": Remote(f"{_PLANETOID}/raw/master/data/ind.{name}.{part}", sha256)
        for part, sha256 in zip(planetoid.PARTS, _SHA256[name], strict=True)
    }
    read = partial(planetoid.read_planetoid, name=name)
    return Dataset(name, description, classes, _PLANETOID, f"{folder}/raw", files, read)


def _embedded(_: Path) -> Data:
    """The synthetic graph, with a split like the public ones of the citation graphs."""
    data = synthetic.citation()
    return splits.mark(data, splits.per_class(data.y, 20, 500, 1000, [0]))


DATASETS: Mapping[str, Dataset] = {
    dataset.name: dataset
    for dataset in (
        Dataset(
            name="synthetic",
            description="a synthetic citation network, made from a seed",
            classes=7,
            source="bangs itself",
            folder="",
            files={},
            read=_embedded,
        ),
        _planetoid("cora", "Cora", "machine-learning papers and their citations", 7),
        _planetoid("citeseer", "CiteSeer", "computer-science papers and their citations", 6),
        _planetoid("pubmed", "PubMed", "papers on diabetes and their citations", 3),
        Dataset(
            name="lastfm_asia",
            description="listeners in Asia, their friends and the artists they like; the class is the country",
            classes=18,
            source="https://snap.stanford.edu/data/feather-lastfm-social.html",
            folder="LastFMAsia/raw",
            files={
                lastfm.ARCHIVE: Remote(
                    "https://snap.stanford.edu/data/lastfm_asia.zip",
                    "51acb78a923bb223ed6e61be88f91122fb29adca3f07beff7289cafd98601d47",
                )
            },
            read=lastfm.read_lastfm,
            instead=(lastfm.EDGES, lastfm.ARTISTS, lastfm.COUNTRIES),
        ),
        Dataset(
            name="flickr",
            description="images with common properties, described by words (GraphSAINT)",
            classes=7,
            source="https://github.com/GraphSAINT/GraphSAINT",
            folder="Flickr/raw",
            files={
                name: Remote(f"https://drive.usercontent.google.com/download?id={key}&confirm=t", starts=starts)
                for name, key, starts in (
                    ("adj_full.npz", "1crmsTbd1-2sEXsGwa2IKnIB7Zd3TmUsy", b"PK"),
                    ("feats.npy", "1join-XdvX3anJU_MLVtick7MgeAQiWIZ", b"\x93NUMPY"),
                    ("class_map.json", "1uxIkbtg5drHTsKt-PAsZZ4_yJmgFmle9", b"{"),
                    ("role.json", "1htXCtuktuCW8TR8KiKfrFDAxUgekQoV7", b"{"),
                )
            },
            read=flickr.read_flickr,
        ),
    )
}
