"""The server of the root of a test, as a real process, and what anybody with its token can ask it."""

from __future__ import annotations

import json
import os
import signal
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from agentctl.adapters.taskdir import Root
from agentctl.interfaces.web.root_server import link_to
from tests.support import start, wait_until


class Site:
    """A server that a test starts, kills and starts again."""

    def __init__(self, folder: Path, *options: str) -> None:
        self._said = folder / "serve.log"
        self._options = options
        self.url = self.link = self.token = ""
        self.process = self._start(0)

    def _start(self, port: int | None) -> Any:
        where = [] if port is None else ["--port", str(port)]
        with self._said.open("a", encoding="utf-8") as said:
            process = start("serve", *where, "--json", *self._options, stderr=said.fileno())
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, self._said.read_text(encoding="utf-8")
        told = json.loads(line)
        self.url, self.link = told["url"], told["link"]
        self.token = Path(told["tokenFile"]).read_text(encoding="utf-8").strip()
        return process

    def new_link(self, path: str = "/") -> str:
        """Return a link to a path of the page, as `serve --link` makes one."""
        return link_to(Root(os.environ["AGENTCTL_ROOT"]))[1].replace("/#", f"{path}#", 1)

    @property
    def port(self) -> int:
        """Where it listens."""
        port = urlsplit(self.url).port
        assert port is not None
        return port

    def kill(self) -> None:
        """SIGKILL the server."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(20)

    def again(self, *options: str) -> None:
        """Start it again, on the same port."""
        self._options = (*self._options, *options)
        self.process = self._start(self.port)

    def again_wherever(self) -> None:
        """Start it again, where it goes by itself."""
        self.process = self._start(None)

    def stop(self) -> None:
        """End it as Ctrl-C does; it may be gone already."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(20)

    def ask(self, path: str, body: Any = None) -> Any:
        """Return what the interface answers to somebody with the token; of an error its problem document."""
        request = urllib.request.Request(f"{self.url}/api/v1{path}", headers={"Authorization": f"Bearer {self.token}"})
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            with error:
                return json.loads(error.read())

    def knows(self, instance: str, status: str, task: str = "t1") -> None:
        """Wait until it tells that a worker has a status."""
        wait_until(
            lambda: {row["agentInstance"]: row["status"] for row in self.ask(f"/tasks/{task}")["workers"]},
            accept=lambda found: found.get(instance) == status,
            what=f"{instance} to be {status}",
        )


def root_folder() -> Path:
    """Return the folder with the root of this test."""
    return Path(os.environ["AGENTCTL_ROOT"]).parent
