"""At stake: over HTTP a command does and answers what it does when its line is typed, whatever it is given."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.integration.test_standstill import stranded
from tests.support import run, wait_until, worker
from tests.web.support import API, Answered, Server, ended, new_task, serving, spawned

pytestmark = pytest.mark.server

#: What differs between two looks.
_CHANGES = frozenset({"durationSeconds", "to", "now", "path"})


def without_times(value: Any) -> Any:
    """Return a document without what time alone changes."""
    if isinstance(value, dict):
        return {key: without_times(item) for key, item in value.items() if key not in _CHANGES}
    return list(map(without_times, value)) if isinstance(value, list) else value


def asking(server: Server, task: str, *options: str, name: str = "q") -> str:
    """Start a worker that asks, and wait for its question."""
    spawned(server, task, ["agentctl", "interact", "ask", *options], name=name, cwd="/")
    wait_until(
        lambda: [one["agentInstance"] for one in server.get(f"/tasks/{task}/interact").done()],
        accept=lambda names: name in names, what=f"{name} to ask",
    )  # fmt: skip
    return name


@pytest.fixture
def task(server: Server) -> Iterator[str]:
    """Return a task with workers that have ended, well and badly."""
    found = new_task(server)
    for name, argv in (("good", ["sh", "-c", "echo out; echo err >&2"]), ("bad", ["sh", "-c", "exit 3"])):
        spawned(server, found, argv, name=name, cwd="/")
        ended(server, found, name)
    yield found
    if server.is_running and server.get(f"/tasks/{found}/list").status == 200:
        server.post(f"/tasks/{found}/cancel", {"all": True})


# -- the same as the command -------------------------------------------------------------------------------------------


def test_answers_are_those_of_the_commands(server: Server, task: str) -> None:
    at = ("--task", task)
    for path, command in {
        "/tasks": ["tasks"], "/templates": ["templates"], "/agents": ["agents", "list"],
        "/agents/general": ["agents", "show", "general"],
        "/search?terms=out&logs=true": ["search", "out", "--logs"], f"/tasks/{task}/list": ["list", *at],
        f"/tasks/{task}/search?terms=err&terms=r&logs=true": ["search", "err", "r", "--logs", *at],
        f"/tasks/{task}/tree": ["tree", *at], f"/tasks/{task}/tree?recursive=true&expand=good":
            ["tree", "--recursive", "--expand", "good", *at],
        f"/tasks/{task}/usage": ["usage", *at], f"/tasks/{task}/timeline": ["timeline", *at],
        f"/tasks/{task}/worktrees": ["worktrees", "list", *at],
        f"/tasks/{task}/notify": ["notify", "list", *at], f"/tasks/{task}/workers/good": ["show", "good", *at],
        f"/tasks/{task}/workers/good/why": ["why", "good", *at],
        f"/tasks/{task}/workers/good/result": ["result", "good", *at],
        f"/tasks/{task}/workers/bad/result": ["result", "bad", *at],
        f"/tasks/{task}/workers/good/diff": ["worktrees", "diff", "good", *at],
    }.items():  # fmt: skip
        answer, printed = server.get(path), run(*command, "--json", check=False)
        code = int(answer.headers.get("Agentctl-Exit-Code", 0))
        if answer.status == 200:
            lines = printed.json_lines if command[0] == "search" and not printed.out.startswith("[") else None
            assert without_times(answer.json) == without_times(lines if lines is not None else printed.json), path
        else:
            code = answer.problem["code"]
            assert printed.err.splitlines()[0] == f"error: {answer.problem['detail']}", path
        assert code == printed.code, path


def test_questions_are_those_of_the_commands(server: Server, task: str) -> None:
    asking(server, task, "Which?", "--kind", "select", "--option", "a=A", "--option", "b=B", "--id", "q1")
    for path, command in {
        "/interact": ["interact", "list"], f"/tasks/{task}/interact": ["interact", "list", "--task", task],
    }.items():  # fmt: skip
        assert server.get(path).done() == run(*command, "--json").json, path


def test_errors_are_those_of_the_commands(server: Server, task: str) -> None:
    at = ("--task", task)
    for method, path, body, command in (
        ("GET", "/tasks/nothing/list", None, ["list", "--task", "nothing"]),
        ("GET", f"/tasks/{task}/workers/nothing", None, ["show", "nothing", *at]),
        ("GET", f"/tasks/{task}/workers/nothing/why", None, ["why", "nothing", *at]),
        ("GET", "/agents/nothing", None, ["agents", "show", "nothing"]),
        ("POST", f"/tasks/{task}/workers/good/pause", {}, ["pause", "good", *at]),
        ("POST", f"/tasks/{task}/workers/good/send", {"text": "x"}, ["send", "good", "x", *at]),
        ("POST", f"/tasks/{task}/workers/good/resume", {"prompt": "x"}, ["resume", "good", "x", *at]),
        ("POST", f"/tasks/{task}/cancel", {}, ["cancel", *at]),
        ("POST", f"/tasks/{task}/cancel", {"instances": ["nothing"]}, ["cancel", "nothing", *at]),
        ("POST", "/tasks", {"title": "x", "id": task}, ["new", "x", "--id", task]),
        ("POST", "/tasks", {"title": "x", "template": "nothing"}, ["new", "x", "--template", "nothing"]),
        ("POST", "/tasks", {"title": "x", "max_concurrent": -1}, ["new", "x", "--max-concurrent", "-1"]),
        ("POST", f"/tasks/{task}/wait-any", {"consumer": "../x"}, ["wait-any", "--consumer", "../x", *at]),
        ("POST", f"/tasks/{task}/spawn-template", {}, ["spawn-template", *at]),
        ("POST", f"/tasks/{task}/workers/good/worktree/remove", {}, ["worktrees", "remove", "good", *at]),
    ):  # fmt: skip
        told = server.ask(method, f"{API}{path}", body).problem
        printed = run(*command, "--json", check=False)
        error, *more = [line for line in printed.err.splitlines() if line.startswith(("error: ", "hint: "))]
        assert error == f"error: {told['detail']}", path
        assert bool(more) == bool(told["hint"]), path  # Some are worded as requests.
        assert told["code"] == printed.code, path
        statuses = {1: 409, 2: 400, 3: 404, 4: 409, 5: 429, 6: 409}
        is_taken = body == {"title": "x", "id": task}
        assert told["status"] == (409 if is_taken else statuses[told["code"]]), path


# -- values ------------------------------------------------------------------------------------------------------------


def test_values_are_never_taken_for_options(server: Server, task: str) -> None:
    for text in (
        "--all",
        "-x",
        "--help",
        "--json",
        "--",
        "-",
        "a b",
        "a\nb",
        "'\"$(id)`;&|",
        "é\u2028\U0001f600",
        "--title=x",
    ):
        answer = server.post("/tasks", {"title": text})
        made = answer.done()["taskId"]
        titles = {one["taskId"]: one["title"] for one in server.get("/tasks").done()}
        assert titles[made] == text
        name = spawned(server, task, ["printf", "%s", text])
        ended(server, task, name)
        assert server.get(f"/tasks/{task}/workers/{name}/logs/stdout").body.decode() == text
        assert server.get(f"/search?terms={_quoted(text)}").status in {200, 400, 404}
    for name in ("--all", "-x", "--help"):
        assert server.post(f"/tasks/{task}/cancel", {"instances": [name]}).problem["name"] == "USAGE"
        assert server.get(f"/tasks/{task}/workers/{name}").problem["name"] == "USAGE"
    assert server.get(f"/tasks/{task}/list?all=--help").problem["name"] == "USAGE"


def _quoted(text: str) -> str:
    from urllib.parse import quote

    return quote(text, safe="")


def test_a_long_text(server: Server, task: str) -> None:
    text = "\u00e9" * 100_000
    name = spawned(server, task, ["cat"], stdin=text) if _takes(server, "stdin") else None
    if name is not None:
        ended(server, task, name)
        assert server.get(f"/tasks/{task}/workers/{name}/logs/stdout").body.decode() == text
    prompt = server.post(f"/tasks/{task}/spawn", {"prompt": "x" * 200_000, "agent": "nothing"}).problem
    assert "nothing" in prompt["detail"]
    assert server.post("/tasks", {"title": "x" * (9 << 20)}).problem["status"] == 413
    assert server.post("/tasks", b'{"title": "' + b"x" * (7 << 20) + b'"}').problem["status"] == 400


def _takes(server: Server, key: str) -> bool:
    described = server.get("/openapi.json").done()["paths"][f"{API}/tasks/{{task}}/spawn"]["post"]
    return key in described["requestBody"]["content"]["application/json"]["schema"]["properties"]


def test_values_that_are_refused(server: Server, task: str, tmp_path: Path) -> None:
    before = server.get("/tasks").done()
    bodies: list[Any] = [
        b'{"title": "a\\u0000b"}', b'{"title": "\\ud800"}', b"[" * 100_000, b'{"title": "a", "title": "b"}',
        b'{"title": "a", "max_concurrent": NaN}', b'{"title": "a", "max_concurrent": 1e999}', [], 5, "x", b"null",
        {"title": 5}, {"title": ["x"]}, {"title": "x", "nothing": 1}, {"title": "x", "max_concurrent": "2"},
        {"title": "x", "max_concurrent": 1.5}, {"title": "x", "maxConcurrent": 1, "max_concurrent": 1},
        {"title": "x", "max_concurrent": 10**400}, {"title": "x", "timeout_seconds": -1},
        {"title": "x", "start": "yes"},
        {"title": "x", "root": "/tmp"}, {"title": "x", "force": True}, {"title": "x", "json": False},
        {"title": "x", "set": [["a", "b"]]}, b'{"title": "x"', b"\xff", {"title": "x", "help": True},
        b'{"title": ' + b"9" * 10_000 + b"}",
    ]  # fmt: skip
    for body in bodies:
        assert server.post("/tasks", body).problem["name"] == "USAGE", body
    for body in ({"argv": []}, {"argv": "true"}, {"argv": ["a\0"]}, {}, {"argv": ["true"], "prompt": "x"},
                 {"argv": ["true"], "timeoutSeconds": 1, "timeout_seconds": 1},
                 {"argv": ["true"], "retries": 1.5}, {"argv": ["true"], "env": {"a": 1}},
                 {"argv": ["true"], "name": "../x"}, {"argv": ["no-such-program"]},
                 {"argv": ["true"], "cwd": str(tmp_path / "missing")}):  # fmt: skip
        assert server.post(f"/tasks/{task}/spawn", body).problem["name"] == "USAGE", body
    batches: list[Any] = [
        {}, {"workers": []}, {"workers": [5]}, {"workers": [{"argv": ["true"]}], "name": "x"},
        {"workers": [{"argv": ["true"], "nothing": 1}]},
        {"workers": [{"argv": ["true"], "maxTurns": 1, "max_turns": 1}]},
    ]  # fmt: skip
    for several in batches:
        assert server.post(f"/tasks/{task}/spawn-batch", several).problem["name"] == "USAGE", several
    assert server.get("/tasks").done() == before
    assert len(server.get(f"/tasks/{task}/list").done()) == 2


def test_one_point_zero_is_a_whole_number(server: Server) -> None:
    assert server.post("/tasks", b'{"title": "x", "maxConcurrent": 2.0, "timeoutSeconds": 1e-5}').status in {201, 400}
    assert server.post("/tasks", b'{"title": "y", "maxConcurrent": 2.0}').status == 201


# -- starting ----------------------------------------------------------------------------------------------------------


def test_spawning(server: Server, task: str) -> None:
    done = server.post(
        f"/tasks/{task}/spawn", {"argv": ["sh", "-c", "echo $A"], "env": {"A": "b"}, "name": "n", "cwd": "/"}
    )
    assert done.done()["agentInstance"] == "n"
    assert (done.status, done.headers["Location"]) == (201, f"{API}/tasks/{task}/workers/n")
    assert server.ask("GET", done.headers["Location"]).done()["agentInstance"] == "n"
    ended(server, task, "n")
    assert server.get(f"/tasks/{task}/workers/n/logs/stdout").body == b"b\n"


def test_the_same_key_starts_one_worker(server: Server, task: str) -> None:
    with ThreadPoolExecutor(8) as threads:
        answers = list(
            threads.map(lambda _: server.post(f"/tasks/{task}/spawn", {"argv": ["true"], "key": "k"}), range(8))
        )
    rows = [answer.done() for answer in answers]
    assert sorted(answer.status for answer in answers) == [200] * 7 + [201]
    assert (
        len({(row["agentInstance"], answer.headers["Location"]) for row, answer in zip(rows, answers, strict=True)})
        == 1
    )
    assert [row["reused"] for row in rows].count(False) == 1
    assert len(server.get(f"/tasks/{task}/list").done()) == 3


def test_a_batch_is_started_as_a_whole_or_not_at_all(server: Server, task: str) -> None:
    good = {"argv": ["true"], "name": "one"}
    path = f"/tasks/{task}/spawn-batch"
    assert server.post(path, {"workers": [good, {"argv": ["true"], "name": "one"}]}).status == 400
    assert len(server.get(f"/tasks/{task}/list").done()) == 2
    answer = server.post(path, {"workers": [good, {"argv": ["true"], "after": ["one"], "afterAny": True}]})
    rows = answer.done()
    assert (answer.status, answer.headers["Location"]) == (201, None)
    assert rows[0]["agentInstance"] == "one"
    assert len(rows) == 2
    told = server.post(f"/tasks/{task}/spawn", {"batch": [good]}).problem
    assert (told["name"], "spawn-batch" in told["hint"]) == ("USAGE", True)


def test_no_slot(server: Server) -> None:
    server.post("/tasks", {"title": "t", "id": "t", "max_concurrent": 1}).done()
    spawned(server, "t", worker("sleeps", 60), name="a")
    told = server.post("/tasks/t/spawn", {"argv": ["true"]}).problem
    assert (told["status"], told["name"], told["code"]) == (429, "NO_SLOT", 5)
    assert server.post("/tasks/t/spawn", {"argv": ["true"], "queue": True}).done()["status"] == "queued"
    leaves = {"shell": "true", "queue": False}
    assert server.post("/tasks/t/spawn-batch", {"workers": [leaves, leaves]}).problem["name"] == "NO_SLOT"
    server.post("/tasks/t/cancel", {"all": True}).done()


def test_a_task_that_lets_starts_wait(server: Server) -> None:
    server.post("/tasks", {"title": "t", "id": "t", "max_concurrent": 0, "queue": True}).done()
    assert server.post("/tasks/t/spawn", {"shell": "true"}).done()["status"] == "queued"
    assert server.post("/tasks/t/spawn", {"shell": "true", "queue": False}).problem["name"] == "NO_SLOT"
    server.post("/tasks/t/cancel", {"all": True}).done()


# -- waiting -----------------------------------------------------------------------------------------------------------


def test_each_end_is_given_once(server: Server, task: str) -> None:
    for name in ("w1", "w2"):
        spawned(server, task, ["true"], name=name)
    with ThreadPoolExecutor(6) as threads:
        answers = list(threads.map(lambda _: server.post(f"/tasks/{task}/wait-any", {"timeoutSeconds": 20}), range(6)))
    given = [answer.done()["agentInstance"] for answer in answers if answer.status == 200]
    assert sorted(given) == ["bad", "good", "w1", "w2"]
    assert {answer.problem["name"] for answer in answers if answer.status != 200} == {"NOTHING_LEFT"}
    again = server.post(f"/tasks/{task}/wait-any", {"consumer": "another", "timeout_seconds": 0})
    assert again.done()["agentInstance"] == "good"


def test_a_wait_that_is_over(server: Server, task: str) -> None:
    for _ in range(2):
        server.post(f"/tasks/{task}/wait-any").done()
    spawned(server, task, worker("sleeps", 60), name="s")
    for command in ("wait-any", "wait-all"):
        answer = server.post(f"/tasks/{task}/{command}", {"timeoutSeconds": 0.1})
        told = answer.done()
        assert (told["timedOut"], answer.headers["Agentctl-Exit-Code"]) == (True, "4")
        assert {row["agentInstance"]: row["status"] for row in told["workers"]}["s"] == "running"
    assert server.post(f"/tasks/{task}/wait-any", {"timeout_seconds": 301}).problem["name"] == "USAGE"
    assert server.post(f"/tasks/{task}/wait-any", {"for": ["nothing"]}).problem["name"] == "USAGE"
    for kinds in ("completed,failed", ["completed", "failed"]):  # As a command line has it, and as a list.
        assert server.post(f"/tasks/{task}/wait-any", {"for": kinds, "timeoutSeconds": 0}).done()["timedOut"]
    told = server.post(f"/tasks/{task}/workers/s/wait", {"timeout_seconds": 0}).done()
    assert [row["agentInstance"] for row in told["workers"]] == ["s"]


def test_an_end_is_not_lost_with_its_client(server: Server, task: str) -> None:
    before = _pipes(server)
    for _ in range(2):
        server.post(f"/tasks/{task}/wait-any").done()
    threads = _threads_of(server)
    for number in range(4):
        name = asking(server, task, "Go?", "--kind", "confirm", name=f"x{number}")
        _until_waits(server, before, 0)
        head = _request(server, "POST", f"/tasks/{task}/wait-any", {"timeout_seconds": 60, "for": "completed"})
        clients = [server.connected() for _ in range(3)]
        for client in clients:
            client.__enter__().sendall(head)
        _until_waits(server, before, 3)
        for client in clients:  # They leave before there is an end; it is not given to them.
            client.__exit__(None, None, None)
        if number % 2:
            _until_waits(server, before, 0)
        server.post(f"/tasks/{task}/workers/{name}/interact/q1", {"answer": "yes"})
        answer = server.post(f"/tasks/{task}/wait-any", {"timeout_seconds": 20, "for": "completed"}).done()
        assert (answer["agentInstance"], answer["status"]) == (name, "completed")
    assert _threads_of(server) < threads + 20


def _threads_of(server: Server) -> int:
    return len(os.listdir(f"/proc/{server.process.pid}/task"))


def _until_waits(server: Server, before: int, count: int) -> None:
    """Wait until so many requests are carried out: each has a pipe, of two ends, beside those of before."""
    wait_until(lambda: _pipes(server), accept=lambda pipes: pipes == before + 2 * count, what=f"{count} waits to go on")


def _pipes(server: Server) -> int:
    folder = f"/proc/{server.process.pid}/fd"
    links = []
    for name in os.listdir(folder):
        try:
            links.append(os.readlink(f"{folder}/{name}"))
        except OSError:
            pass  # It was closed meanwhile.
    return sum(link.startswith("pipe:") for link in links)


def _request(server: Server, method: str, path: str, body: Any) -> bytes:
    data = json.dumps(body).encode()
    return (
        f"{method} {API}{path} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nAuthorization: Bearer {server.token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
    ).encode() + data


def test_waiting_for_all(server: Server, task: str) -> None:
    answer = server.post(f"/tasks/{task}/wait-all")
    assert answer.headers["Agentctl-Exit-Code"] == "7"
    assert {one["agentInstance"]: one["status"] for one in answer.done()} == {"good": "completed", "bad": "failed"}
    assert server.post(f"/tasks/{task}/workers/good/wait").headers["Agentctl-Exit-Code"] is None


# -- questions ---------------------------------------------------------------------------------------------------------


def test_answering(server: Server, task: str) -> None:
    asking(server, task, "Which?", "--kind", "select", "--option", "a=A", "--option", "b=B", "--id", "q1")
    (question,) = server.get("/interact").done()
    path = f"/tasks/{task}/workers/q/interact/q1"
    assert server.post(path, {"answer": "c"}).problem["name"] == "USAGE"
    assert server.post(path, {}).problem["name"] == "USAGE"
    assert server.post(f"{path}x", {"answer": "a"}).problem["name"] == "NOT_FOUND"
    other = {**question, "question": "What?"}
    assert server.post(path, {"answer": "a", "shown": other}).problem["name"] == "REFUSED"
    assert server.get("/interact").done() == [question]
    with ThreadPoolExecutor(2) as threads:
        answers = list(threads.map(lambda one: server.post(path, {"answer": one, "shown": question}), "ab"))
    assert sorted(answer.status for answer in answers) == [200, 409]
    (given,) = [answer.done() for answer in answers if answer.status == 200]
    assert given == {"taskId": task, "agentInstance": "q", "id": "q1", "answer": given["answer"]}
    ended(server, task, "q")
    assert server.get(f"/tasks/{task}/workers/q/logs/stdout").body.decode().strip() == given["answer"]
    assert server.post(path, {"answer": given["answer"]}).done() == given
    assert server.post(path, {"answer": "b" if given["answer"] == "a" else "a"}).problem["name"] == "REFUSED"


def test_looking_at_an_end(server: Server, task: str) -> None:
    asking(server, task, "Go?", "--kind", "confirm")
    assert server.post(f"/tasks/{task}/workers/q/seen").problem["name"] == "NOT_FOUND"
    end = server.get(f"/tasks/{task}/workers/bad").done()["endedAt"]
    assert server.post(f"/tasks/{task}/workers/bad/seen").done() == {"agentInstance": "bad", "seen": end}


# -- in pages ----------------------------------------------------------------------------------------------------------


def pages(server: Server, path: str, limit: int) -> Iterator[list[Any]]:
    """Yield the pages of a list, by the addresses that each has of the next one."""
    target: str | None = f"{API}{path}{'&' if '?' in path else '?'}limit={limit}"
    while target is not None:
        answer = server.ask("GET", target)
        yield answer.done()
        link = answer.headers["Link"]
        assert link is None or link.endswith('>; rel="next"')
        target = None if link is None else link[1 : link.index(">")]


def test_lists_have_pages(server: Server, task: str) -> None:
    for number in range(3):
        server.post("/tasks", {"title": f"more {number}"}).done()
    spawned(server, task, ["true"], name="third")
    ended(server, task, "third")
    for path in ("/tasks", f"/tasks/{task}/list", "/interact", f"/tasks/{task}/worktrees", f"/tasks/{task}/interact",
                 "/search?terms=more", f"/tasks/{task}/search?terms=o&logs=true"):  # fmt: skip
        whole = server.get(path).done()
        for limit in (1, 2, 100):
            found = list(pages(server, path, limit))
            assert without_times([row for page in found for row in page]) == without_times(whole), path
            assert all(len(page) <= limit for page in found)
    for query in ("cursor=0123456789abcdef", "limit=0", "limit=2&cursor=x"):
        assert server.get(f"/tasks?{query}").problem["status"] == 400
    assert server.get(f"/tasks?limit=2&cursor={'0' * 16}").problem["status"] == 410


def test_nothing_found_is_an_empty_list(server: Server, task: str) -> None:
    answer = server.get("/search?terms=nothing-at-all")
    assert (answer.done(), answer.headers["Agentctl-Exit-Code"]) == ([], "3")
    assert server.get("/tasks/nothing/search?terms=x").status == 404


@pytest.mark.parametrize(
    ("request_", "detail", "words"),
    [
        (("GET", "/search?terms=%20", None), "cannot search for ' ': there is nothing to look for",
         ["GET /api/v1/openapi.json says what search takes"]),
        (("GET", "/tasks/{}/search?terms=x&archived=true", None), "unknown parameter 'archived'", ["known: "]),
        (("GET", "/tasks/{}/tree?recursive=true&instance=good", None),
         "one worker is named, and those of all sub-tasks are meant", ["leave out its name, or recursive"]),
        (("POST", "/tasks/{}/cancel", {}), "no worker is named or selected",
         ["GET …/list shows them", "or give all"]),
        (("POST", "/tasks/{}/retry", {}), "no worker is named",
         ["name them", "or select them by failed, status, agent or filter"]),
        (("POST", "/tasks/{}/retry", {"failed": True, "key": "k"}), "a key is for workers that are named",
         ["a selection has others the next time: name them"]),
        (("POST", "/tasks/{}/spawn", {"argv": ["true"], "reuse": True, "key": "k"}),
         "the body: reuse and a key exclude each other: each says what counts as the same", []),
        (("POST", "/tasks/{}/spawn", {"argv": ["true"], "cpus": 2}), "the body: cpus is for a worker on a node",
         ["runner: slurm places it on one"]),
        (("POST", "/tasks/{}/spawn", {"argv": ["true"], "afterAny": True}), "the body: afterAny goes with after", []),
        (("POST", "/tasks/{}/spawn-batch", {"workers": [{"argv": ["true"]}, {"argv": ["true"], "afterAny": True}]}),
         "worker 2: afterAny goes with after", []),
        (("POST", "/tasks/{}/spawn", {"argv": ["true"], "after": ["../x"]}), "the body: after '../x' is not a name",
         ["use 1 to 64"]),
        (("POST", "/tasks/{}/spawn", {"prompt": "x", "maxTurns": 0}),
         "the body: maxTurns must be at least 1, not 0", []),
        (("POST", "/tasks/{}/spawn", {"argv": ["true"], "outputSchema": "x"}),
         "the body: outputSchema is for an agent, and argv for a command: give one of them", []),
        (("POST", "/tasks/{}/spawn", {"argv": ["true"], "runnerArg": ["-n"]}),
         "the body: runnerArg is for a worker on a node", ["runner: slurm places it on one"]),
        (("POST", "/tasks", {"title": "x", "set": ["a=b"]}), "set is for templates",
         ["GET /api/v1/templates lists them"]),
        (("POST", "/tasks", {"template": "review", "set": ["a"]}), "set 'a' is not of the form K=V", []),
        (("GET", "/tasks/more/workers/good", None), "no worker 'good' in task more",
         ["good is in another task: GET /api/v1/tasks/{}/workers/good", "known: none"]),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_in_words_of_a_request(
    server: Server, task: str, request_: tuple[str, str, Any], detail: str, words: list[str]
) -> None:
    method, path, body = request_
    server.post("/tasks", {"title": "more", "id": "more"}).done()
    at = path.replace("{}", task)
    told = (server.get(at) if method == "GET" else server.post(at, body)).problem
    assert told["detail"] == detail
    steps = [one["words"] for one in told["steps"]]
    assert len(steps) == len(words)
    assert all(one.startswith(beginning.replace("{}", task)) for one, beginning in zip(steps, words, strict=True)), told
    assert "--" not in json.dumps(told)


def test_a_worker_that_another_task_has_is_told_with_that_task(server: Server, task: str) -> None:
    server.post("/tasks", {"title": "more", "id": "more"}).done()
    there, known = server.get("/tasks/more/workers/good").problem["steps"]
    assert (there["step"], there["of"], there["task"]) == ("in another task", "good", task)
    assert (known["step"], known["task"]) == ("", "")


# -- files of a result -------------------------------------------------------------------------------------------------


def test_a_file_that_a_result_names(server: Server, task: str, tmp_path: Path) -> None:
    folder = tmp_path / "reported"
    folder.mkdir()
    for name, data in (("report.md", b"# found\n<script>"), ("blob @x;.bin", b"\0\1"), ("big.txt", b"ab" * (3 << 20))):
        (folder / name).write_bytes(data)
        spawned(server, task, ["agentctl", "report", "result", "--file", name], name=f"r{name[:3]}", cwd=str(folder))
        ended(server, task, f"r{name[:3]}")
    report = f"/tasks/{task}/workers/rrep/file?path={_quoted(str(folder / 'report.md'))}"
    answer = server.get(report)
    assert (answer.status, answer.body, answer.headers["Content-Type"]) == (
        200, b"# found\n<script>", "text/plain; charset=utf-8",
    )  # fmt: skip
    assert answer.headers["Content-Disposition"] == 'attachment; filename="report.md"'
    assert answer.headers["Content-Security-Policy"] == "default-src 'none'; sandbox"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    part = server.get(report, {"Range": "bytes=2-6"})
    assert (part.status, part.body, part.headers["Content-Range"]) == (206, b"found", "bytes 2-6/16")
    odd = server.get(f"/tasks/{task}/workers/rblo/file?path={_quoted(str(folder / 'blob @x;.bin'))}")
    assert odd.headers["Content-Type"] == "application/octet-stream"
    assert odd.headers["Content-Disposition"] == 'attachment; filename="blob_@x_.bin"'
    big = server.get(f"/tasks/{task}/workers/rbig/file?path={_quoted(str(folder / 'big.txt'))}")
    assert big.body == b"ab" * (3 << 20)
    for path in ("/etc/passwd", str(folder), "report.md", f"{folder}/../reported/report.md"):
        assert server.get(f"/tasks/{task}/workers/rrep/file?path={_quoted(path)}").status == 404, path
    assert server.get(report).headers["Agentctl-File-State"] == "same"
    assert server.get(f"/tasks/{task}/workers/rrep/result").done()["files"][0]["now"] == "same"
    (folder / "report.md").write_text("# other\n<script>")
    for headers in ({}, {"Range": "bytes=0-3"}):
        assert server.get(report, headers).headers["Agentctl-File-State"] == "changed"
    assert server.get(f"/tasks/{task}/workers/rrep/result").done()["files"][0]["now"] == "changed"
    (folder / "report.md").unlink()
    assert server.get(report).problem["status"] == 404
    assert server.get(f"/tasks/{task}/workers/rrep/result").done()["files"][0]["now"] == "gone"


def test_a_file_with_a_name_that_no_file_can_have_is_not_there(server: Server, task: str, tmp_path: Path) -> None:
    folder = tmp_path / "named"
    folder.mkdir()
    paths = [str(folder / name) for name in ("x" * 256, f"{'x' * 256}/x", "missing")]
    report = json.dumps({"summary": "s", "artifacts": [{"path": path} for path in paths]})
    argv = ["sh", "-c", f"echo '{report}' > $AGENTCTL_AGENT_DIR/result.json"]
    spawned(server, task, argv, name="named", cwd=str(folder))
    ended(server, task, "named")
    files = server.get(f"/tasks/{task}/workers/named/result").done()["files"]
    assert [one["now"] for one in files] == ["gone"] * 3
    for path in paths:
        assert server.get(f"/tasks/{task}/workers/named/file?path={_quoted(path)}").problem["status"] == 404, path


# -- where paths lead --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    ["/api", "/api/", "/api/v1", "/api/v1/", "/api/v1/nothing", "/api/v2/tasks", "//api/v1/tasks", "/healthz/",
     "/healthz/x", "/metrics/", "/task/x", "/session/"],
)  # fmt: skip
def test_what_is_no_path_of_the_interface_leads_nowhere_by_any_method(server: Server, path: str) -> None:
    for method in ("GET", "POST", "PUT", "DELETE", "OPTIONS", "TRACE"):
        answer = server.ask(method, path, None if method == "GET" else {})
        assert (answer.status, answer.problem["name"]) == (404, "NOT_FOUND"), method
    assert server.ask("HEAD", path).status == 404


def test_a_path_of_the_page_is_only_read_and_any_other_is_no_path(server: Server) -> None:
    for path in ("/", "/tree", "/search", "/tasks/t1", "/tasks/t1/workers/good/logs"):
        assert server.ask("GET", path).headers["Content-Type"] == "text/html; charset=utf-8"
        answer = server.ask("POST", path, {})
        assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD"), path
    assert server.ask("POST", "/nothing", {}).problem["status"] == 404


# -- what HTTP has -----------------------------------------------------------------------------------------------------


def test_what_the_client_has_is_not_sent_again(server: Server, task: str) -> None:
    for path in ("/tasks", f"/tasks/{task}", f"/tasks/{task}/list", f"/tasks/{task}/workers/good", "/about",
                 "/openapi.json",
                 f"/tasks/{task}/workers/good/activity", f"/tasks/{task}/events", f"/tasks/{task}/timeline.svg",
                 f"/tasks/{task}/workers/good/logs", "/tasks?x",
                 f"/tasks/{task}/workers/good/logs/stdout"):  # fmt: skip
        first = server.get(path)
        if first.status != 200:
            assert first.problem["name"] == "USAGE"
            continue
        tag = first.headers["ETag"]
        for given in (tag, f"W/{tag}", f'"x", {tag}', f"{tag},", "*"):
            again = server.get(path, {"If-None-Match": given})
            assert (again.status, again.body, again.headers["ETag"]) == (304, b"", tag), path
        assert server.get(path, {"If-None-Match": '"x"'}).status == 200
        head = server.ask("HEAD", f"{API}{path}")
        assert (head.status, head.body, head.headers["ETag"]) == (200, b"", tag)
        assert head.headers["Content-Length"] == str(len(first.body))
    before = server.get("/tasks").headers["ETag"]
    spawned(server, task, ["true"], name="more")
    ended(server, task, "more")
    assert server.get("/tasks", {"If-None-Match": before}).status == 200
    assert server.get("/tasks", {"If-None-Match": server.get("/tasks").headers["ETag"]}).status == 304


def test_a_part_is_of_what_the_client_has(server: Server, task: str) -> None:
    for name, size in (("short", 10), ("long", 5_000_000)):
        spawned(server, task, ["head", "-c", str(size), "/dev/zero"], name=name)
        ended(server, task, name)
    path = f"/tasks/{task}/workers/short/logs/stdout"
    tag, part = server.get(path).headers["ETag"], {"Range": "bytes=2-4"}
    assert server.get(path, part).headers["ETag"] == tag
    for known, status in (
        (tag, 206),
        ('"old"', 200),
        (f"W/{tag}", 200),
        ("Mon, 30 Nov 2020 00:00:00 GMT", 200),
        ("", 200),
    ):
        answer = server.get(path, {**part, "If-Range": known})
        assert (answer.status, len(answer.body)) == (status, 3 if status == 206 else 10), known
    assert server.get(path, {"If-Range": '"old"'}).status == 200
    for asked in (part, {"Range": "bytes=99-"}, {**part, "If-Range": '"old"'}):
        for known in (tag, "*"):
            again = server.get(path, {**asked, "If-None-Match": known})
            assert (again.status, again.body, again.headers["ETag"]) == (304, b"", tag)
        assert server.get(path, {**asked, "If-None-Match": '"old"'}).status != 304
    path = f"/tasks/{task}/workers/long/logs/stdout"
    assert server.get(path, {"If-None-Match": "*"}).status == 304
    assert server.get(path, part).status == 206
    whole = server.get(path, {**part, "If-Range": tag})
    assert (whole.status, len(whole.body)) == (200, 5_000_000)
    assert server.get(f"/tasks/{task}/workers/nobody/logs/stdout", {"If-None-Match": "*"}).status == 404


def test_ranges_of_an_output(server: Server, task: str) -> None:
    spawned(server, task, ["printf", "0123456789"], name="ten")
    spawned(server, task, ["true"], name="none")
    for name in ("ten", "none"):
        ended(server, task, name)
    path = f"/tasks/{task}/workers/ten/logs/stdout"
    for wanted, status, told, body in (
        (None, 200, None, b"0123456789"), ("bytes=0-3", 206, "bytes 0-3/10", b"0123"),
        ("bytes=4-", 206, "bytes 4-9/10", b"456789"), ("bytes=-3", 206, "bytes 7-9/10", b"789"),
        ("bytes=-99", 206, "bytes 0-9/10", b"0123456789"), ("bytes=9-99", 206, "bytes 9-9/10", b"9"),
        ("bytes=10-", 416, "bytes */10", b""), ("bytes=99-100", 416, "bytes */10", b""),
        ("bytes=-0", 416, "bytes */10", b""), ("bytes=0-1,3-4", 200, None, b"0123456789"),
        ("bytes=5-3", 200, None, b"0123456789"), ("lines=1-2", 200, None, b"0123456789"),
        ("bytes=", 200, None, b"0123456789"), ("bytes=-", 200, None, b"0123456789"),
        ("bytes=a-b", 200, None, b"0123456789"), (f"bytes={'9' * 40}-", 200, None, b"0123456789"),
        ("bytes=\u0661-", 200, None, b"0123456789"), ("bytes=999999999999999999-", 416, "bytes */10", b""),
    ):  # fmt: skip
        headers = {} if wanted is None else {"Range": wanted.encode().decode("latin-1")}
        answer = server.get(path, headers)
        assert (answer.status, answer.headers["Content-Range"], answer.body) == (status, told, body), wanted
        assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
        assert answer.headers["Accept-Ranges"] == "bytes"
        assert answer.headers["Content-Disposition"] == 'attachment; filename="ten.stdout"'
    assert server.get(f"/tasks/{task}/workers/none/logs/stdout").status == 200
    assert server.get(f"/tasks/{task}/workers/none/logs/stdout", {"Range": "bytes=0-"}).status == 416
    assert server.get(f"/tasks/{task}/workers/ten/logs/nothing").problem["name"] == "USAGE"


def test_pages(server: Server, task: str) -> None:
    text = "".join(f"line {number} \u00e9\n" for number in range(1000))
    spawned(server, task, ["printf", "%s", text], name="p")
    ended(server, task, "p")
    path, at, found = f"/tasks/{task}/workers/p/logs", None, ""
    while at != 0:
        page = server.get(f"{path}?limit=1000{'' if at is None else f'&before={at}'}").done()
        assert page["ended"] is True
        found, at = page["text"] + found, page["begin"]
    assert found == text
    assert server.get(f"{path}?from=0&before=5").problem["name"] == "USAGE"
    assert server.get(f"{path}?from={10**15}").done()["text"] == ""
    events, first = [], 1
    while True:
        page = server.get(f"/tasks/{task}/events?from={first}&limit=3").done()
        events += page["events"]
        first = page["next"]
        if not page["more"]:
            break
    assert [one["seq"] for one in events] == list(range(1, len(events) + 1))
    last = server.get(f"/tasks/{task}/events?from={first}").done()
    assert (last["events"], last["next"], last["more"]) == ([], first, False)
    told = server.get(f"/tasks/{task}").done()
    assert {row["agentInstance"] for row in told["workers"]} == {"good", "bad", "p"}


def test_rows_of_an_output_and_what_is_found_in_them(server: Server, task: str) -> None:
    script = r"printf 'one\n\033[1;31mr\033[Ked\033[m hot\n1 %%\r50 %%\r99 %%'; printf 'Bad\n' >&2"
    spawned(server, task, ["sh", "-c", script], name="r")
    ended(server, task, "r")
    path = f"/tasks/{task}/workers/r/logs"
    page = server.get(f"{path}?rows=shown").done()
    assert page["rows"] == [
        {"at": 0, "spans": [["one"]]}, {"at": 4, "spans": [["red", "bold f1"], [" hot"]]},
        {"at": 25, "spans": [["99 %"]]},
    ]  # fmt: skip
    assert (page["text"], page["begin"], page["end"], page["size"]) == ("", 0, 38, 38)
    assert [(one["stream"], one["size"], one["writtenAt"] is None) for one in page["streams"]] == [
        ("stdout", 38, False), ("stderr", 4, False),
    ]  # fmt: skip
    source = server.get(f"{path}?rows=source&stream=stderr&from=2").done()
    assert (source["begin"], source["rows"]) == (0, [{"at": 0, "spans": [["Bad"]]}])
    assert server.get(f"{path}?rows=source&from=25").done()["rows"][0]["spans"] == [["1 %\\r50 %\\r99 %"]]
    found = server.get(f"{path}/search?words=RED%20h").done()
    assert found == {"hits": [{"at": 4, "line": 2}], "looked": 38, "line": 3, "size": 38, "more": False}
    assert server.get(f"{path}/search?words=50").done()["hits"] == []
    assert server.get(f"{path}/search?words=99&from=25&line=3").done()["hits"] == [{"at": 25, "line": 3}]
    assert server.get(f"{path}/search").problem["name"] == "USAGE"
    assert server.get(f"{path}?rows=other").problem["name"] == "USAGE"


def test_what_was_done_is_seen_at_once(server: Server) -> None:
    for number in range(15):
        name = new_task(server, f"t{number}")
        assert server.get(f"/tasks/{name}").done()["taskId"] == name
    metrics = server.ask("GET", "/metrics").body.decode()
    assert "agentctl_tasks 15\n" in metrics


def test_many_at_once(server: Server, task: str) -> None:
    def ask(number: int) -> Answered:
        return server.get(["/tasks", f"/tasks/{task}/list", f"/tasks/{task}/tree", f"/tasks/{task}"][number % 4])

    with ThreadPoolExecutor(24) as threads:
        assert {answer.status for answer in threads.map(ask, range(120))} == {200}
    assert threading.active_count() < 40


def test_requests_follow_each_other_on_a_connection(server: Server, task: str) -> None:
    request = _request(server, "GET", f"/tasks/{task}/list", {}).replace(b"Content-Length: 2", b"Content-Length: 0")[
        :-2
    ]
    last = request.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    assert server.raw(request * 5 + last).count(b"HTTP/1.1 200 OK") == 6


def test_the_log_of_bugs_is_empty(server: Server, root: Path) -> None:
    new_task(server)
    assert not list((root.parent / "home").rglob("bugs.log"))


@pytest.mark.slow
def test_a_queue_that_stands_still_is_told(root: Path, tmp_path: Path) -> None:
    stranded(tmp_path)
    with serving(root) as server:
        assert {one["taskId"]: one["state"] for one in server.get("/tasks").done()} == {"t1": "stranded"}
        workers = {one["agentInstance"]: one["health"] for one in server.get("/tasks/t1/list").done()}
    assert (workers["b"], workers["c"]) == ("stranded", None)
