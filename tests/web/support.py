"""Starts `agentctl serve` as a process of its own, and asks it as a script, a browser or an attacker would."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from agentctl.adapters.served import kept_place
from agentctl.adapters.taskdir import Root
from agentctl.interfaces.commands.programs.served_commands import SERVED
from agentctl.interfaces.web.login import hidden, proof, random_text
from agentctl.interfaces.web.root_server import link_to
from agentctl.supervision.worker.environment import store_folder
from tests.answers import check_response
from tests.support import start, wait_until

API = "/api/v1"
#: A command in a hint, and those of which there is a request.
_COMMAND = re.compile(r"\bagentctl ([a-z][a-z-]*)")
#: An option; what is quoted is somebody's own.
_OPTION = re.compile(r"(?<![\w'\"-])--[a-z]")
_SERVED = {one.command.split()[0] for one in SERVED}
PROBLEM = "application/problem+json"
#: So long any single answer may take on a busy machine.
PATIENCE_S = 30
#: What a page makes of a server that does not know its secret: no status of any server.
UNPROVEN = 599
#: What each response says to browsers, whatever it is.
SECURITY_HEADERS = (
    "Content-Security-Policy", "X-Content-Type-Options", "X-Frame-Options", "Referrer-Policy",
    "Cross-Origin-Opener-Policy", "Cross-Origin-Resource-Policy", "Permissions-Policy", "Cache-Control",
)  # fmt: skip

Headers = Mapping[str, str] | Iterable[tuple[str, str]]


class Answered(NamedTuple):
    """The answer to a request."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:
        """The body, parsed strictly: what is no JSON fails the test."""

        def refuse(name: str) -> Any:
            raise AssertionError(f"{name} is not JSON: {self.body[:500]!r}")

        return json.loads(self.body.decode(), parse_constant=refuse)

    @property
    def problem(self) -> dict[str, Any]:
        """The problem that it tells."""
        assert self.headers["Content-Type"] == PROBLEM, (self.status, self.body[:500])
        told = self.json
        known = {"type", "title", "status", "detail", "hint", "next", "steps", "code", "name"}
        assert told.keys() - {"done"} == known
        assert told["status"] == self.status
        named = {name for name in _COMMAND.findall(told["hint"] or "") if name in _SERVED}
        assert not named or "in a terminal" in told["hint"], told
        assert not _OPTION.search(told["detail"]), told
        assert not _COMMAND.search(told["detail"]), told
        return dict(told)

    def done(self) -> Any:
        """Return the document; the test fails if there is none."""
        assert self.status in {200, 201}, (self.status, self.body[:2000])
        return self.json


class Server:
    """A running `agentctl serve`."""

    def __init__(self, root: Path, *options: str, env: Mapping[str, str | None] | None = None) -> None:
        self.root = root
        self.process = start("serve", "--json", *options, env=env)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the server has not started: {self.process.communicate()[1]}"
        self.said: dict[str, str] = json.loads(line)
        self.url = self.said["url"]
        self.token = Path(self.said["tokenFile"]).read_text().strip()
        parts = urlsplit(self.url)
        self.host, self.port = str(parts.hostname), int(parts.port or 0)
        if "--url" in options:  # That is where others reach it.
            place = kept_place(store_folder(), Root(str(root)))
            assert place is not None
            self.host, self.port = place.host, place.port

    def ask(
        self, method: str, path: str, body: Any = None, headers: Headers = (), *, token: str | None = "",
        http_class: Callable[..., http.client.HTTPConnection] = http.client.HTTPConnection,
    ) -> Answered:  # fmt: skip
        """Ask on a new connection.

        Args:
            body: JSON, or bytes that are sent as they are.
            headers: More of them; the values may be odd.
            token: Shown; "" is that of the server, None none at all.
        """
        given = list(headers.items() if isinstance(headers, Mapping) else headers)
        names = {name.lower() for name, _ in given}
        connection = http_class(self.host, self.port, timeout=PATIENCE_S)
        try:
            connection.putrequest(method, path, skip_host="host" in names, skip_accept_encoding=True)
            if token is not None:
                connection.putheader("Authorization", f"Bearer {token or self.token}")
            data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
            if data is not None:
                if "content-type" not in names:
                    connection.putheader("Content-Type", "application/json")
                if not {"content-length", "transfer-encoding"} & names:
                    connection.putheader("Content-Length", str(len(data)))
            for name, value in given:
                connection.putheader(name, value)
            connection.endheaders(data)
            answer = connection.getresponse()
            found = Answered(answer.status, answer.headers, answer.read())
            is_json = found.headers["Content-Type"] == "application/json"
            # Once it has ended, somebody else may answer in its place.
            if self.is_running and found.status in {200, 201} and found.body and is_json and path.startswith(API):
                check_response(method, path, found.json)
            return found
        finally:
            connection.close()

    def get(self, path: str, headers: Headers = (), **more: Any) -> Answered:
        """Ask for something below the interface's prefix."""
        return self.ask("GET", f"{API}{path}", None, headers, **more)

    def post(self, path: str, body: Any = None, headers: Headers = (), **more: Any) -> Answered:
        """Have something done."""
        return self.ask("POST", f"{API}{path}", {} if body is None else body, headers, **more)

    def raw(self, data: bytes, *, until: bytes | None = None) -> bytes:
        """Send bytes, and return what comes until the server closes, or until some bytes have come."""
        with self.connected() as client:
            client.sendall(data)
            found = bytearray()
            while until is None or until not in found:
                piece = client.recv(1 << 16)
                if not piece:
                    break
                found += piece
            return bytes(found)

    @contextlib.contextmanager
    def connected(self) -> Iterator[socket.socket]:
        """Return a connection on which nothing was sent yet."""
        with socket.create_connection((self.host, self.port), PATIENCE_S) as client:
            yield client

    def stream(self, query: str = "", cursor: str | None = None) -> Stream:
        """Return the stream of events, to be closed by the test."""
        return Stream(self, query, cursor)

    def new_link(self) -> str:
        """Return a link, as `serve --link` makes one."""
        return link_to(Root(str(self.root)))[1]

    @property
    def store(self) -> Path:
        """The folder in memory in which the server says where it is."""
        return Path(self.said["tokenFile"]).parent

    def stop(self, number: int = signal.SIGINT, *, code: int | None = 0, within_s: float = 10) -> str:
        """End it; return what it printed to stderr. The test fails if it has left anything behind."""
        self.process.send_signal(number)
        try:
            _, err = self.process.communicate(timeout=within_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        assert code is None or self.process.returncode == code, err
        assert "Traceback" not in err, err
        if number != signal.SIGKILL:
            assert not os.path.exists(self.said["tokenFile"])
        return err

    @property
    def is_running(self) -> bool:
        """Whether it runs."""
        return self.process.poll() is None


class Browser:
    """What a page does to be let in, and to ask for something; in each request the test may say something else."""

    def __init__(
        self, server: Server, origin: str | None = None, host: str = "",
        http_class: Callable[..., http.client.HTTPConnection] = http.client.HTTPConnection,
    ) -> None:  # fmt: skip
        self.server, self.host, self.http_class = server, host, http_class
        self.origin = server.url if origin is None else origin
        self.cookie = self.id = self.key = self.page = self.page_key = ""
        self.count = 0

    def session(self, body: Any, headers: Mapping[str, str] | None = None) -> Answered:
        """Send something to where pages enter."""
        given = {"Origin": self.origin, "Cookie": self.cookie, "Host": self.host, **(headers or {})}
        given = {name: value for name, value in given.items() if value}
        return self.server.ask("POST", "/session", body, given, token=None, http_class=self.http_class)

    def enter(self, name: str, secret: str) -> Answered:
        """Enter by a secret; return the last answer."""
        nonce = random_text(16)
        hello = self.session({"as": name, "nonce": nonce})
        if hello.status != 200:
            return hello
        own = hello.json["nonce"]
        if hello.json["proof"] != proof(secret, "server", name, self.origin, nonce, own):
            return hello._replace(status=UNPROVEN)
        answer = self.session({"nonce": own, "proof": proof(secret, "page", name, self.origin, nonce, own)})
        if answer.status == 200:
            self.cookie = answer.headers["Set-Cookie"].partition(";")[0]
            self.id, self.key, self.count = answer.json["session"], proof(secret, "session", nonce, own), 0
            self.page = f"page.{answer.json['page']}"
            self.page_key = hidden(answer.json["key"], proof(self.key, "page", answer.json["page"]))
        return answer

    def open(self, link: str) -> Answered:
        """Enter by a link."""
        code = link.partition("#")[2]
        return self.enter(f"code.{code[:16]}", code[16:])

    @property
    def again(self) -> str:
        """What the browser keeps, to enter again."""
        return proof(self.key, "again")

    def signed(self, method: str, path: str) -> dict[str, str]:
        """Return what shows that a request comes from the page."""
        self.count += 1
        shown = f"{self.id}.{self.count}.{proof(self.key, 'ask', method, path, str(self.count))}"
        return {"Cookie": self.cookie, "Agentctl-Signed": shown}

    def ask(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Answered:
        """Ask for something."""
        given = {**self.signed(method, path), **(headers or {})}
        return self.server.ask(method, path, body, given, token=None, http_class=self.http_class)


def logged_in(server: Server, origin: str | None = None) -> Browser:
    """Return a page that is let in by a new link."""
    made = Browser(server, origin)
    made.open(server.new_link()).done()
    return made


class Message(NamedTuple):
    """A message of a stream."""

    event: str
    id: str | None
    data: Any


class Stream:
    """A client of the stream of events."""

    def __init__(self, server: Server, query: str = "", cursor: str | None = None) -> None:
        self._connection = http.client.HTTPConnection(server.host, server.port, timeout=PATIENCE_S)
        headers = {"Authorization": f"Bearer {server.token}", **({} if cursor is None else {"Last-Event-ID": cursor})}
        self._connection.request("GET", f"{API}/events{query}", None, headers)
        self.socket = self._connection.sock
        self.answer = self._connection.getresponse()
        assert self.answer.status == 200, self.answer.read()
        #: That of the last message that had one.
        self.cursor = cursor or ""

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave."""
        self.answer.close()
        self._connection.close()

    def next(self) -> Message:
        """Return the next message; raise `EOFError` if there is none any more."""
        event, id_ = "message", None
        data: list[str] = []
        while True:
            line = self.answer.readline()
            if not line:
                raise EOFError("the stream has ended")
            name, _, value = line.decode().removesuffix("\n").partition(": ")
            if name == "event":
                event = value
            elif name == "id":
                id_ = value
            elif name == "data":
                data.append(value)
            elif not name and not value and data:
                self.cursor = id_ or self.cursor
                return Message(event, id_, json.loads("\n".join(data)))

    def until(self, accept: Callable[[Message], bool]) -> list[Message]:
        """Return the messages up to and with the first one that is accepted."""
        found: list[Message] = []
        give_up_at = time.monotonic() + PATIENCE_S
        while not found or not accept(found[-1]):
            found.append(self.next())
            assert time.monotonic() < give_up_at, found
        return found

    def greeting(self) -> list[Message]:
        """Return what comes before the first new event: all up to the message with the first cursor."""
        return self.until(lambda one: one.event == "cursor")

    def events(self, count: int) -> list[Any]:
        """Return so many events."""
        found: list[Any] = []
        while len(found) < count:
            one = self.next()
            if one.event == "event":
                found.append(one.data)
        return found


@contextlib.contextmanager
def serving(root: Path, *options: str, env: Mapping[str, str | None] | None = None) -> Iterator[Server]:
    """Run a server of a root within the block; it must end cleanly, and leave nothing."""
    options = options if any(one.startswith("--port") for one in options) else ("--port", "0", *options)
    server = Server(root, *options, env=env)
    try:
        yield server
    except BaseException:
        server.process.kill()
        server.process.communicate()
        raise
    if server.is_running:
        server.stop()


def new_task(server: Server, name: str = "t1") -> str:
    """Make a task by the interface, and return its id."""
    task_id: str = server.post("/tasks", {"title": name, "id": name}).done()["taskId"]
    return task_id


def spawned(server: Server, task: str, argv: list[str], **more: Any) -> str:
    """Start a worker by the interface, and return its name."""
    instance: str = server.post(f"/tasks/{task}/spawn", {"argv": argv, **more}).done()["agentInstance"]
    return instance


def ended(server: Server, task: str, instance: str) -> dict[str, Any]:
    """Wait for the end of a worker, and return its row."""
    return wait_until(
        lambda: dict(server.get(f"/tasks/{task}/workers/{instance}").done()),
        accept=lambda row: row["status"] in {"completed", "failed", "cancelled"},
        what=f"{instance} to end",
    )
