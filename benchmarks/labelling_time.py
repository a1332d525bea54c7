"""How long suggestions take after a fit, and how long the page of `bangs label` takes to answer a key.

    python benchmarks/labelling_time.py [--nodes 100000] [--edges 500000] [--count 20] [--json]

A fit on a synthetic graph with 400 labels is saved and read again, as `bangs suggest` does. Then a page is served from
its queue, answered by 200 keys, and every key is timed from request to answer, on the disk by then.
"""

import http.client
import json
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import torch

from bangs import SelfTrainingClassifier
from bangs.estimator.model_file import read_saved_run
from bangs.labelling.cards import make_cards, write_queue
from bangs.labelling.server import LabelServer
from bangs.labelling.session import Session
from bangs.utils.threads import thread_count
from measuring import options, show

CLASSES, FEATURES, LABELS, KEYS = 8, 16, 400, 200


def made(nodes: int, edges: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, edges and labels of a graph in which seven edges of ten join nodes of one class."""
    rng = np.random.default_rng(seed)
    truth = np.sort(rng.integers(CLASSES, size=nodes))
    begin = np.searchsorted(truth, np.arange(CLASSES + 1))
    x = rng.normal(size=(nodes, FEATURES), scale=1.5).astype(np.float32)
    x[np.arange(nodes), truth] += 1
    source = rng.integers(nodes, size=edges)
    same_class = begin[truth[source]] + (rng.random(edges) * np.diff(begin)[truth[source]]).astype(int)
    target = np.where(rng.random(edges) < 0.7, same_class, rng.integers(nodes, size=edges))
    y = np.full(nodes, -1)
    given = rng.permutation(nodes)[:LABELS]
    y[given] = truth[given]
    return x, np.stack([source, target]), y


def keys(folder: Path) -> list[float]:
    """Milliseconds that every key takes until the page has its answer."""
    server = LabelServer(Session(folder, batch=10 * KEYS), "a graph")
    worker = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    worker.start()
    origin, took = f"http://127.0.0.1:{server.server_port}", []
    for _ in range(KEYS):
        state = server.session.state()
        body = json.dumps({"number": state["number"], "node": state["card"]["node"], "label": state["classes"][0]})
        begin = time.perf_counter()
        line = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
        line.request("POST", f"/{server.token}/label", body, {"Origin": origin, "Content-Type": "application/json"})
        answer = line.getresponse()
        answer.read()
        took.append(1000 * (time.perf_counter() - begin))
        assert answer.status == 200
        line.close()
    server.shutdown()
    server.server_close()
    server.session.close()
    return took


def main() -> None:
    parser = options(__doc__ or "", repeats=None)
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--edges", type=int, default=500_000)
    parser.add_argument("--count", type=int, default=20)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    x, edges, y = made(args.nodes, args.edges)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        SelfTrainingClassifier("sgc").fit(x, y, edge_index=edges).save(folder)
        begin, busy = time.perf_counter(), time.process_time()
        read_saved_run(folder).suggest(args.count)
        row = {"suggest_seconds": time.perf_counter() - begin, "suggest_cpu_seconds": time.process_time() - busy}
        queue = make_cards(read_saved_run(folder), KEYS, None, torch.zeros(args.nodes, dtype=torch.bool))
        write_queue(folder, queue, {"answers": 0})
        took = keys(folder)
    row |= {"key_ms_median": float(np.median(took)), "key_ms_most": max(took)}
    facts = {"nodes": args.nodes, "edges": args.edges, "count": args.count, "threads": thread_count(args.nodes)}
    show([row], args.json, **facts)


if __name__ == "__main__":
    main()
