"""Serve the labelling page on 127.0.0.1 under a secret address."""

import json
import secrets
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from bangs.errors import BangsError, InvalidInput
from bangs.labelling.session import Refused, Session, Stale
from bangs.report.page import asset, environment

HOST = "127.0.0.1"
MAX_BODY_BYTES = 4096  # of a request
IDLE_SECONDS = 30.0  # after which a silent connection is closed
HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
}


class RefusedRequest(Exception):
    """A request that is answered with a status and a message only."""

    def __init__(self, status: HTTPStatus, message: str):
        super().__init__(message)
        self.status = status


class LabelServer(ThreadingHTTPServer):
    """Serves one session under a random address; requests from other pages and machines are refused."""

    daemon_threads = True
    allow_reuse_address = False  # two servers never share a port

    def __init__(self, session: Session, name: str, port: int = 0):
        self.session, self.name = session, name  # of the graph
        self.token = secrets.token_urlsafe(24)
        try:
            super().__init__((HOST, port), _Handler)
        except OSError as error:
            raise InvalidInput(
                f"port {port} cannot be used ({error.strerror or error}); leave --port out, and a free one is found"
            ) from error

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.server_port}/{self.token}/"

    @property
    def hosts(self) -> tuple[str, ...]:
        """The values of the Host header that browsers send for this address."""
        return (f"{HOST}:{self.server_port}", f"localhost:{self.server_port}")

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors of a page that was closed during a response."""


class _Handler(BaseHTTPRequestHandler):
    server: LabelServer
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "bangs", ""
    timeout = IDLE_SECONDS
    wbufsize = 1 << 16  # sends headers and body together; otherwise the body waits 40 ms for an acknowledgement

    def do_GET(self) -> None:
        self._answered(self._get)

    def do_POST(self) -> None:
        self._answered(self._post)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: the address is secret, and answers are private."""

    def _answered(self, work: Callable[[str], tuple[str, bytes]]) -> None:
        try:
            kind, body = work(self._path())
            self._send(HTTPStatus.OK, kind, body)
        except RefusedRequest as error:
            self.close_connection = True  # the rest of a refused body is not the next request
            self._send(error.status, "text/plain; charset=utf-8", f"{error}\n".encode())
        except Stale as error:
            self._json(HTTPStatus.CONFLICT, {"error": str(error), "state": self.server.session.state()})
        except Refused as error:
            self._json(HTTPStatus.FORBIDDEN, {"error": str(error), "state": self.server.session.state()})
        except InvalidInput as error:
            self._json(HTTPStatus.UNPROCESSABLE_ENTITY, {"error": str(error)})
        except BangsError as error:
            self._json(HTTPStatus.INTERNAL_SERVER_ERROR, {"error": str(error)})

    def _path(self) -> str:
        """The path after the token; raises unless the request comes from the page itself."""
        if self.headers.get("Host", "").lower() not in self.server.hosts:
            raise RefusedRequest(HTTPStatus.MISDIRECTED_REQUEST, "this server answers to its own address only")
        token, _, path = urlsplit(self.path).path.removeprefix("/").partition("/")
        if not secrets.compare_digest(token.encode(), self.server.token.encode()):
            raise RefusedRequest(HTTPStatus.FORBIDDEN, "wrong address; copy it from the terminal")
        origin = self.headers.get("Origin")
        origins = {f"http://{host}" for host in self.server.hosts}
        foreign = (origin is not None or self.command == "POST") and origin not in origins
        if foreign or self.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
            raise RefusedRequest(HTTPStatus.FORBIDDEN, "requests of other pages are refused")
        return path

    def _get(self, path: str) -> tuple[str, bytes]:
        if path == "":
            return "text/html; charset=utf-8", _page(self.server.name).encode()
        if path == "state":
            return "application/json", json.dumps(self.server.session.state()).encode()
        raise RefusedRequest(HTTPStatus.NOT_FOUND, "there is no such page")

    def _post(self, path: str) -> tuple[str, bytes]:
        if path not in ("label", "skip", "undo"):
            raise RefusedRequest(HTTPStatus.NOT_FOUND, "there is no such page")
        body = self._body()
        number, node, label = body.get("number"), body.get("node"), body.get("label", "")
        valid = isinstance(number, int) and isinstance(label, str) and (node is None or isinstance(node, str))
        if not valid or body.keys() - {"number", "node", "label"}:
            raise RefusedRequest(HTTPStatus.BAD_REQUEST, "an answer has a number, a node and a label")
        state = self.server.session.act(path, node, number, label)  # type: ignore[arg-type]
        return "application/json", json.dumps(state).encode()

    def _body(self) -> dict[str, Any]:
        if self.headers.get_content_type() != "application/json":
            raise RefusedRequest(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "answers are JSON")
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or self.headers.get("Transfer-Encoding") is not None:
            raise RefusedRequest(HTTPStatus.LENGTH_REQUIRED, "an answer says how long it is")
        if len(length) > 9 or int(length) > MAX_BODY_BYTES:
            raise RefusedRequest(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"an answer has at most {MAX_BODY_BYTES} bytes")
        try:
            body = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict):
            raise RefusedRequest(HTTPStatus.BAD_REQUEST, "an answer is one JSON object")
        return body

    def _json(self, status: HTTPStatus, body: dict[str, Any]) -> None:
        self._send(status, "application/json", json.dumps(body).encode())

    def _send(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(status)
        for name, value in {**HEADERS, "Content-Type": kind, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)


def _page(name: str) -> str:
    """The HTML of the page for the graph `name`, in the style of the report."""
    style = asset("page.css") + asset("label.css", "bangs.labelling")
    script = asset("elements.js") + asset("label.js", "bangs.labelling")
    template = environment("bangs.labelling").get_template("label.html")
    page: str = template.render(facts={"name": name, "classes": []}, style=style, script=script)
    return page
