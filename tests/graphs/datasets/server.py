"""A web server on localhost that can be made to fail."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Server:
    """Files by path, and how to fail: the first `breaks` answers end after `after` bytes."""

    files: dict[str, bytes] = field(default_factory=dict)
    status: int = 200  # anything else is answered without a file
    breaks: int = 0
    after: int = 0
    length: bool = True  # whether Content-Length is sent
    requests: list[str] = field(default_factory=list)  # the path of each request
    url: str = ""


@contextmanager
def serving(server: Server) -> Iterator[Server]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            server.requests.append(self.path)
            content = server.files.get(self.path.lstrip("/"))
            if server.status != 200 or content is None:
                self.send_error(404 if server.status == 200 else server.status)
                return
            self.send_response(200)
            if server.length:
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            complete = server.breaks == 0
            server.breaks -= not complete
            self.wfile.write(content if complete else content[: server.after])
            self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    web = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=web.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    server.url = f"http://127.0.0.1:{web.server_address[1]}"
    try:
        yield server
    finally:
        web.shutdown()
        web.server_close()
        thread.join()
