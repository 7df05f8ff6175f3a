"""At stake: a client that follows the stream has each event once and in order, whatever ends in between."""

from __future__ import annotations

import http.client
import json
import random
import shutil
import signal
import threading
import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from agentctl.adapters import eventlog
from agentctl.domain.events import make_event
from tests.support import remove, run, wait_until, worker
from tests.web.support import Server, Stream, ended, new_task, serving, spawned

pytestmark = pytest.mark.server


def log_of(root: Path, task: str) -> Path:
    """Return the log of a task."""
    return root / "tasks" / task / "events.jsonl"


def noted(root: Path, task: str, *numbers: int, **more: Any) -> None:
    """Append events that nothing but the stream looks at, each with a number."""
    events = [
        make_event(f"2027-01-01T00:00:{number % 60:02}.000Z", "note", task, "person", {"n": number, **more})
        for number in numbers
    ]
    eventlog.append(log_of(root, task), events, durable=False)


def logs(root: Path) -> set[tuple[str, int]]:
    """Return task and seq of all events that there are."""
    files = (root / "tasks").glob("*/events.jsonl")
    return {(file.parent.name, seq) for file in files for seq in range(1, file.read_bytes().count(b"\n") + 1)}


def keys(events: Iterable[Any]) -> list[tuple[str, int]]:
    """Return task and seq of events."""
    return [(one["taskId"], one["seq"]) for one in events]


def in_order(found: list[tuple[str, int]]) -> None:
    """Check that no event came twice, and that those of each task came in their order without a hole."""
    by_task = defaultdict(list)
    for task, seq in found:
        by_task[task].append(seq)
    for task, seqs in by_task.items():
        assert seqs == list(range(seqs[0], seqs[0] + len(seqs))), task


def test_an_event_is_as_the_log_has_it(server: Server) -> None:
    task = new_task(server)
    with server.stream() as stream:
        greeting = stream.greeting()
        assert [(one.event, one.data) for one in greeting] == [("cursor", {})]
        noted(server.root, task, 7, text="line\nbreak\r\u2028 \U0001f600")
        one = stream.next()
    assert one.event == "event"
    assert one.data == {
        "ts": "2027-01-01T00:00:07.000Z", "type": "note", "taskId": task, "by": "person", "seq": 2,
        "payload": {"n": 7, "text": "line\nbreak\r\u2028 \U0001f600"},
    }  # fmt: skip
    assert one.id


def test_from_the_start_in_the_order_of_time(server: Server) -> None:
    for name in ("a", "b"):
        new_task(server, name)
    for number in range(300):
        noted(server.root, "ab"[number % 2], number // 6)
    with server.stream("?since=start") as stream:
        events = stream.events(302)
        assert stream.next().event == "cursor"
    in_order(keys(events))
    assert set(keys(events)) == logs(server.root)
    times = [one["ts"] for one in events if one["type"] == "note"]
    assert times == sorted(times)


def test_only_some_tasks(server: Server) -> None:
    for name in ("a", "b", "c"):
        new_task(server, name)
    with server.stream("?task=a&task=c&since=start") as stream:
        assert sorted(keys(one.data for one in stream.greeting() if one.event == "event")) == [("a", 1), ("c", 1)]
        for number in range(60):
            noted(server.root, "abc"[number % 3], number)
        assert {one["taskId"] for one in stream.events(40)} == {"a", "c"}


def test_reconnecting_misses_and_doubles_nothing(server: Server) -> None:
    dice = random.Random(1)
    names = [new_task(server, f"t{number}") for number in range(4)]
    with server.stream() as stream:
        cursor = stream.greeting()[-1].id
    before, number = logs(server.root), 0
    found: list[tuple[str, int]] = []
    for _ in range(25):
        for _ in range(dice.randrange(5)):
            number += 1
            noted(server.root, dice.choice(names), number)
        left = len(logs(server.root) - before) - len(found)
        with server.stream(cursor=cursor) as stream:
            found += keys(stream.events(dice.randint(0, left)))
            if dice.random() < 0.5:  # So a cursor of a live event is used too, and not only one of what is read again.
                number += 1
                noted(server.root, dice.choice(names), number)
                left = len(logs(server.root) - before) - len(found)
                found += keys(stream.events(left))
            cursor = stream.cursor
    with server.stream(f"?last_event_id={cursor}") as stream:
        found += keys(stream.events(len(logs(server.root) - before) - len(found)))
    in_order(found)
    assert set(found) == logs(server.root) - before


def test_a_killed_server_loses_and_doubles_nothing(root: Path) -> None:
    with serving(root) as server:
        for name in ("a", "b"):
            new_task(server, name)
        with server.stream("?since=start") as stream:
            found = keys(stream.events(2))
            for number in range(10):
                noted(root, "ab"[number % 2], number)
            found += keys(stream.events(5))
            cursor = stream.cursor
            server.stop(signal.SIGKILL, code=-signal.SIGKILL)
            with pytest.raises((EOFError, OSError, http.client.HTTPException)):
                stream.until(lambda _: False)
    for number in range(10, 20):
        noted(root, "ab"[number % 2], number)
    with serving(root, "--port", str(server.port)) as again:
        new_task(again, "c")
        with again.stream(cursor=cursor) as stream:
            found += keys(stream.events(len(logs(root)) - len(found)))
            assert stream.next().event == "cursor"
    in_order(found)
    assert set(found) == logs(root)


def test_tasks_made_and_removed_meanwhile(server: Server) -> None:
    for name in ("stays", "goes"):
        new_task(server, name)
    with server.stream() as stream:
        cursor = stream.greeting()[-1].id
        noted(server.root, "goes", 1)
        assert keys(stream.events(1)) == [("goes", 2)]
    remove(server.root / "tasks" / "goes")
    new_task(server, "new")
    noted(server.root, "stays", 2)
    with server.stream(cursor=cursor) as stream:
        assert sorted(keys(one.data for one in stream.greeting() if one.event == "event")) == [("new", 1), ("stays", 2)]
        cursor = stream.cursor
        noted(server.root, "new", 3)
        assert keys(stream.events(1)) == [("new", 2)]


@pytest.mark.parametrize("is_followed", [True, False])
def test_another_task_of_the_same_name(server: Server, is_followed: bool) -> None:
    new_task(server, "t")
    for number in range(5):
        noted(server.root, "t", number)
    with server.stream() as stream:
        cursor = stream.greeting()[-1].id
        remove(server.root / "tasks" / "t")
        new_task(server, "t")
        for number in range(10, 13):
            noted(server.root, "t", number)
        if is_followed:
            assert keys(stream.events(4)) == [("t", seq) for seq in range(1, 5)]
            return
    with server.stream(cursor=cursor) as stream:
        assert keys(one.data for one in stream.greeting() if one.event == "event") == [("t", n) for n in range(1, 5)]


def test_a_task_is_new_only_once(root: Path) -> None:
    # A listing may find it before all of it is there: what a cursor says of it must be true for the next server too.
    with serving(root) as server, server.stream() as stream:
        stream.greeting()
        for number in range(8):
            run("new", f"t{number}")
        found = keys(stream.events(8))
        cursor = stream.cursor
    with serving(root) as server, server.stream(cursor=cursor) as stream:
        assert [one.event for one in stream.greeting()] == ["cursor"]
    assert sorted(found) == sorted((f"t{number}", 1) for number in range(8))


def many_tasks(root: Path, count: int) -> None:
    """Make tasks faster than by the command: copies of one of the command's."""
    run("new", "first")
    for number in range(count - 1):
        folder = root / "tasks" / f"t{number}"
        shutil.copytree(root / "tasks" / "first", folder)
        noted(root, folder.name, number)


def test_more_tasks_than_a_cursor_names(root: Path) -> None:
    many_tasks(root, 300)
    with serving(root) as server:
        with server.stream("?since=start") as stream:
            found = keys(one.data for one in stream.greeting() if one.event == "event")
            in_order(found)
            assert set(found) == logs(root)
            cursor = stream.cursor
            assert len(cursor) < 4000
        for number in (299 - 2, 299 - 3, 299 - 2):
            noted(root, f"t{number}", 1000)
        new_task(server, "new")
        with server.stream(cursor=cursor) as stream:
            again = stream.greeting()
            assert sorted(keys(one.data for one in again if one.event == "event")) == [
                ("new", 1), ("t296", 3), ("t297", 3), ("t297", 4),
            ]  # fmt: skip
            cursor = stream.cursor
            server.stop(signal.SIGKILL, code=-signal.SIGKILL)
    with serving(root) as server:
        with server.stream(cursor=cursor) as stream:
            assert [one.event for one in stream.greeting()] == ["cursor"]
        # Of the task that changed first of all the cursor has no more than a checksum: what is missed is said.
        noted(root, "first", 1000)
        with server.stream(cursor=cursor) as stream:
            assert [one.event for one in stream.greeting()] == ["reset", "cursor"]


def test_a_cursor_that_is_none(server: Server) -> None:
    new_task(server)
    with server.stream("?since=start") as stream:
        stream.events(1)  # The server knows of the task now: "now" begins behind this.
    for number, cursor in enumerate(("x", "AQ", "A" * 44, "é", "-" * 8000, "1", "AAAA=", "=" * 8, ",", "AQ" * 60), 1):
        with server.stream(cursor=cursor) as stream:
            assert [one.event for one in stream.greeting()] == ["reset", "cursor"], cursor
            noted(server.root, "t1", number)
            assert keys(stream.events(1)) == [("t1", number + 1)]


def test_what_the_stream_does_not_take(server: Server) -> None:
    for query in ("task=-x", "task=", "task=a%0A", "fleet=yes", f"since={'A' * 16_001}", "sinc=now", "task=a/b"):
        assert server.get(f"/events?{query}").problem["name"] == "USAGE"


def test_only_the_headers_of_the_stream(server: Server) -> None:
    with server.connected() as client:
        head = b" /api/v1/%s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %s\r\n\r\n"
        client.sendall(b"HEAD" + head % (b"events", server.port, server.token.encode()))
        assert b"text/event-stream" in _until(client, b"\r\n\r\n")
        client.sendall(b"GET" + head % (b"about", server.port, server.token.encode()))
        assert b"readOnly" in _until(client, b"}")


def _until(client: Any, end: bytes) -> bytes:
    found = b""
    while end not in found:
        found += client.recv(1 << 16)
    return found


def test_a_slow_client_gets_everything(server: Server) -> None:
    new_task(server)
    with server.stream() as stream:
        stream.greeting()
        # More than all buffers and the history hold together.
        for begin in range(0, 6000, 100):
            noted(server.root, "t1", *range(begin, begin + 100), text="x" * 2000)
        events = stream.events(6000)
    assert [one["payload"]["n"] for one in events] == list(range(6000))


@pytest.mark.slow
def test_many_clients_at_once(server: Server) -> None:
    names = [new_task(server, f"t{number}") for number in range(5)]
    clients, per_s, seconds = 50, 200, 3
    found: list[list[tuple[str, int]]] = [[] for _ in range(clients)]
    streams = [server.stream() for _ in range(clients)]

    def read(stream: Stream, into: list[tuple[str, int]]) -> None:
        into += keys(stream.events(per_s * seconds))

    for stream in streams:
        stream.greeting()
    threads = [threading.Thread(target=read, args=pair) for pair in zip(streams, found, strict=True)]
    for thread in threads:
        thread.start()
    begun = time.monotonic()
    for number in range(per_s * seconds):
        noted(server.root, names[number % 5], number)
        time.sleep(max(0.0, begun + number / per_s - time.monotonic()))
    for thread in threads:
        thread.join()
    for stream in streams:
        stream.close()
    for one in found:
        in_order(one)
        assert len(one) == per_s * seconds


# -- the state of the fleet --------------------------------------------------------------------------------------------


class Fleet:
    """What a client knows of the fleet from the messages that it had."""

    def __init__(self) -> None:
        self.tasks: dict[str, Any] = {}
        self.workers: dict[str, Any] = {}

    def take(self, data: Any) -> None:
        """Apply a message."""
        if data["whole"]:
            self.tasks, self.workers = {}, {}
        for known, changes in ((self.tasks, data["tasks"]), (self.workers, data["workers"])):
            for key, value in changes.items():
                if value is None:
                    known.pop(key, None)
                else:
                    known[key] = value


def whole(server: Server) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the state of the fleet as a new client gets it."""
    with server.stream("?fleet=true") as stream:
        first = stream.next()
        assert first.event == "fleet"
        assert first.data["whole"] is True
        return first.data["tasks"], first.data["workers"]


def test_patches_lead_to_what_a_new_client_gets(server: Server) -> None:
    dice = random.Random(3)
    fleet, away = Fleet(), Fleet()
    with server.stream("?fleet=true") as stream:
        fleet.take(stream.next().data)
        names = [new_task(server, "a"), new_task(server, "b")]
        workers: list[tuple[str, str]] = []
        for number in range(12):
            task = dice.choice(names)
            argv = dice.choice(
                [["true"], ["false"], worker("sleeps", 60), ["sh", "-c", "exec agentctl interact ask Q?"]]
            )
            workers.append((task, spawned(server, task, argv, name=f"w{number}", queue=True, cwd="/")))
            if dice.random() < 0.3:
                server.post(f"/tasks/{task}/cancel", {"instances": [workers[-1][1]]})
        new_task(server, "gone")
        with server.stream("?fleet=true") as other:
            first = other.next().data
            away.take(first)
        assert "gone" in away.tasks
        remove(server.root / "tasks" / "gone")
        for task in names:
            server.post(f"/tasks/{task}/cancel", {"all": True})
        for task, name in workers:
            end = ended(server, task, name)["status"]
            if dice.random() < 0.5:
                server.post(f"/tasks/{task}/workers/{name}/seen")
            assert end
        target = wait_until(lambda: whole(server), accept=lambda now: _is_settled(now, workers), what="all to end")
        stream.socket.settimeout(20)
        while (fleet.tasks, fleet.workers) != target:
            one = stream.next()
            if one.event == "fleet":
                assert one.id is None
                fleet.take(one.data)
    assert len(fleet.workers) == 12
    assert fleet.tasks.keys() == {"a", "b"}
    rest = rest_of(server, first["version"])
    away.take(rest)
    assert rest["whole"] is False
    assert (away.tasks, away.workers) == target


def rest_of(server: Server, version: str) -> Any:
    """Return what a client that has a version of the fleet is sent first."""
    with server.stream(f"?fleet=true&version={version}") as stream:
        return stream.next().data


def test_a_client_that_returns_is_sent_what_has_changed(server: Server) -> None:
    task = new_task(server)
    names = [spawned(server, task, ["true"], name=f"w{number}", queue=True, cwd="/") for number in range(8)]
    for name in names:
        ended(server, task, name)
    with server.stream("?fleet=true") as stream:
        before = stream.next().data
    server.post(f"/tasks/{task}/workers/{names[3]}/seen")
    server.post(f"/tasks/{task}/workers/{names[3]}/retry", {"queue": True})
    ended(server, task, f"{names[3]}-2")
    rest = rest_of(server, before["version"])
    assert len(before["workers"]) == len(names)
    assert f"{task}/{names[3]}-2" in rest["workers"]
    assert all(before["workers"].get(key) != value for key, value in rest["workers"].items())
    while rest["workers"] or rest["tasks"]:  # Until nothing happens any more.
        rest = rest_of(server, rest["version"])
    assert len(json.dumps(rest)) < 150
    for other in ("", "x-1", "x", f"{before['version']}0000", before["version"].replace("-", "-0x")):
        assert rest_of(server, other)["whole"] is True


def _is_settled(now: tuple[dict[str, Any], dict[str, Any]], workers: list[tuple[str, str]]) -> bool:
    states = [now[1].get(f"{task}/{name}", {}).get("status") for task, name in workers]
    return all(state in {"completed", "failed", "cancelled"} for state in states) and "gone" not in now[0]
