"""At stake: whatever a worker writes and whatever a client sends, the server goes on, and what it sends is JSON."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from agentctl.adapters import eventlog
from tests.processes import variables_of, words_of
from tests.support import run, wait_until, worker
from tests.web.support import API, Server, new_task, spawned

pytestmark = pytest.mark.server

#: Values of a type that nobody expects there.
ODD: tuple[Any, ...] = (
    None, True, 0, -1, 10**400, 1e308, float("nan"), float("inf"), "", "\ud800", "\0\x1b[31m\u202e", "x" * 100_000,
    [], [[]], {}, {"": {"": []}}, ["\ud83d"],
)  # fmt: skip


def nested(depth: int) -> str:
    """Return lists within each other, as JSON."""
    return "[" * depth + "]" * depth


@pytest.fixture
def lived(server: Server) -> Iterator[Server]:
    """Return a server of a task with a worker that lives and asks."""
    new_task(server)
    spawned(server, "t1", ["agentctl", "interact", "ask", "Go?", "--kind", "confirm", "--id", "q1"], name="w", cwd="/")
    wait_until(lambda: server.get("/interact").done(), what="the worker to ask")
    yield server
    # By its files it may be anything by now: its own group of processes ends in any case.
    run("cancel", "--all", "--task", "t1", check=False)
    for process in psutil.process_iter():
        words = words_of(process)
        if str(server.root) in " ".join(words) or (
            variables_of(process).get("AGENTCTL_ROOT") == str(server.root) and "interact" in words
        ):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()


def goes_on(server: Server) -> None:
    """Check that everything is still answered, as JSON, and that no bug was noted."""
    for path in ("/tasks", "/tasks/t1", "/tasks/t1/list", "/tasks/t1/events", "/tasks/t1/tree", "/tasks/t1/usage",
                 "/tasks/t1/timeline", "/tasks/t1/timeline.svg", "/tasks/t1/interact", "/interact",
                 "/tasks/t1/workers/w", "/tasks/t1/workers/w/activity", "/tasks/t1/workers/w/activity?whole=true",
                 "/tasks/t1/workers/w/why", "/tasks/t1/workers/w/logs", "/tasks/t1/workers/w/tree",
                 "/tasks/t1/workers/w/result"):  # fmt: skip
        answer = server.get(path)
        assert answer.status < 500, (path, answer.body[:500])
        if "svg" not in path:
            assert answer.json is not None
    health = server.ask("GET", "/healthz")
    assert health.status == 200, health.body
    assert server.ask("GET", "/metrics").status == 200
    with server.stream("?fleet=true") as stream:
        assert stream.next().data["whole"] is True
    found = list((server.root.parent / "home").rglob("bugs.log"))
    assert not found, found[0].read_text()


def answers_as_declared(server: Server) -> None:
    """Ask for everything that is said of the worker and its task: what is answered has to be of the declared types."""
    named = {"task": "t1", "instance": "w", "agent": "general", "stream": "stdout"}
    for path, operations in server.get("/openapi.json").done()["paths"].items():
        if "get" not in operations or not path.startswith(API) or path in {f"{API}/events", f"{API}/openapi.json"}:
            continue  # The stream does not end.
        answer = server.get(path.removeprefix(API).format_map(named))
        assert answer.status < 500, (path, answer.body[:500])


def appended(file: Path, *lines: str | bytes) -> None:
    """Append lines as a worker could."""
    with file.open("ab") as out:
        for line in lines:
            out.write((line if isinstance(line, bytes) else line.encode("utf-8", "surrogatepass")) + b"\n")


def test_forged_events(lived: Server) -> None:
    log = lived.root / "tasks/t1/events.jsonl"
    kinds = ("agent.started", "agent.completed", "agent.failed", "agent.queued", "agent.blocked", "agent.retried",
             "agent.parked", "agent.near_limit", "interaction.requested", "interaction.responded", "subtask.created",
             "task.created", "message.sent", "agent.stalled", "result.declared", "x\r\n\r\nevent: fleet")  # fmt: skip
    keys = (
        "pid",
        "reason",
        "exitCode",
        "signal",
        "usage",
        "id",
        "taskId",
        "until",
        "window",
        "progress",
        "title",
        "at",
    )
    with lived.stream("?since=start") as stream:
        stream.greeting()
        lines = [
            json.dumps({"ts": odd if number % 3 else "2026-01-01T00:00:00.000Z", "type": kind, "taskId": odd, "by": odd,
                        "agentInstance": ("w", "forged", "a" * 70, "../x")[number % 4], "seq": odd,
                        "id": "x\r\ndata: y", "payload": {"agentInstance": "w", **dict.fromkeys(keys, odd)}})
            for number, odd in enumerate(ODD) for kind in kinds
        ]  # fmt: skip
        lines += [
            '{"type":"x","payload":' + nested(depth).replace("[", '{"a":').replace("]", "}").replace(":}", ":1}") + "}"
            for depth in (100, 300, 500, 800, 900, 950, 980, 100_000)
        ]
        lines += ["", "null", "[]", "{}", '{"type":"x","payload":{"n":NaN,"m":-Infinity,"l":' + "9" * 5000 + "}}"]
        appended(log, *lines, b"\xff\xfe", b'{"type":"x","payload":{"t":"' + b"y" * (3 << 20) + b'"}}',
                 b"z" * (5 << 20), b'{"type":"last","payload":{}}')  # fmt: skip
        told = stream.until(lambda one: one.event == "event" and one.data.get("type") == "last")
    assert {one.event for one in told} == {"event"}
    assert len(told) >= len(lines) + 4  # Others note events too.
    assert {one.data["taskId"] for one in told} == {"t1"}
    seqs = [one.data["seq"] for one in told]
    assert seqs == list(range(seqs[0], seqs[0] + len(seqs)))
    goes_on(lived)


def test_files_of_a_worker(lived: Server) -> None:
    folder = lived.root / "tasks/t1/agents/w"
    there = {file.name for file in folder.iterdir() if file.is_file()}
    kept = {"shim.json", "control", "exit.json", "spec.json", "worker.json", "stdout.log", "stderr.log"}
    names = {*there, "progress.json", "usage.json", "result.json", "worktree.json", "activity.jsonl"} - kept
    with lived.stream("?fleet=true") as stream:
        stream.next()
        for text in (
            "",
            "null",
            "[]",
            "{",
            nested(250),
            nested(900),
            nested(100_000),
            "\ud800",
            '{"a": NaN}',
            "9" * 5000,
        ):
            for name in names:
                (folder / name).write_bytes(text.encode("utf-8", "surrogatepass"))
            lived.get("/tasks/t1").done()
        goes_on(lived)
        for odd in ODD:
            fields = ("at", "percent", "text", "usage", "input", "output", "cached", "costUsd", "total", "changes",
                      "files", "summary", "artifacts", "path", "branch", "attempts", "tokens", "cost",
                      "models")  # fmt: skip
            document = json.dumps({**dict.fromkeys(fields, odd), "deep": {"usage": odd}})
            for name in ("progress.json", "usage.json", "result.json", "worktree.json"):
                (folder / name).write_text(document)
            appended(lived.root / "tasks/t1/events.jsonl", '{"type":"agent.stalled","agentInstance":"w","payload":{}}')
            answers_as_declared(lived)
        goes_on(lived)


def test_questions_of_a_worker(lived: Server) -> None:
    folder = lived.root / "tasks/t1/agents/w/interactions"
    file = folder / "q1.json"
    body = json.loads(file.read_text())
    deep = json.loads(nested(290))
    for key in (*body, "means", "arguments", "tool", "options", "default", "multiple", "other", "idle", "askedBy"):
        for odd in (*ODD, deep):
            file.write_text(json.dumps({**body, key: odd}))
            lived.get("/tasks/t1/interact").done()
        appended(lived.root / "tasks/t1/events.jsonl", '{"type":"agent.stalled","agentInstance":"w","payload":{}}')
        lived.get("/tasks/t1").done()
        lived.get("/interact").done()
    answer = lived.post("/tasks/t1/workers/w/interact/q1", {"answer": "yes", "shown": {"question": 5, "x": [1]}})
    assert answer.status in {200, 400, 404, 409}
    goes_on(lived)


def test_an_activity_of_a_worker(lived: Server) -> None:
    file = lived.root / "tasks/t1/agents/w/activity.jsonl"
    kinds = ("message", "thought", "tool", "agent", "question", "note", "progress", "usage", "x")
    for number, odd in enumerate(ODD):
        fields = dict.fromkeys(
            ("at", "id", "phase", "parent", "name", "text", "detail", "percent", "offset", "label", "cut", "problem"),
            odd,
        )
        named = {} if number % 2 else {"id": "i"}
        appended(file, *(json.dumps({**fields, **named, "type": kind}) for kind in kinds))
    answers_as_declared(lived)
    appended(file, *('{"type":"tool","detail":' + nested(depth) + "}" for depth in (100, 300, 600, 900, 980, 100_000)),
             b"\xff", b"", b"x" * (1 << 20))  # fmt: skip
    goes_on(lived)
    page = lived.get("/tasks/t1/workers/w/activity?from=0&limit=1000").done()
    assert page["begin"] == 0
    assert all(isinstance(row["offset"], int) for row in page["rows"])
    assert all(isinstance(row["label"], str) for row in page["rows"] if "label" in row and "problem" not in row)


def test_output_is_never_a_page(lived: Server) -> None:
    evil = "<script>alert(1)</script>\r\n\r\nHTTP/1.1 200 OK\r\nX: y\r\n\r\n<svg onload=alert(1)>\x1b]0;x"
    name = spawned(lived, "t1", ["printf", "%s", evil], name="evil")
    wait_until(lambda: lived.get(f"/tasks/t1/workers/{name}/logs").done()["ended"], what="it to end")
    raw = lived.get(f"/tasks/t1/workers/{name}/logs/stdout")
    assert raw.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert raw.headers["Content-Disposition"].startswith("attachment;")
    assert raw.headers["X-Content-Type-Options"] == "nosniff"
    picture = lived.get("/tasks/t1/timeline.svg")
    assert picture.headers["Content-Type"] == "image/svg+xml"
    assert "sandbox" in picture.headers["Content-Security-Policy"]
    assert b"<script" not in picture.body
    assert b"<svg onload" not in picture.body


def test_a_worker_with_the_token_gets_nothing(lived: Server) -> None:
    """Neither by reading, nor by the stream, nor by entering as a page does."""
    before = lived.get("/tasks").done()
    script = (
        "import http.client, json, sys\n"
        "host, port, token = sys.argv[1:]\n"
        "def ask(method, path, body=None):\n"
        "    c = http.client.HTTPConnection(host, int(port))\n"
        "    c.request(method, path, body, {'Authorization': 'Bearer ' + token, 'Content-Type': 'application/json'})\n"
        "    a = c.getresponse(); a.read(); return a.status\n"
        "print(ask('GET', '/api/v1/tasks'), ask('GET', '/api/v1/events'), ask('GET', '/metrics'), ask('GET', '/x'),\n"
        "      ask('GET', '/api/v1/tasks/t1/workers/w/logs/stdout'),\n"
        '      ask(\'POST\', \'/session\', \'{"as": "token", "nonce": "nnnnnnnnnnnnnnnnnnnnnn"}\'),\n'
        "      ask('POST', '/api/v1/tasks', '{\"title\": \"x\"}'),\n"
        "      ask('POST', '/api/v1/tasks/t1/workers/w/interact/q1', '{\"answer\": \"yes\"}'),\n"
        "      ask('POST', '/api/v1/tasks/t1/cancel', '{\"all\": true}'), ask('POST', '/task', '{}'))\n"
    )
    program = lived.root.parent / "worker.py"
    program.write_text(script)
    spawned(lived, "t1", [worker("exits")[0], str(program), lived.host, str(lived.port), lived.token], name="thief")
    wait_until(lambda: lived.get("/tasks/t1/workers/thief/logs").done()["ended"], what="it to end")
    assert lived.get("/tasks/t1/workers/thief/logs/stdout").body.split() == [
        b"403", b"403", b"403", b"200", *[b"403"] * 6,
    ]  # fmt: skip
    assert len(lived.get("/tasks").done()) == len(before)
    assert lived.get("/tasks/t1/workers/w").done()["status"] == "blocked"


def test_requests_that_are_smuggled(lived: Server) -> None:
    inner = b"POST /api/v1/tasks HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %s\r\n" % (
        lived.port, lived.token.encode(),
    )  # fmt: skip
    inner += b"Content-Type: application/json\r\nContent-Length: 15\r\n\r\n" + b'{"title":"bad"}'
    head = b"POST /session HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n" % lived.port
    for more in (
        b"Content-Length: 0\r\nContent-Length: %d\r\n\r\n" % len(inner),
        b"Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" % (5 + len(inner)),
        b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        b"Transfer-Encoding:\tchunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
        b"Content-Length: +0\r\n\r\n", b"Content-Length: 0x0\r\n\r\n", b"Content-Length : 0\r\n\r\n",
        b" Content-Length: 0\r\n\r\n", b"Content-Length: -1\r\n\r\n", b"X: y\nContent-Length: 0\n\n\r\n\r\n",
    ):  # fmt: skip
        answer = lived.raw(head + more, until=b"\r\n\r\n")
        assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 401 ", b"HTTP/1.1 415 ", b"HTTP/1.1 501 ")), (
            more,
            answer,
        )
        assert b" 200 OK" not in answer
    for path in (b"/api/v1/tasks\r\nX: y", b"/api/v1/ta sks", b"/api/v1/tasks\0", b"/api/v1/t\xc3\xa9", b"/api/v1/%"):
        answer = lived.raw(
            b"GET " + path + b" HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n\r\n" % lived.port
        )
        assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 401 ")), path
    assert lived.get("/tasks?x=%0d%0aSet-Cookie:%20a=b").headers["Set-Cookie"] is None
    assert len(lived.get("/tasks").done()) == 1
    goes_on(lived)


def test_patterns_are_matched_in_no_time(lived: Server) -> None:
    for text in ("a" * 2000, "\\" * 2000, '"' * 2000, "(a+)+$" * 300, "-" * 2000, " " * 2000):
        assert (
            lived.ask("GET", f"{API}/search?logs=true&terms={'%' + '%'.join(f'{ord(one):02x}' for one in text)}").status
            < 500
        )
        assert lived.get("/tasks", {"Cookie": text, "If-None-Match": text, "Range": f"bytes={text}"}).status == 200
        assert (
            lived.ask("GET", f"{API}/tasks", None, {"Cookie": text * 10, "Agentctl-Signed": text}, token=None).status
            == 401
        )
        assert lived.post(f"/tasks/t1/workers/w/interact/{'q' * 60}", {"answer": text}).status == 404


def test_it_needs_little_memory(lived: Server) -> None:
    process = psutil.Process(lived.process.pid)
    log = lived.root / "tasks/t1/events.jsonl"
    goes_on(lived)
    before = process.memory_info().rss
    big = b'{"type":"x","payload":{"t":"' + b"y" * (1 << 20) + b'"}}'
    for _ in range(40):
        appended(log, big)
    with lived.stream("?since=start") as stream:
        stream.greeting()
    first, count = 1, 0
    while (page := lived.get(f"/tasks/t1/events?from={first}&limit=5000").done())["events"]:
        first, count = page["next"], count + len(page["events"])
    assert count >= 42
    lived.get("/tasks/t1/events?before=1000000&limit=5000").done()
    lines = eventlog.LONGEST_LINE
    appended(lived.root / "tasks/t1/agents/w/activity.jsonl", b"[" * (lines * 4), b"{" * lines)
    lived.get("/tasks/t1/workers/w/activity").done()
    for _ in range(20):
        lived.ask("POST", "/session", b"[" * 7000, token=None)
        lived.ask("POST", f"{API}/tasks", b"[" * (6 << 20))
    clients = [lived.connected() for _ in range(60)]
    for client in clients:
        head = b"POST /session HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n" % lived.port
        client.__enter__().sendall(head + b"Content-Length: 8000000\r\n\r\n" + b"x" * 4000)
    grown = process.memory_info().rss - before
    for client in clients:
        client.__exit__(None, None, None)
    assert grown < 150 << 20, f"{grown >> 20} MiB"
    assert len(os.listdir(f"/proc/{lived.process.pid}/task")) < 60
