"""A headless Chromium driven over two pipes: no driver, no network, nothing to install but the browser."""

import base64
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)


class Browser:
    """One tab, driven by the DevTools protocol: JSON texts that end in a zero byte."""

    def __init__(self, profile: Path):
        down, up = os.pipe(), os.pipe()
        self.errors: list[str] = []
        self.requests: list[str] = []
        self._write, self._read = down[1], up[0]
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe"]
        flags += ["--no-first-run", "--disable-background-networking", f"--user-data-dir={profile}", "about:blank"]

        def wire() -> None:
            # Chromium listens on descriptor 3 and answers on 4
            here, there = os.dup(down[0]), os.dup(up[1])
            os.dup2(here, 3)
            os.dup2(there, 4)

        self.process = subprocess.Popen(
            [str(CHROMIUM), *flags],
            preexec_fn=wire,
            close_fds=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(down[0])
        os.close(up[1])
        self._buffer, self._count, self._session = b"", 0, None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Ask, and wait for the answer; events that come before it are noted."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + 60
        while True:
            answer = self._next(deadline)
            if answer.get("id") == self._count:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return dict(answer["result"])
            self._note(answer)

    def open(self, page: Path | str, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        """Load a file or an address, and wait until it has drawn itself."""
        self.errors.clear()
        self.requests.clear()
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=scheme)
        mobile = width < 600
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)
        self.call("Page.navigate", url=page if isinstance(page, str) else page.resolve().as_uri())
        deadline = time.monotonic() + 30
        while self.js("document.readyState") != "complete" and time.monotonic() < deadline:
            time.sleep(0.05)
        self.js("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50)))")

    def js(self, expression: str) -> Any:
        """The value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def mouse(self, kind: str, x: float, y: float) -> None:
        """`move`, or `click`, at a point of the window."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        if kind == "click":
            for step in ("mousePressed", "mouseReleased"):
                self.call("Input.dispatchMouseEvent", type=step, x=x, y=y, button="left", clickCount=1)

    def press(self, key: str) -> None:
        """A key of the keyboard, such as Tab, Enter, ArrowDown or a letter."""
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowDown": 40}
        more = {"text": "\r" if key == "Enter" else key} if len(key) == 1 or key == "Enter" else {}
        code = {"windowsVirtualKeyCode": codes[key]} if key in codes else {}
        for step in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=step, key=key, **code, **(more if step == "keyDown" else {}))

    def screenshot(self, path: Path, **clip: float) -> None:
        """A picture of the window, or of a part of the page (x, y, width, height)."""
        more = {"clip": {**clip, "scale": 1}, "captureBeyondViewport": True} if clip else {}
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png", **more)["data"]))

    def close(self) -> None:
        self._session = None
        with suppress(Exception):
            self.call("Browser.close")
        for pipe in (self._write, self._read):
            os.close(pipe)
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(10)
        if self.process.poll() is None:
            self.process.kill()

    def _next(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(0.0, deadline - time.monotonic()))
            part = os.read(self._read, 1 << 16) if ready else b""
            if not part:
                raise RuntimeError("Chromium does not answer")
            self._buffer += part
        line, self._buffer = self._buffer.split(b"\0", 1)
        return dict(json.loads(line))

    def _note(self, event: dict[str, Any]) -> None:
        kind, facts = event.get("method"), event.get("params", {})
        if kind == "Runtime.exceptionThrown":
            self.errors.append(str(facts["exceptionDetails"].get("exception", facts["exceptionDetails"])))
        elif kind == "Runtime.consoleAPICalled" and facts["type"] in ("error", "warning"):
            self.errors.append(str(facts["args"]))
        elif kind == "Log.entryAdded" and facts["entry"]["level"] in ("error", "warning"):
            self.errors.append(facts["entry"]["text"])
        elif kind == "Network.requestWillBeSent":
            self.requests.append(facts["request"]["url"])


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    made = Browser(profile)
    try:
        yield made
    finally:
        made.close()
