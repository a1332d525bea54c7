"""The server answers its own page and refuses everything else."""

import http.client
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bangs.labelling.cards import write_queue
from bangs.labelling.server import MAX_BODY_BYTES, LabelServer
from tests.labelling.folders import answers_in, card, queue_folder, served


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LabelServer]:
    with served(queue_folder(tmp_path / "labels")) as made:
        yield made


def ask(
    server: LabelServer, path: str, method: str = "GET", body: Any = None, leave: str = "", **headers: str
) -> tuple[int, bytes]:
    """The status and body of an answer to a request as the page makes it, but for `headers` and one left out."""
    defaults = {"Host": f"127.0.0.1:{server.server_port}"}
    if method == "POST":
        defaults |= {"Origin": f"http://127.0.0.1:{server.server_port}", "Content-Type": "application/json"}
    defaults |= {name.replace("_", "-"): value for name, value in headers.items()}
    defaults.pop(leave, None)
    line = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
    content = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    line.request(method, path, content, defaults)
    answer = line.getresponse()
    response = answer.status, answer.read()
    line.close()
    return response


def label(server: LabelServer, **more: Any) -> tuple[int, bytes]:
    state = server.session.state()
    body = {"number": state["number"], "node": state["card"]["node"], "label": "oak"}
    return ask(server, f"/{server.token}/label", "POST", body, **more)


def test_an_answer_is_on_the_disk_when_the_next_node_comes(server: LabelServer) -> None:
    first = server.session.state()["card"]["node"]
    status, body = label(server)
    assert status == 200
    assert json.loads(body)["card"]["node"] != first
    assert answers_in(server.session.folder) == [(first, "label", "oak")]


@pytest.mark.parametrize("path", ["/", "/wrong/", "/wrong/state", "//", "/{token}x/state", "/{half}/state"])
def test_a_wrong_token_sees_nothing(server: LabelServer, path: str) -> None:
    status, body = ask(server, path.format(token=server.token, half=server.token[:16]))
    assert status == 403
    assert b"n1" not in body


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1", "[::1]:80", ""])
def test_a_foreign_host_header_is_refused(server: LabelServer, host: str) -> None:
    assert ask(server, f"/{server.token}/state", Host=host)[0] == 421
    assert label(server, Host=host)[0] == 421
    assert answers_in(server.session.folder) == []


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1", "http://127.0.0.1:1"])
def test_a_foreign_origin_is_refused(server: LabelServer, origin: str) -> None:
    assert label(server, Origin=origin)[0] == 403
    assert ask(server, f"/{server.token}/state", Origin=origin)[0] == 403
    assert answers_in(server.session.folder) == []


def test_a_post_without_an_origin_or_from_another_site_is_refused(server: LabelServer) -> None:
    assert label(server, leave="Origin")[0] == 403
    assert label(server, Sec_Fetch_Site="cross-site")[0] == 403
    assert label(server, Sec_Fetch_Site="same-site")[0] == 403
    assert label(server, Sec_Fetch_Site="same-origin")[0] == 200


def test_a_form_or_text_is_no_answer(server: LabelServer) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        assert label(server, Content_Type=kind)[0] == 415
    assert answers_in(server.session.folder) == []


def test_a_huge_body_is_refused_before_it_is_read(server: LabelServer) -> None:
    path = f"/{server.token}/label"
    assert ask(server, path, "POST", b" " * (MAX_BODY_BYTES + 1))[0] == 413
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=20) as line:
        head = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{server.server_port}\r\nOrigin: http://127.0.0.1:{server.server_port}\r\n"
            "Content-Type: application/json\r\nContent-Length: 99999999999\r\n\r\n"
        )
        line.sendall(head.encode())
        assert b" 413 " in line.recv(4096)


def test_a_body_without_a_length_is_refused(server: LabelServer) -> None:
    assert label(server, Transfer_Encoding="chunked")[0] == 411


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{", b'{"number": "1"}', b'{"number": 0, "node": 3}', b'{"number": 0, "more": 1}', b"[" * 3000],
)
def test_what_is_no_answer_is_refused(server: LabelServer, body: bytes) -> None:
    assert ask(server, f"/{server.token}/label", "POST", body)[0] == 400
    assert answers_in(server.session.folder) == []


def test_a_class_that_cannot_be_one_is_refused_with_a_clear_error(server: LabelServer) -> None:
    state = server.session.state()
    body = {"number": 0, "node": state["card"]["node"], "label": " \n "}
    status, result = ask(server, f"/{server.token}/label", "POST", body)
    assert status == 422
    assert "the name of a class must have" in json.loads(result)["error"]


def test_an_answer_to_a_node_that_is_not_shown_changes_nothing(server: LabelServer) -> None:
    path = f"/{server.token}/label"
    status, result = ask(server, path, "POST", {"number": 0, "node": "n7", "label": "oak"})
    assert status == 409
    assert json.loads(result)["state"]["card"]["node"] != "n7"
    assert label(server)[0] == 200
    shown = server.session.state()["card"]["node"]
    assert ask(server, path, "POST", {"number": 0, "node": shown, "label": "oak"})[0] == 409
    assert len(answers_in(server.session.folder)) == 1


def test_other_methods_and_pages_are_refused(server: LabelServer) -> None:
    assert ask(server, f"/{server.token}/../../etc/passwd")[0] == 404
    assert ask(server, f"/{server.token}/delete", "POST", {})[0] == 404
    assert ask(server, f"/{server.token}/state", "PUT", {})[0] == 501


def test_every_answer_forbids_frames_caches_and_other_sources(server: LabelServer) -> None:
    line = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
    line.request("GET", f"/{server.token}/")
    answer = line.getresponse()
    answer.read()
    line.close()
    assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Access-Control-Allow-Origin"] is None
    assert "Python" not in answer.headers["Server"]


def test_no_other_machine_can_reach_it(server: LabelServer) -> None:
    assert server.server_address[0] == "127.0.0.1"


def test_for_reading_only_nothing_is_written(tmp_path: Path) -> None:
    folder = queue_folder(tmp_path / "labels")
    with served(folder, read_only=True) as server:
        assert label(server)[0] == 403
        assert ask(server, f"/{server.token}/state")[0] == 200
    assert not (folder / "labels.csv").exists()


def test_skipped_and_answered_nodes_do_not_come_again_and_undo_brings_one_back(server: LabelServer) -> None:
    session = server.session
    names = []
    for action in ("label", "skip", "label"):
        state = session.state()
        names.append(state["card"]["node"])
        session.act(action, names[-1], state["number"], "oak")  # type: ignore[arg-type]
    state = session.act("undo", None, session.state()["number"])
    assert state["card"]["node"] == names[2]
    assert state["last"] == [names[1], "skip", ""]
    assert not {names[0], names[1]} & set(state["queue"])


def test_a_node_that_is_taken_back_after_a_fit_is_asked_about_again(server: LabelServer) -> None:
    session = server.session
    state = session.state()
    node = state["card"]["node"]
    state = session.act("label", node, 0, "oak")
    cards = [card(f"m{number}", number) for number in range(5)]
    new = {"classes": ["oak"], "cards": cards, "notes": [], "strategy": "error"}
    write_queue(session.folder, new, {"answers": 1, "labels": 11, "accuracy": None, "low": None, "high": None})
    session.load()
    assert session.state()["card"]["node"] == "m0"
    state = session.act("undo", None, 1)
    assert state["queue"][:2] == [node, "m0"]
    assert session.act("label", node, 2, "ash")["card"]["node"] == "m0"
