"""The labelling page in a real browser: by keyboard alone, with crashes, two tabs and hostile pages."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.labelling.folders import (
    HOSTILE,
    Command,
    answers_in,
    queue_folder,
    served,
    small_graph,
    truth_of,
    wait_for,
)
from tests.report.browser import CHROMIUM, Browser, browser

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here; `make browser` installs Debian's")

NODE = "document.querySelector('#node').textContent"
LAST = "document.querySelector('#last').textContent"
READY = "document.querySelectorAll('#classes button').length > 0"


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as made:
        yield made


def shown(tab: Browser, address: str, **window: int | bool) -> str:
    """Open the page; the node it asks about."""
    tab.open(address, **window)  # type: ignore[arg-type]
    wait_for(lambda: tab.js(READY))
    return str(tab.js(NODE))


def press(tab: Browser, key: str) -> str:
    """Press a key that answers; the node that is asked about then."""
    before = tab.js(NODE)
    tab.press(key)
    return str(wait_for(lambda: (now := tab.js(NODE)) != before and now))


def test_thirty_nodes_are_labelled_by_keyboard(tab: Browser, tmp_path: Path) -> None:
    folder = queue_folder(tmp_path / "labels")
    with served(folder) as server:
        nodes = [shown(tab, server.address)]
        for number in range(30):
            nodes.append(press(tab, str(number % 3 + 1)))
        assert answers_in(folder) == [
            (name, "label", ("ash", "oak", "yew")[i % 3]) for i, name in enumerate(nodes[:30])
        ]
        assert len(set(nodes)) == 31
        assert tab.errors == []


def test_undo_skip_and_a_new_class_by_typing(tab: Browser, tmp_path: Path) -> None:
    folder = queue_folder(tmp_path / "labels")
    with served(folder) as server:
        first = shown(tab, server.address)
        second = press(tab, "2")
        assert tab.js(LAST) == f"\u2068{first}\u2069 is  oak."
        assert press(tab, "u") == first
        assert press(tab, "s") == second
        tab.press("n")
        assert tab.js("document.activeElement.id") == "other"
        for letter in "elm 2":  # digits and letters in the field are no answers
            tab.press(letter)
        third = press(tab, "Enter")
        assert third not in (first, second)
        assert tab.js("[...document.querySelectorAll('#classes button')].map((b) => b.title)")[-1] == "elm 2"
        press(tab, "4")
        assert answers_in(folder) == [
            (first, "label", "oak"),
            (first, "undo", ""),
            (first, "skip", ""),
            (second, "label", "elm 2"),
            (third, "label", "elm 2"),
        ]


def test_names_and_cells_are_shown_and_never_run(tab: Browser, tmp_path: Path) -> None:
    with served(queue_folder(tmp_path / "labels")) as server:
        assert shown(tab, server.address) == HOSTILE
        assert HOSTILE in tab.js("document.querySelector('#row').textContent")
        assert tab.js("document.images.length") == 0
        assert tab.errors == []
        assert {url.split("?")[0] for url in tab.requests} <= {server.address, f"{server.address}state", "data:,"}


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1280, 800, 390])
def test_it_fits_every_screen_light_and_dark(tab: Browser, tmp_path: Path, width: int, dark: bool) -> None:
    with served(queue_folder(tmp_path / "labels")) as server:
        shown(tab, server.address, width=width, dark=dark)
        assert tab.errors == []
        assert tab.js("document.documentElement.scrollWidth") <= width
        assert tab.js("getComputedStyle(document.body).backgroundColor") == (
            "rgb(20, 22, 26)" if dark else "rgb(246, 245, 242)"
        )
        boxes = tab.js("[...document.querySelectorAll('#ask button')].map((b) => b.getBoundingClientRect().height)")
        assert min(boxes) >= 44, "a finger finds every button"
        too_wide = tab.js(
            "[...document.querySelectorAll('main *')].filter((e) => e.getBoundingClientRect().right > innerWidth + 1)"
            ".map((e) => e.outerHTML.slice(0, 80))"
        )
        assert too_wide == []


def test_a_reload_in_the_middle_shows_the_same_node(tab: Browser, tmp_path: Path) -> None:
    with served(queue_folder(tmp_path / "labels")) as server:
        shown(tab, server.address)
        press(tab, "1")
        now = press(tab, "2")
        assert shown(tab, server.address) == now


def test_two_tabs_do_not_answer_twice(tab: Browser, tmp_path: Path) -> None:
    folder = queue_folder(tmp_path / "labels")
    with served(folder) as server, browser(tmp_path / "other") as other:
        first = shown(tab, server.address)
        assert shown(other, server.address) == first
        other.js("window.fetch = ((real) => (url, ...rest) => String(url).endsWith('state') ? new Promise(() => {})"
                 " : real(url, ...rest))(window.fetch)")  # this tab gets no updates  # fmt: skip
        second = press(tab, "1")
        assert press(other, "3") == second
        assert "another page has gone on" in other.js("document.querySelector('#notice').textContent")
        assert answers_in(folder) == [(first, "label", "ash")]
        press(other, "3")
        assert answers_in(folder)[-1] == (second, "label", "yew")
        assert wait_for(lambda: tab.js(NODE) != second)


def test_a_page_for_reading_answers_nothing(tab: Browser, tmp_path: Path) -> None:
    folder = queue_folder(tmp_path / "labels")
    with served(folder, read_only=True) as server:
        first = shown(tab, server.address)
        tab.press("1")
        tab.press("s")
        assert tab.js("document.querySelector('#status').textContent") == "reading only"
        assert tab.js("[...document.querySelectorAll('#answers button')].every((b) => b.disabled)")
        assert tab.js(NODE) == first
    assert not (folder / "labels.csv").exists()


def test_a_wrong_token_shows_no_page(tab: Browser, tmp_path: Path) -> None:
    with served(queue_folder(tmp_path / "labels")) as server:
        tab.open(server.address.replace(server.token, "x" * len(server.token)))
        assert "wrong address" in tab.js("document.body.textContent")
        assert tab.js("document.querySelector('#ask')") is None


def test_a_page_from_another_origin_cannot_post(tab: Browser, tmp_path: Path) -> None:
    """Even one that has learned the address."""
    folder = queue_folder(tmp_path / "labels")

    class Evil(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>evil</title><body>")

        def log_message(self, *args: object) -> None: ...

    evil = ThreadingHTTPServer(("127.0.0.1", 0), Evil)
    threading.Thread(target=evil.serve_forever, daemon=True).start()
    try:
        with served(folder) as server:
            tab.open(f"http://127.0.0.1:{evil.server_address[1]}/")
            node = server.session.state()["card"]["node"]
            tab.js(f"window.words = JSON.stringify({{number: 0, node: {node!r}, label: 'oak'}})")
            ways = [
                "{method: 'POST', headers: {'Content-Type': 'application/json'}, body: words}",
                "{method: 'POST', mode: 'no-cors', body: words}",
                "{method: 'POST', mode: 'no-cors', headers: {'Content-Type': 'text/plain'}, body: words}",
            ]
            for way in ways:
                tab.js(f"fetch('{server.address}label', {way}).then(() => 1, () => 0)")
            response = tab.js(f"fetch('{server.address}state').then((a) => a.text(), () => 'refused')")
            assert response == "refused"
            tab.js(
                f"{{ const f = document.createElement('form'); f.method = 'post'; f.action = '{server.address}label';"
                " const i = document.createElement('input'); i.name = words; f.append(i); document.body.append(f);"
                " f.submit(); }"
            )
            wait_for(lambda: tab.js("document.readyState") == "complete")
            tab.js(
                f"document.body.append(Object.assign(document.createElement('iframe'), {{src: '{server.address}'}}))"
            )
            assert answers_in(folder) == []
            assert server.session.state()["number"] == 0
    finally:
        evil.shutdown()
        evil.server_close()


@pytest.mark.slow
def test_a_fit_is_shown_and_a_kill_in_the_middle_loses_nothing(tab: Browser, tmp_path: Path) -> None:
    graph, out = small_graph(tmp_path / "graph"), tmp_path / "out"
    words = ("--batch=4", "--time-limit=1")

    def answer() -> str:
        name = str(tab.js(NODE))
        titles = tab.js("[...document.querySelectorAll('#classes button')].map((b) => b.title)")
        press(tab, str(titles.index(truth_of(name)) + 1))
        return name

    with Command(graph, out, *words) as first:
        tab.open(first.address)
        wait_for(lambda: tab.js(READY))
        assert tab.js("document.querySelectorAll('#curve .fit').length") == 1
        assert "a" in tab.js("document.querySelector('#row').textContent")
        answered = [answer() for _ in range(5)]
        wait_for(lambda: tab.js("document.querySelectorAll('#curve .fit').length") == 2)
        answered.append(answer())
        first.process.kill()
    assert [name for name, _, _ in answers_in(out)] == answered
    with Command(graph, out, *words) as second:
        tab.open(second.address)
        wait_for(lambda: tab.js(READY))
        assert tab.js(NODE) not in answered
        answered.append(answer())
        second.process.send_signal(2)
        assert second.process.wait(60) == 0
    assert [name for name, _, _ in answers_in(out)] == answered
    assert len(set(answered)) == 7
