"""A server on the loopback interface that plays ntfy or a webhook: it keeps what it is told, and answers as told."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

from tests.support import wait_until

HOST = "127.0.0.1"


class Listener:
    """Keeps every message that was posted to it.

    Args:
        port: 0 takes one that is free.
    """

    def __init__(self, port: int = 0) -> None:
        self.posts: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.headers: list[Mapping[str, str]] = []
        #: The status of the next answers, then 200; and more headers of each.
        self.statuses: list[int] = []
        self.more: dict[str, str] = {}
        #: While this is not set, no answer is given.
        self.may_answer = threading.Event()
        self.may_answer.set()
        self._server = ThreadingHTTPServer((HOST, port), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    @property
    def port(self) -> int:
        """Its port."""
        return int(self._server.server_address[1])

    def url(self, path: str = "hook") -> str:
        """Return the URL of a path on it."""
        return f"http://{HOST}:{self.port}/{path}"

    def keys(self) -> list[str]:
        """Return the key of each notice that was told, also of those that were told together."""
        return [key for post in list(self.posts) for key in post.get("ids", [post.get("id")])]

    def told(self, number: int, timeout_s: float = 20) -> list[dict[str, Any]]:
        """Wait until that many messages have come; return them."""
        wait_until(lambda: list(self.posts), timeout_s, f"{number} messages", lambda posts: len(posts) >= number)
        return list(self.posts)

    def close(self) -> None:
        """Stop listening; what was kept stays."""
        self.may_answer.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        listener = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                """Show a page with nothing in it, where ntfy shows its own."""
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()

            def do_POST(self) -> None:
                """Keep a message, and answer."""
                data = self.rfile.read(int(self.headers["Content-Length"]))
                status = listener.statuses.pop(0) if listener.statuses else 200
                listener.paths.append(self.path)
                listener.headers.append(dict(self.headers))
                listener.posts.append(json.loads(data))
                listener.may_answer.wait(30)
                try:
                    self.send_response(status)
                    for name, value in listener.more.items():
                        self.send_header(name, value)
                    self.end_headers()
                except OSError:
                    pass  # It did not wait for the answer.

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        return Handler


def configure(home: Path, targets: Mapping[str, Any], **more: Any) -> Path:
    """Write a person's config.yaml with these targets; every one is told always, unless `more` says otherwise."""
    folder = home / ".config" / "agentctl"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = folder / "config.yaml"
    section = {"hosts": [HOST], "targets": dict(targets), "always": list(targets), **more}
    file.write_text(yaml.safe_dump({"notify": section}), encoding="utf-8")
    file.chmod(0o600)
    return file
