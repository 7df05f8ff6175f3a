"""At stake: nobody without the token, and no page elsewhere, gets anything or changes anything."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support import run, wait_until, worker
from tests.web.support import API, PROBLEM, SECURITY_HEADERS, Answered, Server, new_task, serving, spawned, tree_of

pytestmark = pytest.mark.server

#: What each path parameter is, and a body that would change something if it were let through.
PLACES = {"task": "t1", "instance": "w", "id": "q1", "agent": "general", "stream": "stdout", "session_id": "s"}
BODIES: dict[str, dict[str, Any]] = {
    "new": {"title": "made"}, "spawn": {"argv": ["true"]}, "cancel": {"all": True}, "resume": {"prompt": "x"},
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


def operations_of(server: Server) -> list[Operation]:
    """Return all operations that the server describes."""
    found = []
    for path, methods in server.get("/openapi.json").done()["paths"].items():
        for method, described in methods.items():
            name = described["operationId"]
            where = re.sub(r"{(\w+)}", lambda match: PLACES[match[1]], path)
            where += "?terms=x" if name.startswith("search") else ""
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
    wait_until(lambda: "input-required" in (server.root / "tasks/t1/task.yaml").read_text(), what="all to be settled")
    yield server
    run("cancel", "--all", "--task", task)


def login(server: Server) -> tuple[str, str]:
    """Log in as the page does; return the cookie and the key."""
    answer = server.ask("POST", "/session", {"token": server.token}, token=None)
    return answer.headers["Set-Cookie"].partition(";")[0], answer.done()["key"]


def refused(answer: Answered, *statuses: int) -> None:
    """Check that a request was refused, and that nothing was told but that."""
    assert answer.status in statuses, (answer.status, answer.body[:300])
    assert answer.headers["Content-Type"] == PROBLEM
    for name in SECURITY_HEADERS:
        assert len(answer.headers.get_all(name, [])) == 1, name
    assert answer.headers["Access-Control-Allow-Origin"] is None


def everything(server: Server) -> dict[str, bytes | str]:
    """Return all files of the root and of the person; not the time that a shim counts for its own worker."""
    found = tree_of(server.root) | tree_of(server.root.parent / "home")
    return {path: content for path, content in found.items() if not path.endswith("/worked.json")}


def test_nobody_gets_in_without_the_token(busy: Server) -> None:
    cookie, key = login(busy)
    before = everything(busy)
    attempts: list[tuple[str, str | None, dict[str, str]]] = [
        ("none", None, {}),
        ("a wrong token", "x" * 43, {}),
        ("the beginning of the token", busy.token[:-1], {}),
        ("the token and more", busy.token + "x", {}),
        ("the token in another scheme", None, {"Authorization": f"Basic {busy.token}"}),
        ("the token in the query", None, {}),
        ("a cookie without the key", None, {"Cookie": cookie}),
        ("the key without a cookie", None, {"Agentctl-Key": key}),
        ("another cookie", None, {"Cookie": f"{cookie}0", "Agentctl-Key": key}),
        ("another key", None, {"Cookie": cookie, "Agentctl-Key": f"{key}0"}),
        ("the cookie as the key", None, {"Cookie": cookie, "Agentctl-Key": cookie.partition("=")[2]}),
        ("the token as cookie and key", None, {"Cookie": f"{cookie.partition('=')[0]}={busy.token}",
                                               "Agentctl-Key": busy.token}),
        ("a wrong token, with cookie and key", "x", {"Cookie": cookie, "Agentctl-Key": key}),
    ]  # fmt: skip
    for one in operations_of(busy):
        for what, token, headers in attempts:
            path = f"{one.path}{'&' if '?' in one.path else '?'}token={busy.token}" if "query" in what else one.path
            answer = busy.ask(one.method, path, one.body, headers, token=token)
            refused(answer, 401)
            assert answer.headers["WWW-Authenticate"] == "Bearer", (one.name, what)
    assert everything(busy) == before


def test_no_page_elsewhere_gets_anything(busy: Server) -> None:
    cookie, key = login(busy)
    port = busy.port
    logged_in = {"Cookie": cookie, "Agentctl-Key": key}
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
            refused(busy.ask(one.method, one.path, one.body, {**logged_in, **headers}, token=None), 403)
        twice = [("Origin", f"http://127.0.0.1:{port}"), ("Origin", "http://evil.example")]
        refused(busy.ask(one.method, one.path, one.body, twice), 403)
    assert everything(busy) == before
    assert busy.ask("GET", f"{API}/tasks", None, logged_in, token=None).status == 200


def test_a_tunnel_may_begin_at_another_port(busy: Server) -> None:
    cookie, key = login(busy)
    for name in ("127.0.0.1", "localhost", "[::1]"):
        here = f"{name}:{busy.port + 1}"
        headers = {"Host": here, "Origin": f"http://{here}", "Cookie": cookie, "Agentctl-Key": key}
        assert busy.ask("GET", f"{API}/tasks", None, headers, token=None).status == 200


def test_only_a_link_answers_without_the_token(server: Server) -> None:
    for path in ("/answer/", "/answer/x"):
        refused(server.ask("GET", path, token=None), 401)
        refused(server.ask("GET", path), 405)
        refused(server.ask("POST", path, {}, token=None), 409)


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
        login(server)
    run("cancel", "--all", "--task", task)


# -- the login ---------------------------------------------------------------------------------------------------------


def test_the_cookie(server: Server) -> None:
    answer = server.ask("POST", "/session", {"token": server.token}, token=None)
    (cookie,) = answer.headers.get_all("Set-Cookie", [])
    name, *attributes = [part.strip() for part in cookie.split(";")]
    assert name.startswith("agentctl-")
    assert {part.lower() for part in attributes} == {"httponly", "max-age=2592000", "path=/", "samesite=strict"}
    assert answer.json.keys() == {"key"}
    assert answer.headers["Cache-Control"] == "no-store"
    assert server.token not in cookie + answer.json["key"]
    assert cookie.partition("=")[2].partition(";")[0] != answer.json["key"]


def test_nobody_logs_in_without_the_token(server: Server) -> None:
    bodies: list[Any] = [
        {}, {"token": "x"}, {"token": None}, {"token": ["x"]}, [], None, b"", b"{", b"[" * 3000, b"\xff",
        {"token": "é"}, b'{"token": "\\ud800"}', b"x" * 100_000, {"token": server.token + "\n"},
    ]  # fmt: skip
    for body in bodies:
        answer = server.ask("POST", "/session", body, token=None)
        refused(answer, 413 if body == b"x" * 100_000 else 401)
        assert answer.headers["Set-Cookie"] is None
    long = b"POST /session HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n" % server.port
    chunk = b"%x\r\n%s\r\n" % (60_000, b"x" * 60_000)
    assert b" 401 " in server.raw(long + b"Transfer-Encoding: chunked\r\n\r\n" + chunk * 2, until=b"\r\n\r\n")


def test_a_login_from_elsewhere(server: Server) -> None:
    for headers in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Host": "evil.example"}):
        for method in ("POST", "DELETE"):
            answer = server.ask(method, "/session", {"token": server.token}, headers, token=None)
            refused(answer, 403)
            assert answer.headers["Set-Cookie"] is None
    refused(server.ask("POST", "/session", {"token": server.token}, {"Content-Type": "text/plain"}), 415)
    assert server.ask("GET", "/session", None).status == 405


def test_logging_out(server: Server) -> None:
    answer = server.ask("DELETE", "/session", None, token=None)
    assert answer.status == 200
    assert "agentctl-" in answer.headers["Set-Cookie"]
    assert "Max-Age=0" in answer.headers["Set-Cookie"]


def test_the_page_logs_in(server: Server) -> None:
    cookie, key = login(server)
    for path, status in (("/", 200), ("/tasks/t1", 200), ("/static/index.html", 200), (f"{API}/tasks", 401)):
        assert server.ask("GET", path, None, {"Cookie": cookie}, token=None).status == status
    own = {"Origin": server.url, "Sec-Fetch-Site": "same-origin", "Cookie": cookie, "Agentctl-Key": key}
    assert server.ask("GET", f"{API}/tasks", None, own, token=None).status == 200
    assert server.ask("POST", f"{API}/tasks", {"title": "t"}, own, token=None).status == 200


def test_cookies_of_other_servers_of_this_machine_do_not_matter(server: Server) -> None:
    cookie, key = login(server)
    name = cookie.partition("=")[0]
    for header in (
        f"a=1; {cookie}; b=2", f'json={{"a":[1,2]}}; {cookie}', f"a b=c; {cookie}", f"[x]=y; {cookie}",
        f"=; ;; {cookie}", f'q="\\"; {cookie}', f"{name}=forged; {cookie}", f"{cookie}; {name}=forged",
        f'x="unclosed; {cookie}', f"é=ü; {cookie}", f"{'x=' * 5000};{cookie}",
    ):  # fmt: skip
        headers = {"Cookie": header.encode().decode("latin-1"), "Agentctl-Key": key}
        assert server.ask("GET", f"{API}/tasks", None, headers, token=None).status == 200, header[:80]


def test_a_visit_from_elsewhere_gets_a_page_that_reloads_itself(server: Server) -> None:
    visit = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    for path in ("/", "/tasks/t1", "/search?q=x"):
        answer = server.ask("GET", path, None, visit, token=None)
        assert answer.status == 200
        assert b'http-equiv="refresh"' in answer.body
        assert b"script" not in answer.body
        assert answer.headers["Cache-Control"] == "no-store"
    for path in (f"{API}/tasks", "/metrics", "/healthz", "/task/session/x", "/answer/x"):
        refused(server.ask("GET", path, None, visit), 403)
    for odd in ({"Sec-Fetch-Mode": "no-cors"}, {"Sec-Fetch-Dest": "iframe"}, {"Sec-Fetch-Dest": "object"}):
        refused(server.ask("GET", "/", None, {**visit, **odd}), 403)
    refused(server.ask("POST", "/", b"{}", visit), 403)


def test_a_browser_without_the_token_gets_the_page_that_asks_for_it(server: Server) -> None:
    for path in ("/", "/tasks/t1", "/static/js/main.js"):
        answer = server.ask("GET", path, None, {"Accept": "text/html,*/*"}, token=None)
        assert (answer.status, answer.headers["Content-Type"]) == (401, "text/html; charset=utf-8")
        assert b"/static/open.js" in answer.body
    refused(server.ask("GET", f"{API}/tasks", None, {"Accept": "text/html"}, token=None), 401)


# -- files -------------------------------------------------------------------------------------------------------------


def test_anybody_gets_the_files_of_that_page_alone(server: Server) -> None:
    for path in ("/static/open.js", "/static/open.css"):
        assert server.ask("GET", path, None, token=None).status == 200
    for path in ("/static/open.html", "/static/js/main.js", "/static/index.html", "/static/js/open.js", "/static/",
                 "/static/open.js/", "/static//open.js", "/static/./open.js", "/static/open.js%00", "/static/OPEN.JS",
                 "/static/open.js;x", "/static/%2e/open.js"):  # fmt: skip
        refused(server.ask("GET", path, None, token=None), 401)
    refused(server.ask("POST", "/static/open.js", b"{}", token=None), 401)


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
        assert b" 401 " in busy.raw(request + b"\r\n").partition(b"\r\n")[0]
        found = busy.raw(request + b"Authorization: Bearer %s\r\n\r\n" % busy.token.encode())
        assert PROBLEM.encode() in found, found


# -- whatever it says --------------------------------------------------------------------------------------------------


def test_all_answers_have_the_headers_of_security(busy: Server) -> None:
    paths = [("GET", "/", {"Cookie": login(busy)[0]}), ("GET", "/static/open.js", {}), ("GET", "/nowhere", {}),
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
    ["Authorization", "Cookie", "Agentctl-Key", "Host", "Origin", "Sec-Fetch-Site", "Sec-Fetch-Mode", "Accept",
     "X-Forwarded-Host", "X-Forwarded-For", "X-Original-URL", "X-HTTP-Method-Override", "Forwarded", "X"]
)  # fmt: skip
_VALUES = _TEXTS | st.sampled_from(["Bearer ", "bearer x", "Bearer", "agentctl-1=", "localhost", "same-origin", "none"])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(_NAMES, _VALUES), max_size=6), st.sampled_from([f"{API}/tasks", "/metrics", "/", "/x"]))
def test_no_headers_let_anybody_in(server: Server, headers: list[tuple[str, str]], path: str) -> None:
    answer = server.ask("GET", path, None, headers, token=None)
    assert answer.status in {400, 401, 403} or b'http-equiv="refresh"' in answer.body
