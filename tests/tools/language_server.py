"""Drive npm's YAML language server as an editor does, by JSON-RPC over its standard input and output.

VS Code, Neovim and other editors complete and check YAML with this server. `make editor` installs it below .venv;
a server on the PATH can be used too.
"""

import itertools
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NODE = shutil.which("node")
PROGRAM = shutil.which("yaml-language-server") or shutil.which(
    "yaml-language-server", path=str(Path(sys.prefix) / "editor/node_modules/.bin")
)
WAIT_S = 60.0
# the server fetches no schemas, as the modeline of a file names its schema
SETTINGS = {"validate": True, "completion": True, "hover": True, "schemaStore": {"enable": False}}


class Server:
    """A running language server, which receives documents as if they were an editor's buffers, saved or not."""

    def __init__(self, process: subprocess.Popen[bytes], root: Path) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._in, self._out, self._rest = process.stdin, process.stdout.fileno(), b""
        self._numbers = itertools.count(1)
        self._answers: dict[int, Any] = {}
        self._found: dict[str, list[dict[str, Any]]] = {}
        folder = {"uri": root.as_uri(), "name": root.name}
        completion = {"completionItem": {"snippetSupport": True}}
        self._call(
            "initialize",
            processId=os.getpid(),
            rootUri=root.as_uri(),
            workspaceFolders=[folder],
            capabilities={
                "textDocument": {"completion": completion, "hover": {"contentFormat": ["markdown"]}},
                "workspace": {"configuration": True},
            },
        )
        self._send(method="initialized", params={})

    def complaints(self, file: Path, text: str) -> list[tuple[int, str]]:
        """Return the diagnostics of a file with this text: line (from 1) and message."""
        with self._opened(file, text) as uri:
            found = self._until(lambda: self._found.get(uri))
        return [(each["range"]["start"]["line"] + 1, str(each["message"])) for each in found]

    def completions(self, file: Path, text: str) -> list[str]:
        """Return the completions at the mark | in the text."""
        before, _, after = text.partition("|")
        with self._opened(file, before + after) as uri:
            found = self._call("textDocument/completion", **_at(uri, before))
        return [each["label"] for each in (found["items"] if isinstance(found, dict) else found)]

    def hover(self, file: Path, text: str) -> str:
        """Return the hover text of the word at the mark | in the text."""
        before, _, after = text.partition("|")
        with self._opened(file, before + after) as uri:
            found = self._call("textDocument/hover", **_at(uri, before))
        return str(found["contents"]["value"])

    @contextmanager
    def _opened(self, file: Path, text: str) -> Iterator[str]:
        # a new name in the same folder, so that diagnostics with this name belong to this text
        uri = file.with_name(f"{file.stem}-{next(self._numbers)}.yaml").as_uri()
        document = {"uri": uri, "languageId": "yaml", "version": 1, "text": text}
        self._send(method="textDocument/didOpen", params={"textDocument": document})
        try:
            yield uri
        finally:
            self._send(method="textDocument/didClose", params={"textDocument": {"uri": uri}})

    def _call(self, method: str, **parameters: Any) -> Any:
        number = next(self._numbers)
        self._send(id=number, method=method, params=parameters)
        answer = self._until(lambda: self._answers.pop(number, None))
        assert "error" not in answer, answer
        return answer["result"]

    def _send(self, **message: Any) -> None:
        content = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._in.write(b"Content-Length: %d\r\n\r\n" % len(content) + content)
        self._in.flush()

    def _until(self, found: Any) -> Any:
        """Read messages until the expected one arrives."""
        end = time.monotonic() + WAIT_S
        while (value := found()) is None:
            self._take(end)
        return value

    def _take(self, end: float) -> None:
        while b"\r\n\r\n" not in self._rest:
            self._read(end)
        head, _, self._rest = self._rest.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split()[0])
        while len(self._rest) < length:
            self._read(end)
        message, self._rest = json.loads(self._rest[:length]), self._rest[length:]
        if "method" not in message:
            self._answers[message["id"]] = message
        elif message["method"] == "textDocument/publishDiagnostics":
            self._found[message["params"]["uri"]] = message["params"]["diagnostics"]
        elif "id" in message:  # a request to the editor
            asked = message["method"] == "workspace/configuration"
            items = message["params"]["items"] if asked else []
            given = [SETTINGS if item.get("section") == "yaml" else None for item in items]
            self._send(id=message["id"], result=given if asked else None)

    def _read(self, end: float) -> None:
        ready, _, _ = select.select([self._out], [], [], max(0.0, end - time.monotonic()))
        chunk = os.read(self._out, 65536) if ready else b""
        if not chunk:
            raise TimeoutError("the language server does not answer")
        self._rest += chunk


@contextmanager
def language_server(root: Path) -> Iterator[Server]:
    """Start the server for the files of a folder; end it on exit."""
    assert PROGRAM is not None
    process = subprocess.Popen(
        [PROGRAM, "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        yield Server(process, root)
    finally:
        process.kill()
        process.wait()


def _at(uri: str, before: str) -> dict[str, Any]:
    line = before.count("\n")
    return {
        "textDocument": {"uri": uri},
        "position": {"line": line, "character": len(before) - before.rfind("\n") - 1},
    }
