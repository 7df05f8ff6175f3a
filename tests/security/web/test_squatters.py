"""At stake: who takes the port of a server, as any user of the machine may, reads nothing and starts nothing by it."""

from __future__ import annotations

import contextlib
import getpass
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentctl.interfaces.web.connections import OTHER_END
from agentctl.interfaces.web.root_server import ListenAddress, Way, _refusing, way_to
from agentctl.operations.where.connecting import Connecting, PeerKind
from tests.squatters import NOBODY, Request, answers_to_another, asked_by_another, needs_root, squatting
from tests.support import run, start_argv
from tests.web.support import API, UNPROVEN, Browser, Server, logged_in, new_task, serving, spawned

pytestmark = [
    pytest.mark.server,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux says who holds a socket"),
]

READS = ["/tasks", "/tasks/t1", "/events?since=start&fleet=true", "/tasks/t1/workers/w/logs/stdout", "/about"]
STARTS: dict[str, Any] = {"argv": ["true"]}


def everything(headers: dict[str, str]) -> list[Request]:
    """Return requests that would read, start, and enter."""
    paths = [f"{API}{path}" for path in READS] + ["/metrics", "/healthz"]
    reads: list[Request] = [("GET", path, headers, None) for path in paths]
    typed = {**headers, "Content-Type": "application/json"}
    writes = (f"{API}/tasks", '{"title": "evil"}'), (f"{API}/tasks/t1/spawn", '{"argv": ["true"]}')
    return [*reads, *(("POST", path, typed, body) for path, body in writes)]


@pytest.fixture
def lived(root: Path) -> Iterator[Server]:
    """Return a server with a task and a worker."""
    with serving(root) as server:
        new_task(server)
        spawned(server, "t1", ["echo", "secret"], name="w")
        yield server


def port_of_last(root: Path) -> int:
    """Have a server of a root run and end; return where it was."""
    with serving(root) as server:
        new_task(server)
        spawned(server, "t1", ["echo", "secret"], name="w")
    return server.port


# -- who has the port --------------------------------------------------------------------------------------------------


@needs_root
def test_who_holds_the_port_is_named_and_the_token_is_a_new_one(root: Path, tmp_path: Path) -> None:
    with serving(root) as server:
        token = server.token
        page = logged_in(server)
    with squatting(server.port, tmp_path) as squatter:
        hint = ""
        for options in ([], ["--port", str(server.port)], ["--url", server.url]):
            refused = run("serve", *options, check=False)
            error, hint = refused.err.splitlines()
            assert refused.code == 1
            assert refused.out == ""
            assert f"port {server.port} of 127.0.0.1: process {squatter.process.pid} (" in error
            assert "squats.py" in error
            assert "of user nobody has it" in error
            assert "the last server of this root was there, so there is a new token now" in error
            assert "agentctl serve --port 0 takes a free one" in hint
        with serving(root, *hint.partition("agentctl serve ")[2].partition(" takes")[0].split()) as again:
            assert again.port != server.port
            assert again.token != token
            assert again.get("/tasks", token=token).status == 401
            assert Browser(again).enter(page.page, page.page_key).status == UNPROVEN
    with serving(root, "--port", str(server.port)) as third:
        assert third.token not in {token, again.token}


@needs_root
def test_a_port_that_was_held_for_a_moment_has_a_new_token(root: Path, tmp_path: Path) -> None:
    with serving(root) as server:
        token = server.token
    with squatting(server.port, tmp_path):
        assert run("serve", check=False).code == 1
    with serving(root, "--port", str(server.port)) as again:
        assert again.token != token


def test_whoever_holds_it_is_named_as_far_as_it_is_known(root: Path) -> None:
    port = port_of_last(root)
    program = f"import socket; s = socket.create_server(('127.0.0.1', {port})); print(flush=True); input()  # \x1b[31m"
    holder = start_argv([sys.executable, "-c", program], stdin=subprocess.PIPE)
    assert holder.stdout is not None
    holder.stdout.readline()
    refused = run("serve", check=False)
    assert f"process {holder.pid} (" in refused.err
    assert f"of user {getpass.getuser()} has it" in refused.err
    assert "\x1b" not in refused.err
    holder.communicate("\n")


def test_a_port_that_nobody_listens_at_is_told_as_such(root: Path) -> None:
    port = port_of_last(root)
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", port))
        refused = run("serve", check=False)
    assert "another process has it; which one cannot be told" in refused.err
    assert refused.code == 1


# -- what it gets, and what that is worth ------------------------------------------------------------------------------


def pages_on(server: Server, page: Browser) -> None:
    """Do what an open page does once its server is gone: it tries to come back, by all that it has."""
    for name, secret in ((f"session.{page.id}", page.again), (page.page, page.page_key)):
        assert page.enter(name, secret).status in {UNPROVEN, 401, 403}
    # And the worst: what it had signed before it noticed.
    for method, path in (("GET", f"{API}/tasks"), ("GET", f"{API}/events"), ("POST", f"{API}/tasks/t1/spawn")):
        with contextlib.suppress(OSError):
            page.ask(method, path, STARTS if method == "POST" else None)


@needs_root
@pytest.mark.parametrize("url", [None, "http://127.0.0.1:{port}", "https://box.example"])
def test_what_an_open_page_sends_is_worth_nothing(root: Path, tmp_path: Path, url: str | None) -> None:
    with serving(root) as server:
        new_task(server)
        spawned(server, "t1", ["echo", "secret"], name="w")
        page = logged_in(server)
        server.stop(signal.SIGKILL, code=-signal.SIGKILL)
    with squatting(server.port, tmp_path) as squatter:
        pages_on(server, page)
        captured = squatter.requests()
        for secret in (server.token, page.key, page.page_key, page.again):
            assert secret.encode() not in squatter.got
        assert len(captured) >= 5
        options = [] if url is None else ["--url", url.format(port=server.port)]
        with serving(root, "--port", "0", *options) as elsewhere:
            worthless(elsewhere, captured, page)
    with serving(root, "--port", str(server.port), *options) as again:
        worthless(again, captured, page)


def worthless(server: Server, captured: list[Request], page: Browser) -> None:
    """Check that nothing that was captured lets another user in, nor anybody else."""
    before = len(server.get("/tasks").done())
    shown = [{}, *({**headers} for _, _, headers, _ in captured), {"Cookie": page.cookie}]
    wanted = [*captured, *(one for headers in shown for one in everything(headers))]
    assert set(asked_by_another(server.port, wanted)) <= {401, 403}
    # In the hands of a process of the person's too.
    for method, path, headers, body in wanted:
        assert server.ask(method, path, body.encode() if body else None, headers, token=None).status in {401, 403}, path
    assert len(server.get("/tasks").done()) == before
    assert [row["agentInstance"] for row in server.get("/tasks/t1").done()["workers"]] == ["w"]


@needs_root
def test_who_passes_on_what_an_open_page_says_gets_nothing(root: Path, tmp_path: Path) -> None:
    """The server is at another port by then, and the page that is open does not know its secret."""
    with serving(root) as server:
        page = logged_in(server)
    with serving(root, "--port", "0") as real, squatting(server.port, tmp_path, str(real.port)) as squatter:
        pages_on(server, page)
        assert page.open(real.new_link()).status == 403, "a link that is pasted into that page"
        assert squatter.got
        assert real.get("/tasks").done() == []


@needs_root
@pytest.mark.parametrize("url", [None, "http://127.0.0.1:8932"])
def test_another_user_gets_nothing_even_with_the_token(root: Path, url: str | None) -> None:
    with serving(root, *([] if url is None else ["--url", url])) as server:
        new_task(server)
        shown = {"Authorization": f"Bearer {server.token}"}
        assert set(asked_by_another(server.port, everything(shown))) == {403}
        enters: Request = ("POST", "/session", {"Content-Type": "application/json"}, '{"as": "token", "nonce": "%s"}')
        assert asked_by_another(server.port, [(*enters[:3], str(enters[3]) % ("n" * 22))]) == [403]
        assert asked_by_another(server.port, [("GET", "/", {}, None)]) == [200], "the files of the page"


@needs_root
def test_another_user_is_not_greeted(root: Path) -> None:
    """The page itself is for everybody; what proves the server in it is for who may log in."""
    with serving(root) as server:
        page = logged_in(server)
        shown = {"Cookie": f"{page.cookie}; agentctl-asks-{server.port}={page.id}.{'n' * 22}"}
        own = server.ask("GET", "/", None, shown, token=None).body.decode()
        ((status, other),) = answers_to_another(server.port, [("GET", "/", shown, None)])
        assert status == 200
        assert '<meta name="greeting" content="">' in other
        assert '<meta name="greeting" content="">' not in own


@needs_root
def test_a_page_of_another_address_does_not_come_through_the_proxy(root: Path) -> None:
    """Another user may hold the same port of another address of this machine, and a page of its own there."""
    with serving(root, "--url", "https://box.example") as server:
        near = logged_in(server, f"http://127.0.0.1:{server.port}")
        far = Browser(server, "https://box.example")
        far.open(server.new_link()).done()
        for page, status in ((near, 403), (far, 200)):
            signed = page.signed("GET", f"{API}/tasks")
            assert asked_by_another(server.port, [("GET", f"{API}/tasks", signed, None)]) == [status]
        assert near.ask("GET", f"{API}/tasks").status == 200


# -- by what requests come ---------------------------------------------------------------------------------------------


class _End:
    def __init__(self, found: Connecting) -> None:
        self._found = found

    def look(self) -> Connecting:
        return self._found


#: Who is let in by each way: as it may have come through a proxy, and as it may not.
_ENDS = {
    "person": Connecting(PeerKind.PERSON), "elsewhere": Connecting(PeerKind.ELSEWHERE),
    "not known": Connecting(PeerKind.UNSUPPORTED), "worker": Connecting(PeerKind.WORKER),
    "agent": Connecting(PeerKind.AGENT), "gone": Connecting(PeerKind.GONE),
    "other user": Connecting(PeerKind.OTHER_USER, uid=NOBODY),
    "hidden": Connecting(PeerKind.GONE, is_hidden=True),
    "tunnel": Connecting(PeerKind.GONE, is_hidden=True, is_tunnel=True),
}  # fmt: skip
_ALWAYS = {"person", "elsewhere", "not known"}
_LET_IN = {
    (Way.NONE, True): _ALWAYS, (Way.NONE, False): _ALWAYS,
    (Way.TUNNEL, True): _ALWAYS | {"tunnel"}, (Way.TUNNEL, False): _ALWAYS | {"tunnel"},
    (Way.PROXY, True): _ALWAYS | {"tunnel", "hidden", "other user"}, (Way.PROXY, False): _ALWAYS,
}  # fmt: skip


@pytest.mark.parametrize(("way", "may_be_proxied"), list(_LET_IN))
def test_who_is_let_in_by_which_way(way: Way, may_be_proxied: bool) -> None:
    why_not = _refusing(way)
    let_in = {
        name
        for name, found in _ENDS.items()
        if anyio.run(why_not, {"state": {OTHER_END: _End(found)}}, may_be_proxied) is None
    }
    assert let_in == _LET_IN[way, may_be_proxied]


@pytest.mark.parametrize(
    ("url", "certificate", "way"),
    [(None, None, Way.NONE), ("http://127.0.0.1:8932", None, Way.TUNNEL), ("http://localhost:1", None, Way.TUNNEL),
     ("https://box.example", None, Way.PROXY), ("http://10.0.0.1", None, Way.PROXY),
     ("https://box.example", "c", Way.NONE)],
)  # fmt: skip
def test_which_way_an_address_means(url: str | None, certificate: str | None, way: Way) -> None:
    assert way_to(ListenAddress(url=url, certificate=certificate)) is way
