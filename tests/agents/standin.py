"""A stand-in for the models: a server on 127.0.0.1 that speaks the APIs of Anthropic and OpenAI as far as needed.

It has no intelligence: `SCENARIO:name` in the prompt says what it does (`scenarios.py`). It keeps what it was sent,
so that a test sees which model, effort, tools and instructions have really arrived.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from tests.agents.conversation import Request, parse
from tests.agents.scenarios import FOR_EVER_S, Reply, reply_to
from tests.agents.windows import UsageWindow
from tests.agents.wire import ends, error_body, events, has_word, last_lines, lines_of, whole

_APIS = {"/messages": "messages", "/responses": "responses", "/chat/completions": "chat"}
#: What it says to who asks for its models.
MODELS = ("stand-in", "org/stand-in-small")


class StandIn(ThreadingHTTPServer):
    """The server; used as a context, it serves meanwhile."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.requests: list[Request] = []
        #: When each of them began to arrive, on the monotonic clock.
        self.arrivals_ns: list[int] = []
        #: How many events of answers were sent.
        self.words = 0
        #: Requests for something that it does not have.
        self.strays: list[str] = []
        #: What the next requests are answered, one each, before the scenarios have their turn.
        self.first: list[Reply] = []
        #: How much each login has left, by its key or token; whoever is not here has no end.
        self.windows: dict[str, UsageWindow] = {}
        self.closing = threading.Event()
        self._thread = threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_port}"

    def __enter__(self) -> Self:
        """Begin to serve."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of whoever still waits for words."""
        self.closing.set()
        self.shutdown()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a client that leaves in the middle of an answer is what many tests are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: StandIn
    #: The window that the answered request was taken from, and by which API.
    window: UsageWindow | None = None
    api = ""

    def do_HEAD(self) -> None:
        self._answer(200, {})

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        # Codex asks for another kind of list, and names its version.
        if path.endswith("/models") and "client_version" not in query:
            self._answer(200, {"object": "list", "data": [{"id": name, "object": "model"} for name in MODELS]})
            return
        self.server.strays.append(f"GET {self.path}")
        self._answer(404, error_body(404))

    def do_POST(self) -> None:
        now = time.monotonic_ns()
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = self.path.partition("?")[0]
        if path.endswith("/count_tokens"):
            self._answer(200, {"input_tokens": len(body) // 4})
            return
        api = next((api for end, api in _APIS.items() if path.endswith(end)), None)
        if api is None:
            self.server.strays.append(f"POST {path}")
            self._answer(404, error_body(404))
            return
        request = parse(api, json.loads(body))
        self.window = self.server.windows.get(self._login())
        self.api = api
        if self.window is not None and not self.window.take(is_first=not request.results):
            self._answer(429, self.window.refusal(api))
            return
        self.server.arrivals_ns.append(now)
        self.server.requests.append(request)
        self._reply(request, self.server.first.pop(0) if self.server.first else reply_to(request))

    def _login(self) -> str:
        return self.headers.get("x-api-key") or (self.headers.get("Authorization") or "").removeprefix("Bearer ")

    def _reply(self, request: Request, reply: Reply) -> None:
        if reply.error is not None:
            self._answer(reply.error, error_body(reply.error, reply.kind, reply.sentence), reply.headers)
        elif reply.mute:
            self.server.closing.wait(FOR_EVER_S)
            self.close_connection = True
        elif request.stream and not reply.unstreamed:
            self._stream(request, reply)
        elif reply.cut:
            self._head(200, {"Content-Type": "application/json", "Content-Length": "1000"})
            self.wfile.write(json.dumps(whole(request, reply)).encode()[:100])
            self.close_connection = True
        else:
            self._answer(200, whole(request, reply))

    def _stream(self, request: Request, reply: Reply) -> None:
        self._head(200, {"Content-Type": "text/event-stream", "Cache-Control": "no-cache", "Connection": "close"})
        self.close_connection = True
        for event in events(request, reply):
            if reply.cut == "part" and ends(event):
                return
            self.wfile.write(lines_of(request, event))
            self.wfile.flush()
            self.server.words += 1
            if has_word(event) and (reply.cut == "word" or self._pause(reply.pace_s)):
                return
        self.wfile.write(last_lines(request))

    def _pause(self, seconds: float) -> bool:
        """Wait before the next word; True if the server closes meanwhile."""
        return self.server.closing.wait(seconds) if seconds else False

    def _answer(self, status: int, value: Any, headers: Mapping[str, str] | None = None) -> None:
        data = json.dumps(value).encode()
        own = {"Content-Type": "application/json", "Content-Length": str(len(data))}
        self._head(status, own | dict(headers or {}))
        if self.command != "HEAD":
            self.wfile.write(data)

    def _head(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        told = self.window.headers(self.api, is_refused=status == 429) if self.window is not None else {}
        for name, value in (headers | told).items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing on stderr."""


def main() -> None:
    """Serve until interrupted, to try the programs by hand: `python -m tests.agents.standin`."""
    with StandIn() as standin:
        print(standin.url, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
