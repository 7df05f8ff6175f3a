"""At stake: a request goes to the address that was named, by the proxy that was named, and can always be broken off."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from agentctl.worker_programs.plain_model.break_off import BreakOff, Interrupted
from agentctl.worker_programs.plain_model.model.transport import (
    BadAddress,
    BrokenOffAnswer,
    CannotConnect,
    HttpAnswer,
)

#: What may come again and again before an answer begins.
_BEGINNINGS = {"continues": b"HTTP/1.1 100 Continue\r\n\r\n", "drips": b"H"}

#: The heads of answers behind which their connection has no other one.
_LAST_ONES = {"old": b"HTTP/1.0 200 OK", "close": b"HTTP/1.1 200 OK\r\nConnection: close"}


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.seen: list[tuple[str, dict[str, str]]] = []
        self.leave = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that leave."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.seen.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
        kind = self.path.rpartition("/")[2]
        if kind == "mute":
            self.server.leave.wait(60)
            return
        if kind in _BEGINNINGS:
            self.close_connection = True
            while not self.server.leave.wait(0.01):
                self.wfile.write(_BEGINNINGS[kind])
            return
        if kind in _LAST_ONES:
            self.close_connection = True
            self.wfile.write(_LAST_ONES[kind] + b"\r\n\r\nhello")
            self.connection.recv(1)
            self.server.leave.set()
            return
        self.send_response(302 if kind == "moved" else 200)
        if kind == "moved":
            self.send_header("Location", f"{self.server.url}/elsewhere")
        if kind == "cut":
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"5\r\nhello\r\n")
            self.close_connection = True
            return
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Server]:
    """A server, and no proxy in the environment."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    with _Server() as serving:
        threading.Thread(target=serving.serve_forever, args=(0.02,), daemon=True).start()
        yield serving
        serving.leave.set()
        serving.shutdown()


def ask(url: str, breaker: BreakOff | None = None, answer_s: float = 20) -> tuple[int, bytes]:
    with HttpAnswer(url, {"Authorization": "Bearer secret"}, b"{}", breaker or BreakOff(), answer_s) as answer:
        return answer.status, b"".join(answer.chunks())


def test_a_redirect_is_not_followed(server: _Server) -> None:
    assert ask(f"{server.url}/moved")[0] == 302
    assert [path for path, _ in server.seen] == ["/moved"]


def test_a_proxy_is_asked_with_its_login(server: _Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", server.url.replace("//", "//me:p%40ss@"))
    assert ask("http://models.invalid:81/v1/x") == (200, b"hello")
    ((path, headers),) = server.seen
    assert path == "http://models.invalid:81/v1/x"
    assert headers["proxy-authorization"] == "Basic bWU6cEBzcw=="
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    ask(f"{server.url}/x")
    assert "proxy-authorization" not in server.seen[-1][1]


def test_a_proxy_of_another_kind_is_an_error_and_no_detour(server: _Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("all_proxy", "socks5://127.0.0.1:1")
    with pytest.raises(CannotConnect, match="socks5"):
        ask(f"{server.url}/x")
    assert server.seen == []


def test_nobody_there(server: _Server) -> None:
    with pytest.raises(CannotConnect, match="refused"):
        ask("http://127.0.0.1:9/v1")


def test_a_body_that_ends_too_early(server: _Server) -> None:
    with pytest.raises(BrokenOffAnswer):
        ask(f"{server.url}/cut")


def test_silence_has_an_end(server: _Server) -> None:
    with pytest.raises(BrokenOffAnswer, match="no word came in time"):
        ask(f"{server.url}/mute", answer_s=0.05)


def test_it_is_broken_off_while_it_waits(server: _Server) -> None:
    breaker = BreakOff()
    caught: list[BaseException] = []

    def run() -> None:
        try:
            ask(f"{server.url}/mute", breaker)
        except Interrupted as error:
            caught.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    while not server.seen:
        thread.join(0.01)
    breaker.trip()
    thread.join(10)
    assert len(caught) == 1


@pytest.mark.parametrize("kind", ["continues", "drips"])
def test_a_beginning_without_end_has_an_end(server: _Server, kind: str) -> None:
    with pytest.raises(BrokenOffAnswer, match="no word came in time"):
        ask(f"{server.url}/{kind}", answer_s=1)


@pytest.mark.parametrize("kind", _LAST_ONES)
def test_the_last_answer_of_a_connection_is_broken_off_and_left(server: _Server, kind: str) -> None:
    breaker = BreakOff()
    with HttpAnswer(f"{server.url}/{kind}", {}, b"{}", breaker, 20) as answer:
        chunks = answer.chunks()
        assert next(chunks) == b"hello"
        breaker.trip()
        with pytest.raises(Interrupted):
            next(chunks)
        assert server.leave.wait(10)


@pytest.mark.parametrize(
    ("url", "proxy"),
    [("http://a..b/v1", ""), ("http://127.0.0.1:9/\xe4", ""), ("http://h/v1", "http://h:80x"), ("http://h/v1", "a..b")],
)
def test_an_address_that_is_none_is_told_as_such(
    server: _Server, monkeypatch: pytest.MonkeyPatch, url: str, proxy: str
) -> None:
    monkeypatch.setenv("http_proxy", proxy)
    with pytest.raises(BadAddress):
        ask(url.replace("127.0.0.1:9", server.url.removeprefix("http://")))


def test_nothing_is_stopped_that_has_ended() -> None:
    """What a stop would close or signal may be somebody else's by then."""
    breaker, is_stopping, has_begun, go_on = BreakOff(), threading.Event(), threading.Event(), threading.Event()
    order: list[str] = []

    def leave() -> None:
        with breaker.stopping(lambda: order.append("stopped")):
            has_begun.set()
            is_stopping.wait(10)
        order.append("ended")
        go_on.set()

    def stop() -> None:
        is_stopping.set()
        go_on.wait(0.2)

    leaving = threading.Thread(target=leave)
    with breaker.stopping(stop):
        leaving.start()
        assert has_begun.wait(10)
        breaker.trip()
    leaving.join(10)
    assert order == ["stopped", "ended"]
