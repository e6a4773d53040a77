"""Drive a headless Chromium by the DevTools protocol over a pipe, which needs no additional package."""

import base64
import itertools
import json
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
WAIT_S = 60.0
REPORT_READY = "document.body && document.body.dataset.ready === 'true'"


class Page:
    """A tab, whose console messages and page errors are collected in `complaints`."""

    def __init__(self, process: subprocess.Popen[bytes], write: int, read: int) -> None:
        self._process, self._write, self._read = process, write, read
        self._numbers, self._rest, self._session = itertools.count(1), b"", None
        self.complaints: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its result."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return dict(answer["result"])

    def open(
        self, file: Path, width: int = 1280, height: int = 900, dark: bool = False, ready: str = REPORT_READY
    ) -> None:
        """Open a page from file:// and wait until `ready` is true, by default until a report is ready."""
        mobile = width < 500
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=mobile,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url=file.resolve().as_uri())
        self.wait(ready)

    def picture(self, target: Path, width: int, height: int) -> None:
        """Write a PNG picture of the page's top left corner."""
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        shot = self.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
        target.write_bytes(base64.b64decode(shot["data"]))

    def js(self, expression: str) -> Any:
        """Return the value of an expression, after awaiting promises."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(f"{expression}: {found['exceptionDetails']}")
        return found["result"].get("value")

    def wait(self, expression: str) -> None:
        """Wait until an expression is true."""
        until = time.monotonic() + WAIT_S
        while not self.js(expression):
            if time.monotonic() > until:
                raise TimeoutError(f"never: {expression}; {self.complaints}")
            time.sleep(0.02)

    def key(self, key: str) -> None:
        """Press and release a key."""
        text = {"text": key} if len(key) == 1 else {}
        codes = {"ArrowLeft": 37, "ArrowRight": 39, "Home": 36, "End": 35, "Escape": 27, "Tab": 9, " ": 32}
        code = codes.get(key, ord(key.upper()[0]))
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **text)

    def click(self, x: float, y: float) -> None:
        """Click at a point of the viewport."""
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def cpu_s(self) -> float:
        """Return the CPU time in s of all of the browser's processes, which other load does not affect."""
        ticks = 0
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):
                fields = stat.read_text().rpartition(")")[2].split()
                if int(fields[3]) == self._process.pid:  # processes in the browser's session
                    ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def _next(self) -> dict[str, Any]:
        until = time.monotonic() + WAIT_S
        while b"\0" not in self._rest:
            if not select.select([self._read], [], [], max(0.0, until - time.monotonic()))[0]:
                raise TimeoutError("Chromium does not answer")
            data = os.read(self._read, 1 << 20)
            if not data:
                raise RuntimeError("Chromium has ended")
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        about = message.get("params", {})
        match message.get("method"):
            case "Runtime.exceptionThrown":
                self.complaints.append(str(about["exceptionDetails"]))
            case "Runtime.consoleAPICalled" if about["type"] in ("error", "warning"):
                self.complaints.append(str(about["args"]))
            case "Log.entryAdded" if about["entry"]["level"] in ("error", "warning"):
                self.complaints.append(str(about["entry"]["text"]))
        return message


@contextmanager
def browser() -> Iterator[Page]:
    """Start Chromium with a fresh profile, and end it with all its processes."""
    assert PROGRAM is not None
    commands, from_us = os.pipe()
    to_us, answers = os.pipe()

    def as_chromium_expects() -> None:  # Chromium reads commands from file descriptor 3 and writes to 4
        os.dup2(commands, 10)
        os.dup2(answers, 11)
        os.dup2(10, 3)
        os.dup2(11, 4)

    with TemporaryDirectory(prefix="edgefl-chromium-", ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [
                PROGRAM,
                *(
                    "--headless=new",
                    "--no-sandbox",
                    "--disable-gpu",
                    "--no-first-run",
                    "--disable-extensions",
                ),
                *("--disable-dev-shm-usage", "--hide-scrollbars", "--disable-background-networking"),
                *("--remote-debugging-pipe", f"--user-data-dir={profile}"),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            close_fds=False,
            preexec_fn=as_chromium_expects,
            start_new_session=True,
        )
        try:
            yield Page(process, from_us, to_us)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            for end in (commands, from_us, to_us, answers):
                os.close(end)
