"""At stake: nobody without the token, and no page elsewhere, gets anything or changes anything."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentctl.adapters.served import live_server
from agentctl.adapters.taskdir import Root
from agentctl.interfaces.web.login import CODE_S, hidden, new_link, proof
from agentctl.interfaces.web.page_files import FOLDER, INDEX
from agentctl.supervision.worker.environment import store_folder
from tests.listener import configure
from tests.snapshots import snapshot
from tests.support import run, wait_for_text, wait_until, worker
from tests.web.support import (
    API,
    PROBLEM,
    SECURITY_HEADERS,
    UNPROVEN,
    Answered,
    Browser,
    Headers,
    Server,
    logged_in,
    new_task,
    serving,
    spawned,
)

pytestmark = pytest.mark.server

#: What each path parameter is, and a body that would change something if it were let through.
PLACES = {"task": "t1", "instance": "w", "id": "q1", "agent": "general", "stream": "stdout", "session_id": "s"}
BODIES: dict[str, dict[str, Any]] = {
    "new": {"title": "made"}, "spawn": {"argv": ["true"]}, "spawn-batch": {"workers": [{"argv": ["true"]}]},
    "cancel": {"all": True}, "resume": {"prompt": "x"},
    "send": {"text": "x"}, "interact.respond": {"answer": "yes"}, "task": {"description": "x", "prompt": "x"},
}  # fmt: skip


class Operation(NamedTuple):
    """An operation of the interface, and a request for it."""

    name: str
    method: str
    path: str
    body: dict[str, Any] | None

    @property
    def is_read(self) -> bool:
        """Whether it changes nothing."""
        return self.method == "GET"


#: What is asked for of those that have to be asked for something.
ASKED = {
    "search": "?terms=x", "search.of.all": "?terms=x", "result.file": "?path=x", "logs.search": "?words=x",
}  # fmt: skip


def operations_of(server: Server) -> list[Operation]:
    """Return all operations that the server describes."""
    found = []
    for path, methods in server.get("/openapi.json").done()["paths"].items():
        for method, described in methods.items():
            name = described["operationId"]
            where = re.sub(r"{(\w+)}", lambda match: PLACES[match[1]], path)
            where += ASKED.get(name, "")
            found.append(Operation(name, method.upper(), where, None if method == "get" else BODIES.get(name, {})))
    assert len(found) > 40
    return found


@pytest.fixture
def busy(server: Server) -> Iterator[Server]:
    """Return a server of a task with a worker that asks, and one that waits in the queue."""
    task = new_task(server)
    asks = ["sh", "-c", "echo out; exec agentctl interact ask Go? --kind confirm --id q1"]
    spawned(server, task, asks, name="w", cwd="/")
    wait_until(lambda: server.get("/interact").done(), what="the worker to ask")
    server.get("/agents").done()  # What the agents are said to be is noted at the first look.
    wait_for_text(server.root / "tasks/t1/task.yaml", "input-required")
    yield server
    run("cancel", "--all", "--task", task)


def refused(answer: Answered, *statuses: int) -> None:
    """Check that a request was refused, and that nothing was told but that."""
    assert answer.status in statuses, (answer.status, answer.body[:300])
    assert answer.headers["Content-Type"] == PROBLEM
    for name in SECURITY_HEADERS:
        assert len(answer.headers.get_all(name, [])) == 1, name
    assert answer.headers["Access-Control-Allow-Origin"] is None


def everything(server: Server) -> list[dict[str, str]]:
    """Return what is in the root, and in the person's home."""
    return [snapshot(server.root), snapshot(server.root.parent / "home")]


def test_nobody_gets_in_without_the_token(busy: Server) -> None:
    page, other = logged_in(busy), logged_in(busy)
    before = everything(busy)
    attempts: list[tuple[str, str | None, Headers]] = [
        ("none", None, {}),
        ("a wrong token", "x" * 43, {}),
        ("the beginning of the token", busy.token[:-1], {}),
        ("the token and more", busy.token + "x", {}),
        ("the token in another scheme", None, {"Authorization": f"Basic {busy.token}"}),
        ("the token in the query", None, {}),
        ("the token as a cookie", None, {"Cookie": f"{page.cookie.partition('=')[0]}={busy.token}"}),
        ("a cookie alone", None, {"Cookie": page.cookie}),
        ("the session alone", None, {"Cookie": page.cookie, "Agentctl-Signed": page.id}),
        ("a key as it is", None, {"Cookie": page.cookie, "Agentctl-Signed": f"{page.id}.9.{page.key}"}),
        ("what the browser keeps", None, {"Cookie": page.cookie, "Agentctl-Signed": f"{page.id}.9.{page.again}"}),
        ("the key for later runs", None, {"Cookie": page.cookie, "Agentctl-Signed": f"{page.id}.9.{page.page_key}"}),
    ]  # fmt: skip
    signed: list[tuple[str, Callable[[str, str], Headers]]] = [
        ("no cookie", lambda method, path: {"Agentctl-Signed": page.signed(method, path)["Agentctl-Signed"]}),
        ("another cookie", lambda method, path: {**page.signed(method, path), "Cookie": other.cookie}),
        ("another session", lambda method, path: {**page.signed(method, path), "Cookie": f"{page.cookie}0"}),
        ("another path", lambda method, path: page.signed(method, f"{path}x")),
        ("another query", lambda method, path: page.signed(method, f"{path}{'&' if '?' in path else '?'}x=1")),
        ("another method", lambda method, path: page.signed("GET" if method == "POST" else "POST", path)),
        ("another number", lambda method, path: _renumbered(page.signed(method, path))),
        ("twice", lambda method, path: [*page.signed(method, path).items(), *page.signed(method, path).items()]),
        ("a wrong token too", lambda method, path: {**page.signed(method, path), "Authorization": "Bearer x"}),
    ]
    for one in operations_of(busy):
        for what, token, headers in attempts:
            path = f"{one.path}{'&' if '?' in one.path else '?'}token={busy.token}" if "query" in what else one.path
            answer = busy.ask(one.method, path, one.body, headers, token=token)
            refused(answer, 401)
            assert answer.headers["WWW-Authenticate"] == "Bearer", (one.name, what)
        for what, made in signed:
            answer = busy.ask(one.method, one.path, one.body, made(one.method, one.path), token=None)
            refused(answer, 401)
            assert answer.headers["Agentctl-Proof"] is None, (one.name, what)
    assert everything(busy) == before
    assert page.ask("GET", f"{API}/tasks").status == 200


def _renumbered(headers: dict[str, str]) -> dict[str, str]:
    session, _, rest = headers["Agentctl-Signed"].split(".")
    return {**headers, "Agentctl-Signed": f"{session}.99999.{rest}"}


def test_a_request_counts_once(busy: Server) -> None:
    page = logged_in(busy)
    first, second = page.signed("GET", f"{API}/tasks"), page.signed("GET", f"{API}/tasks")
    for headers in (second, first):  # They may arrive in another order.
        answer = busy.ask("GET", f"{API}/tasks", None, headers, token=None)
        assert answer.status == 200
        number = headers["Agentctl-Signed"].split(".")[1]
        assert answer.headers["Agentctl-Proof"] == proof(page.key, "answer", number)
    for headers in (first, second):
        refused(busy.ask("GET", f"{API}/tasks", None, headers, token=None), 401)


def test_no_page_elsewhere_gets_anything(busy: Server) -> None:
    page, port = logged_in(busy), busy.port
    before = everything(busy)
    attempts = [
        {"Host": "evil.example"}, {"Host": f"evil.example:{port}"}, {"Host": "127.0.0.1"}, {"Host": "localhost"},
        {"Host": f"127.0.0.1.:{port}"}, {"Host": "127.0.0.1:"}, {"Host": "127.0.0.1:x"},
        {"Host": f"127.0.0.1:{port}@evil.example"}, {"Host": f"127.1:{port}"}, {"Host": ""},
        {"Host": f"0.0.0.0:{port}"}, {"Host": f"127.0.0.1:{port}, evil.example"}, {"Host": f"x@127.0.0.1:{port}"},
        {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": ""}, {"Origin": "file://"},
        {"Origin": f"https://127.0.0.1:{port}"}, {"Origin": "http://127.0.0.1"},
        {"Origin": f"http://127.0.0.1:{port + 1}"}, {"Origin": f"http://localhost:{port}.evil.example"},
        {"Host": f"127.0.0.1:{port + 1}", "Origin": f"http://127.0.0.1:{port}"},
        {"Host": f"evil.example:{port}", "Origin": f"http://evil.example:{port}"},
        {"Origin": f"http://localhost:{port}"}, {"Origin": f"http://127.0.0.1:{port}/"},
        {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"Sec-Fetch-Site": "x"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"},
    ]  # fmt: skip
    for one in operations_of(busy):
        for headers in attempts:
            refused(page.ask(one.method, one.path, one.body, headers), 403)
        twice = [("Origin", f"http://127.0.0.1:{port}"), ("Origin", "http://evil.example")]
        refused(busy.ask(one.method, one.path, one.body, twice), 403)
    assert everything(busy) == before
    assert page.ask("GET", f"{API}/tasks").status == 200


def test_a_tunnel_may_begin_at_another_port(busy: Server) -> None:
    for name in ("127.0.0.1", "localhost", "[::1]"):
        here = f"{name}:{busy.port + 1}"
        page = Browser(busy, f"http://{here}", host=here)
        page.open(busy.new_link()).done()
        headers = {"Host": here, "Origin": f"http://{here}"}
        assert page.ask("GET", f"{API}/tasks", None, headers).status == 200


def test_only_a_link_answers_without_the_token(server: Server) -> None:
    for path in ("/answer/", "/answer/x"):
        refused(server.ask("GET", path, token=None), 401)
        refused(server.ask("GET", path), 405)
        refused(server.ask("POST", path, {}, token=None), 409)


def test_a_link_is_used_by_the_page_that_shows_its_button_and_by_no_other(
    server: Server, root: Path, tmp_path: Path
) -> None:
    buttons = {"type": "ntfy", "url": "https://Ntfy.example/topic", "buttons": True}
    silent = {"type": "ntfy", "url": "https://quiet.example/topic"}
    configure(tmp_path / "home", {"phone": buttons, "desk": silent}, hosts=["ntfy.example", "quiet.example"], always=[])
    cross = {"Sec-Fetch-Site": "cross-site"}
    answer = server.ask("POST", "/answer/x", {}, {**cross, "Origin": "https://ntfy.example"}, token=None)
    assert (answer.status, answer.headers["Access-Control-Allow-Origin"]) == (409, "https://ntfy.example")
    assert "Origin" in answer.headers["Vary"]
    for origin in ("https://quiet.example", "http://ntfy.example", "https://ntfy.example:444", "null", "https://e.org"):
        other = server.ask("POST", "/answer/x", {}, {**cross, "Origin": origin}, token=None)
        refused(other, 403)
        assert other.headers["Access-Control-Allow-Origin"] is None
    for method, path in (("GET", "/answer/x"), ("OPTIONS", "/answer/x"), ("POST", "/session"), ("GET", f"{API}/tasks")):
        refused(server.ask(method, path, None, {**cross, "Origin": "https://ntfy.example"}), 403)


def test_no_form_does_anything(busy: Server) -> None:
    before = everything(busy)
    kinds = ("application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain", "text/json",
             "application/json-patch+json", "text/plain; application/json", "", "application/jsonp",
             "application/xml")  # fmt: skip
    for one in operations_of(busy):
        if one.is_read:
            continue
        for kind in kinds:
            refused(busy.ask(one.method, one.path, one.body, {"Content-Type": kind}), 415)
        body = b"title=x&argv=true"
        refused(busy.ask(one.method, one.path, body, {"Content-Type": kinds[0]}), 415)
        unlabelled = b"POST %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %s\r\nConnection: close\r\n"
        head = unlabelled % (one.path.encode(), busy.port, busy.token.encode())
        for more in (b"Content-Length: 2\r\n\r\n{}", b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"):
            assert busy.raw(head + more).startswith(b"HTTP/1.1 415 "), one.name
    assert everything(busy) == before


def test_a_reading_method_changes_nothing(busy: Server) -> None:
    before = everything(busy)
    reads = {one.path for one in operations_of(busy) if one.is_read}
    for one in operations_of(busy):
        for method in ("GET", "HEAD", "OPTIONS", "TRACE", "PUT"):
            if one.path not in reads:
                answer = busy.ask(method, one.path, None if method in {"GET", "HEAD"} else b"{}")
                assert answer.status == 405, (one, method)
                assert answer.headers["Allow"] == "POST"
    assert everything(busy) == before


def test_methods_of_what_is_only_read(busy: Server) -> None:
    operations = operations_of(busy)
    changed = {one.path for one in operations if not one.is_read}
    for one in operations:
        if one.path in changed or not one.is_read:
            continue
        for method in ("POST", "DELETE", "QUERY"):
            answer = busy.ask(method, one.path, b"{}")
            refused(answer, 405)
            assert answer.headers["Allow"] == "GET, HEAD", one.name
            assert answer.problem["name"] == "USAGE"


def test_a_read_only_server_changes_nothing(root: Path) -> None:
    with serving(root) as server:
        task = new_task(server)
        spawned(server, task, worker("sleeps", 60), name="w")
    with serving(root, "--read-only") as server:
        assert server.get("/about").done()["readOnly"] is True
        server.get("/agents").done()  # What the agents are said to be is noted at the first look.
        before = everything(server)
        for one in operations_of(server):
            answer = server.ask(one.method, one.path, one.body) if one.name != "events.stream" else None
            if not one.is_read:
                assert answer is not None
                refused(answer, 403)
                assert "read-only" in answer.problem["hint"]
            elif answer is not None:
                assert answer.status in {200, 404, 409}, one.name
        refused(server.ask("POST", "/answer/x", {}), 403)
        assert everything(server) == before
        logged_in(server)
    run("cancel", "--all", "--task", task)


# -- the login ---------------------------------------------------------------------------------------------------------


def test_the_cookie(server: Server) -> None:
    page = Browser(server)
    answer = page.open(server.new_link())
    (cookie,) = answer.headers.get_all("Set-Cookie", [])
    name, *attributes = [part.strip() for part in cookie.split(";")]
    assert name.startswith("agentctl-")
    assert {part.lower() for part in attributes} == {"httponly", "path=/", "samesite=strict"}, "it is kept in memory"
    assert answer.headers["Cache-Control"] == "no-store"
    again = Browser(server)
    again.cookie = page.cookie
    assert again.open(server.new_link()).headers["Set-Cookie"] == cookie, "the tabs of a browser share it"


def test_nothing_secret_is_sent_or_told(server: Server) -> None:
    page, link = Browser(server), server.new_link()
    said = str(page.open(link))
    for secret in (server.token, link[-22:], page.key, page.page_key, page.again):
        assert secret not in said


@pytest.mark.parametrize("kind", ["token", "code", "session", "page"])
def test_who_does_not_know_the_secret_does_not_enter(server: Server, kind: str) -> None:
    page, code = logged_in(server), server.new_link().partition("#")[2]
    name = {"token": "token", "code": f"code.{code[:16]}", "session": f"session.{page.id}", "page": page.page}[kind]
    other = Browser(server)
    other.cookie = page.cookie
    for secret in ("x", "", "x" * 43, code[:16], page.key):
        hello = other.session({"as": name, "nonce": "n" * 22})
        if kind == "page":  # It is for later runs.
            refused(hello, 401)
            continue
        own = hello.done()["nonce"]
        wrong = proof(secret, "page", name, server.url, "n" * 22, own)
        refused(other.session({"nonce": own, "proof": wrong}), 401)
        refused(other.session({"nonce": own, "proof": hello.json["proof"]}), 401)


def test_a_proof_is_for_one_page_of_one_address(server: Server) -> None:
    code = server.new_link().partition("#")[2]
    page, name, secret = Browser(server), f"code.{code[:16]}", code[16:]
    elsewhere = f"http://localhost:{server.port}"
    for origin in (elsewhere, "", server.url.upper()):
        hello = page.session({"as": name, "nonce": "n" * 22}).done()
        assert hello["proof"] != proof(secret, "server", name, elsewhere, "n" * 22, hello["nonce"])
        made = proof(secret, "page", name, origin, "n" * 22, hello["nonce"])
        refused(page.session({"nonce": hello["nonce"], "proof": made}), 401)
    hello = page.session({"as": name, "nonce": "n" * 22}).done()
    made = proof(secret, "page", name, server.url, "n" * 22, hello["nonce"])
    answer = page.session({"nonce": hello["nonce"], "proof": made})
    assert answer.status == 200
    refused(page.session({"nonce": hello["nonce"], "proof": made}), 401)


def test_a_link_opens_once_and_soon(server: Server, root: Path) -> None:
    link = server.new_link()
    assert Browser(server).open(link).status == 200
    refused(Browser(server).open(link), 401)
    served = live_server(store_folder(), Root(str(root)))
    assert served is not None
    now = time.time()
    for when, status in ((now - CODE_S + 30, 200), (now - CODE_S - 1, 401), (now + 3600, 401)):
        assert Browser(server).open(new_link(served.url, served.token, served.start, when)).status == status
    for token, start in ((served.token, "another-run"), ("x" * 43, served.start)):
        assert Browser(server).open(new_link(served.url, token, start, now)).status == UNPROVEN


def test_a_page_enters_by_the_token_too(server: Server) -> None:
    page = Browser(server)
    page.enter("token", server.token).done()
    assert page.ask("GET", f"{API}/tasks").status == 200


def test_a_browser_enters_again_during_one_run_and_a_page_in_the_next(root: Path) -> None:
    with serving(root) as server:
        page = logged_in(server)
        kept, cookie = (f"session.{page.id}", page.again), page.cookie
        again = Browser(server)
        refused(again.enter(*kept), 401)
        again.cookie = cookie
        again.enter(*kept).done()
        assert again.ask("GET", f"{API}/tasks").status == 200
        refused(Browser(server).enter(page.page, page.page_key), 401)
    with serving(root, "--port", str(server.port)) as server:
        again = Browser(server)
        again.cookie = cookie
        refused(again.enter(*kept), 401)
        refused(server.ask("GET", f"{API}/tasks", None, page.signed("GET", f"{API}/tasks"), token=None), 401)
        again.enter(page.page, page.page_key).done()
        assert again.ask("GET", f"{API}/tasks").status == 200
    with serving(root, "--port", str(server.port), "--new-token") as server:
        assert Browser(server).enter(page.page, page.page_key).status == UNPROVEN


def _greeted(server: Server, cookies: str) -> str:
    """Return the greeting in the page that somebody with some cookies gets."""
    page = server.ask("GET", "/tasks/t1", None, {"Cookie": cookies}, token=None).body.decode()
    return str(re.findall(r'<meta name="greeting" content="([^"]*)">', page)[0])


def test_a_page_that_is_loaded_anew_is_greeted_and_its_browser_alone_can_use_it(server: Server) -> None:
    page, other = logged_in(server), logged_in(server)
    nonce = "n" * 22
    asks = f"agentctl-asks-1={page.id}.{nonce}"
    for cookies in ("", page.cookie, asks, f"{asks}; {other.cookie}", f"{page.cookie}; agentctl-asks-1=x.{nonce}"):
        assert _greeted(server, cookies) == "", cookies
    junk = "agentctl-asks-=; agentctl-asks-2=...; agentctl-asks-3=" + "x" * 500
    own, shown = _greeted(server, f"{junk}; {asks}; {page.cookie}").split(".")
    assert shown == proof(page.again, "server", f"session.{page.id}", server.url, nonce, own)
    again = Browser(server)
    again.id, again.cookie = own, page.cookie
    for key in ("x", page.key, page.again, shown):
        again.key = key
        refused(again.ask("GET", f"{API}/tasks"), 401)
    again.key, again.count = proof(page.again, "session", nonce, own), 0
    headers = again.signed("GET", f"{API}/tasks")
    refused(server.ask("GET", f"{API}/tasks", None, {**headers, "Cookie": other.cookie}, token=None), 401)
    answer = server.ask("GET", f"{API}/tasks", None, {**headers, "Agentctl-Wants": "way-back"}, token=None)
    assert answer.status == 200
    assert answer.headers["Agentctl-Proof"] == proof(again.key, "answer", "1")
    refused(server.ask("GET", f"{API}/tasks", None, headers, token=None), 401)
    name, key = answer.headers["Agentctl-Way-Back"].split(" ")
    assert hidden(key, proof(again.key, "page", name)) == proof(server.token, "page", name)
    for secret in (page.key, page.again, again.key, server.token):
        assert secret not in f"{own}.{shown} {answer.headers}"
    wants = {"Agentctl-Wants": "way-back"}
    assert server.ask("GET", f"{API}/tasks", None, wants).headers["Agentctl-Way-Back"] is None, "a token is no page"


def test_nobody_logs_in_without_the_token(server: Server) -> None:
    bodies: list[Any] = [
        {}, {"as": "x"}, {"as": "token"}, {"as": "token", "nonce": "x"}, {"as": "token", "nonce": "\n" * 20},
        {"as": None}, {"as": ["x"]}, [], None, b"", b"{", b"[" * 3000, b"\xff", {"token": server.token},
        {"as": "code.x", "nonce": "n" * 22}, {"as": "code." + "f" * 16, "nonce": "n" * 22}, {"as": "page.x.y"},
        {"as": "token.", "nonce": "n" * 22}, {"as": "session.", "nonce": "n" * 22}, {"as": "é", "nonce": "é" * 22},
        {"nonce": "n" * 43, "proof": "x" * 64}, b'{"as": "\\ud800", "nonce": "nnnnnnnnnnnnnnnnnnnnnn"}',
        b"x" * 100_000,
    ]  # fmt: skip
    for body in bodies:
        answer = server.ask("POST", "/session", body, token=None)
        refused(answer, 413 if body == b"x" * 100_000 else 401)
        assert answer.headers["Set-Cookie"] is None
    long = b"POST /session HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n" % server.port
    chunk = b"%x\r\n%s\r\n" % (60_000, b"x" * 60_000)
    assert b" 401 " in server.raw(long + b"Transfer-Encoding: chunked\r\n\r\n" + chunk * 2, until=b"\r\n\r\n")


def test_many_that_begin_to_enter_keep_nobody_out(server: Server) -> None:
    page = logged_in(server)
    body = json.dumps({"as": "token", "nonce": "n" * 22})
    headers = {"Content-Type": "application/json", "Origin": page.origin}
    # One connection for all of them: a new one for each takes longer than the answer.
    with contextlib.closing(http.client.HTTPConnection(server.host, server.port)) as connection:
        for _ in range(1100):
            connection.request("POST", "/session", body, headers)
            answer = connection.getresponse()
            assert (answer.status, "proof" in json.load(answer)) == (200, True)
    assert page.ask("GET", f"{API}/tasks").status == 200
    logged_in(server)


def test_a_login_from_elsewhere(server: Server) -> None:
    body = {"as": "token", "nonce": "n" * 22}
    for headers in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Host": "evil.example"}):
        for method in ("POST", "DELETE"):
            answer = server.ask(method, "/session", body, headers, token=None)
            refused(answer, 403)
            assert answer.headers["Set-Cookie"] is None
    refused(server.ask("POST", "/session", body, {"Content-Type": "text/plain"}), 415)
    assert server.ask("GET", "/session", None).status == 405


def test_logging_out(server: Server) -> None:
    page, tab = logged_in(server), Browser(server)
    tab.cookie = page.cookie
    tab.open(server.new_link()).done()
    refused(server.ask("DELETE", "/session", None, {"Cookie": page.cookie}, token=None), 401)
    kept = logged_in(server)
    answer = page.ask("DELETE", "/session")
    assert answer.status == 200
    assert "Max-Age=0" in answer.headers["Set-Cookie"]
    for one in (page, tab):
        refused(one.ask("GET", f"{API}/tasks"), 401)
        refused(one.enter(f"session.{one.id}", one.again), 401)
    assert kept.ask("GET", f"{API}/tasks").status == 200


def test_a_page_that_is_let_in(server: Server) -> None:
    page = logged_in(server)
    own = {"Origin": server.url, "Sec-Fetch-Site": "same-origin"}
    assert page.ask("GET", f"{API}/tasks", None, own).status == 200
    assert page.ask("GET", f"{API}/search?terms=a%20b&terms=%C3%A9", None, own).status == 200
    assert page.ask("POST", f"{API}/tasks", {"title": "t"}, own).status == 201


def test_cookies_of_other_servers_of_this_machine_do_not_matter(server: Server) -> None:
    page = logged_in(server)
    cookie, name = page.cookie, page.cookie.partition("=")[0]
    for header in (
        f"a=1; {cookie}; b=2", f'json={{"a":[1,2]}}; {cookie}', f"a b=c; {cookie}", f"[x]=y; {cookie}",
        f"=; ;; {cookie}", f'q="\\"; {cookie}', f"{name}=forged; {cookie}", f"{cookie}; {name}=forged",
        f'x="unclosed; {cookie}', f"é=ü; {cookie}", f"{'x=' * 5000};{cookie}",
    ):  # fmt: skip
        headers = {"Cookie": header.encode().decode("latin-1")}
        assert page.ask("GET", f"{API}/tasks", None, headers).status == 200, header[:80]


def test_a_visit_from_elsewhere_gets_the_page(server: Server) -> None:
    visit = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    for path in ("/", "/tasks/t1", "/search?q=x"):
        assert server.ask("GET", path, None, visit, token=None).status == 200
    for path in (f"{API}/tasks", "/metrics", "/healthz", "/task/session/x", "/answer/x", "/session"):
        refused(server.ask("GET", path, None, visit), 403)
    for odd in ({"Sec-Fetch-Mode": "no-cors"}, {"Sec-Fetch-Dest": "iframe"}, {"Sec-Fetch-Dest": "object"}):
        refused(server.ask("GET", "/", None, {**visit, **odd}), 403)
    refused(server.ask("POST", "/", b"{}", visit), 403)


# -- files -------------------------------------------------------------------------------------------------------------


def test_anybody_gets_the_files_of_the_page_alone(server: Server) -> None:
    """They are the same for everybody, and hold nothing of the tasks."""
    new_task(server, "secretly")
    shipped = {one.read_bytes() for one in FOLDER.rglob("*") if one.is_file()}
    here = folder_of_the_page(server)
    for path in ("/", "/tasks/secretly", f"{here}open.js", f"{here}js/main.js", "/static/icons/mark.svg", "/nowhere"):
        answer = server.ask("GET", path, None, token=None)
        assert answer.status == 200
        assert answer.body.replace(here.encode(), b"/static/") in shipped
    for path in ("/static/", "/static/open.js", "/static/js/main.js", "/static/index.html", here, f"{here}index.html",
                 "/static/0123456789abcdef.0123456789abcdef/open.js", f"{here[:-1]}", f"{here}/open.js",
                 *(f"{here}{name}" for name in ("open.js/", "./open.js", "open.js%00", "OPEN.JS", "open.js;x",
                                                "%2e/open.js", "js/open.js"))):  # fmt: skip
        refused(server.ask("GET", path, None, token=None), 404)
    refused(server.ask("POST", f"{here}open.js", b"{}", token=None), 401)


def folder_of_the_page(server: Server) -> str:
    """Return the folder in which the page finds its scripts, as its first file names it."""
    page = server.ask("GET", "/", None, token=None).body.decode()
    return str(re.findall(r'src="(/static/[0-9a-f]{16}\.[0-9a-f]{16}/)open\.js"', page)[0])


def test_what_a_browser_keeps_of_the_page_is_of_this_run_alone(root: Path) -> None:
    """Who has the port in between cannot have a browser keep a script that is taken for one of ours later."""
    with serving(root) as server:
        before = folder_of_the_page(server)
        kept = server.ask("GET", f"{before}open.js", None, token=None)
        assert "immutable" in kept.headers["Cache-Control"]
        page = server.ask("GET", "/", None, token=None)
        assert page.headers["Cache-Control"] == "no-cache, private"
    with serving(root) as server:
        assert folder_of_the_page(server) != before
        again = server.ask("GET", f"{before}open.js", None, token=None)  # A page that is still open asks for it.
        assert (again.body, again.headers["Cache-Control"]) == (kept.body, "no-store")
        fresh = server.ask("GET", "/", None, {"If-None-Match": page.headers["ETag"]}, token=None)
        assert fresh.status == 200


def test_an_absolute_target_is_the_same_target(busy: Server) -> None:
    """And the name in it counts, whatever the header says (RFC 9112, 3.2.2)."""
    place = f"127.0.0.1:{busy.port}"

    def status(target: str, host: str, method: str = "GET", more: str = "") -> int:
        token = f"Authorization: Bearer {busy.token}\r\n"
        head = f"{method} {target} HTTP/1.1\r\nHost: {host}\r\n{token}{more}Connection: close\r\n\r\n"
        return int(busy.raw(head.encode()).split(b" ", 2)[1])

    for target in (f"http://{place}/api/v1/tasks", f"HTTP://{place}/api/v1/tasks", f"http://localhost:{busy.port}/",
                   f"http://{place}", f"http://{place}?x=1", f"http://{place}/api/v1/search?terms=x"):  # fmt: skip
        assert status(target, place) == 200, target
    assert status(f"http://{place}/api/v1/tasks", "evil.example") == 200
    assert status("http://evil.example/api/v1/tasks", place) == 403
    assert status(f"http://{place}@evil.example/api/v1/tasks", place) == 404
    assert status(f"http://user@{place}/api/v1/tasks", place) == 404
    assert status(f"http://{place}/api/v1/nothing", place, "PUT") == 404
    assert status("http://evil.example/api/v1/tasks/t1/cancel", place, "POST") == 403


def test_no_other_file_is_given_out(server: Server) -> None:
    for path in (
        "/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static//etc/passwd",
        "/static/%2fetc%2fpasswd", "/static/..%5capp.py", "/static/js/../../app.py", "/static/\u2025/app.py",
        "/static/%c0%ae%c0%ae/app.py", "/static/index.html%00.js", "/static/js", "/static/js/", "/static/.",
    ):  # fmt: skip
        refused(server.ask("GET", quote(path, safe="/%"), None), 404)


def test_what_is_no_path_of_the_interface(busy: Server) -> None:
    for path in ("/", "/x", "/tasks/", "//tasks", "/tasks/t1/", "/tasks/t1/nothing", "/tasks/t1%2Flist/x",
                 "/tasks/t1;x/list/", "/../tasks/x", "/tasks/t1/workers/w/", "/%74asks/"):  # fmt: skip
        refused(busy.get(path), 404)
    assert busy.get("/%74asks").status == 200  # It is the same path.
    for target in (b"*", b"http://evil.example/api/v1/tasks", b"x"):
        request = b"OPTIONS %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n" % (target, busy.port)
        status = b" 403 " if b"evil" in target else b" 401 "
        assert status in busy.raw(request + b"\r\n").partition(b"\r\n")[0]
        found = busy.raw(request + b"Authorization: Bearer %s\r\n\r\n" % busy.token.encode())
        assert PROBLEM.encode() in found, found


# -- whatever it says --------------------------------------------------------------------------------------------------


def test_all_answers_have_the_headers_of_security(busy: Server) -> None:
    paths: list[tuple[str, str, Headers]] = [("GET", "/", {}), ("GET", "/static/icons/mark.svg", {}),
             ("GET", f"{folder_of_the_page(busy)}open.js", {}), ("GET", "/nowhere", {}),
             ("GET", f"{API}/tasks", {}), ("GET", f"{API}/nowhere", {}), ("PUT", f"{API}/tasks", {}),
             ("GET", f"{API}/tasks/t1/timeline.svg", {}), ("GET", f"{API}/tasks/t1/workers/w/logs/stdout", {}),
             ("GET", "/metrics", {}), ("GET", "/healthz", {}), ("POST", f"{API}/tasks", {}),
             ("HEAD", f"{API}/tasks", {}), ("HEAD", f"{API}/events", {}), ("POST", "/session", {}),
             ("POST", "/answer/x", {})]  # fmt: skip
    answers = [busy.ask(method, path, None, headers) for method, path, headers in paths]
    tag = busy.get("/tasks").headers["ETag"]
    answers.append(busy.get("/tasks", {"If-None-Match": tag}))
    assert answers[-1].status == 304
    with busy.stream() as stream:
        found = stream.answer.headers
        for answer in [*answers, Answered(200, found, b"")]:
            for name in SECURITY_HEADERS:
                assert len(answer.headers.get_all(name, [])) == 1, (name, answer)
            assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert answer.headers["Server"] is None


_TEXTS = st.text(st.characters(min_codepoint=32, max_codepoint=255), max_size=60)
_NAMES = st.sampled_from(
    ["Authorization", "Cookie", "Agentctl-Signed", "Host", "Origin", "Sec-Fetch-Site", "Sec-Fetch-Mode", "Accept",
     "X-Forwarded-Host", "X-Forwarded-For", "X-Original-URL", "X-HTTP-Method-Override", "Forwarded", "X"]
)  # fmt: skip
_VALUES = _TEXTS | st.sampled_from(["Bearer ", "bearer x", "Bearer", "agentctl-1=", "localhost", "same-origin", "none"])


def _is_index(body: bytes) -> bool:
    """Return whether a body is the page as it is shipped, but for the folder of the run."""
    return re.sub(rb"/static/[0-9a-f.]{33}/", b"/static/", body) == (FOLDER / INDEX).read_bytes()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(_NAMES, _VALUES), max_size=6), st.sampled_from([f"{API}/tasks", "/metrics", "/", "/x"]))
def test_no_headers_let_anybody_in(server: Server, headers: list[tuple[str, str]], path: str) -> None:
    answer = server.ask("GET", path, None, headers, token=None)
    assert answer.status in {400, 401, 403} or (path in {"/", "/x"} and _is_index(answer.body))
