"""At stake: whatever fails while the tasks are read, clients miss nothing, get nothing twice, and never hang."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.adapters.eventlog import append
from agentctl.adapters.taskdir import Root
from agentctl.domain.events import make_event
from agentctl.errors import Refused
from agentctl.interfaces.web import app as app_module
from agentctl.interfaces.web import board as board_module
from agentctl.interfaces.web.app import Website
from agentctl.interfaces.web.board import Board, RecentItems
from agentctl.interfaces.web.streams import Wanted, _Stream
from agentctl.operations.fleet import event_stream
from agentctl.operations.fleet import reader as reader_module
from agentctl.operations.fleet.event_stream import EventStream
from agentctl.operations.fleet.fleet import Fleet
from agentctl.operations.fleet.glance import FleetTask, Glance, TaskTotals
from agentctl.operations.fleet.reader import Reader

_LIMIT_S = 20


class IdleReader:
    """Reads nothing by itself: the test looks."""

    failures: int = 0

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def start(self) -> None:
        if type(self).failures:
            type(self).failures -= 1
            raise RuntimeError("can't start new thread")

    def want(self, wanted: Any) -> None:
        pass

    def wake(self) -> None:
        pass

    def close(self, timeout_s: float | None = None) -> None:
        pass


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Root:
    """Return a root of two tasks; boards of it do not read by themselves."""
    monkeypatch.setattr(board_module, "Reader", IdleReader)
    monkeypatch.setattr(IdleReader, "failures", 0)
    monkeypatch.setattr(board_module, "_RESTART_S", 0.0)
    found = Root(str(tmp_path))
    for name in ("a", "b"):
        os.makedirs(found.task(name).path)
        (Path(found.task(name).path) / "task.yaml").touch()
        noted(found, name, 0)
    return found


def noted(root: Root, name: str, *numbers: int) -> None:
    """Append events."""
    events = [make_event("2026-01-01T00:00:00.000Z", "note", name, "x", {"n": number}) for number in numbers]
    append(root.task(name).events, events, durable=False)


def glance_of(root: Root, *names: str) -> Glance:
    """Return a glance at some tasks."""
    tasks = {name: FleetTask(root.task(name), name, "open", True, None, None, TaskTotals()) for name in names}
    return Glance(tasks, {}, {}, is_partial=True)


def look(board: Board, glance: Glance | None = None) -> None:
    """Look as the thread that reads does, but without showing the glance first."""
    board._before()
    board._beside(board._fleet.glance if glance is None else glance)


def in_loop(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a test in a loop; it must not hang."""

    async def limited() -> None:
        async with asyncio.timeout(_LIMIT_S):
            await main()

    asyncio.run(limited())


async def until(holds: Callable[[], bool]) -> None:
    """Let the loop go on until something holds."""
    while not holds():  # noqa: ASYNC110 - what is waited for has no event
        await asyncio.sleep(0)


class Client:
    """Follows the stream."""

    def __init__(self, board: Board, since: str = "now") -> None:
        self._messages = _Stream(board, Wanted(since=since)).messages()
        self._left: list[bytes] = []

    async def next(self) -> tuple[str, Any]:
        """Return the kind of the next message, and its data."""
        while not self._left:
            self._left = (await anext(self._messages)).split(b"\n\n")[:-1]
        lines = dict(line.split(b": ", 1) for line in self._left.pop(0).split(b"\n"))
        return lines[b"event"].decode(), json.loads(lines[b"data"])

    async def events(self, count: int) -> list[tuple[str, int]]:
        """Return task and seq of the next messages: all must be events."""
        found = [await self.next() for _ in range(count)]
        assert {kind for kind, _ in found} == {"event"}
        return [(data["taskId"], data["seq"]) for _, data in found]


async def begun(board: Board) -> Client:
    """Return a client who has had what there is."""
    client = Client(board)
    first = asyncio.ensure_future(client.next())
    await until(lambda: bool(board._asked))
    look(board)
    assert (await first)[0] == "cursor"
    return client


@pytest.mark.parametrize("failing", ["_with_cursors", "decode"])
def test_events_that_were_lost_on_their_way_are_read_again(
    root: Root, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    async def main() -> None:
        board = Board(root)
        client = await begun(board)
        noted(root, "a", 1)
        look(board)
        assert await client.events(1) == [("a", 2)]
        for name in ("a", "b"):
            noted(root, name, 2, 3)

        def fail(*_: object) -> Any:
            raise MemoryError

        with monkeypatch.context() as patch:
            place = board_module if failing == "_with_cursors" else event_stream
            patch.setattr(place, failing, fail)
            with pytest.raises(MemoryError):
                look(board)
        noted(root, "b", 4)
        look(board)
        assert sorted(await client.events(5)) == [("a", 3), ("a", 4), ("b", 2), ("b", 3), ("b", 4)]
        noted(root, "a", 5)
        look(board)
        assert await client.events(1) == [("a", 5)]

    in_loop(main)


def test_a_slow_client_needs_no_cursor(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EventStream, "positions_at", None)

    async def main() -> None:
        board = Board(root)
        board.history = RecentItems(2)
        client = await begun(board)
        for number in range(5):
            noted(root, "ab"[number % 2], number)
            look(board)
        assert sorted(await client.events(5)) == [("a", 2), ("a", 3), ("a", 4), ("b", 2), ("b", 3)]

    in_loop(main)


def test_what_is_forgotten_is_read_from_the_files_by_all() -> None:
    items: RecentItems[int] = RecentItems(10)
    items.add(1, 1)
    before = items.end
    items.forget()
    assert items.since(before) is None
    assert items.since(items.end) == []
    place = items.end
    items.add(2, 1)
    assert items.since(place) == [2]


def test_while_nobody_reads_nobody_waits_and_reading_begins_again(root: Root) -> None:
    async def main() -> None:
        board = Board(root)
        waiting = asyncio.ensure_future(board.fresh())
        await until(lambda: bool(board._asked))
        IdleReader.failures = 2
        first = board._reader
        board._failed(OSError(12, "ENOMEM"))
        with pytest.raises(Refused, match="ENOMEM"):
            await board.fresh()
        with pytest.raises(Refused, match="ENOMEM"):
            await waiting
        while IdleReader.failures:
            with pytest.raises(Refused, match="cannot be read"):
                await board.fresh()
            await asyncio.sleep(0)
        await until(lambda: not board._is_down)
        assert board._reader is not first
        again = asyncio.ensure_future(board.fresh())
        await until(lambda: bool(board._asked))
        look(board)
        await again
        assert board.problem is None

    in_loop(main)


def test_whoever_waits_finds_what_the_glance_has(root: Root) -> None:
    async def main() -> None:
        board = Board(root)
        look(board, glance_of(root, "a"))
        assert board.task("a") is None  # Nobody has asked: it is shown with the next ones.
        waiting = asyncio.ensure_future(board.fresh())
        await until(lambda: bool(board._asked))
        look(board, glance_of(root, "a", "b"))
        assert (await waiting).tasks.keys() == {"a", "b"}
        assert json.loads(board.task("b") or b"")["taskId"] == "b"

    in_loop(main)


def test_the_health_is_told_in_time(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app_module, "_HEALTHY_S", 0.01)
    site: Any = Website.__new__(Website)

    async def health() -> tuple[int, Any]:
        answer = await site._health(None)
        return answer.status_code, json.loads(answer.body)

    async def main() -> None:
        site._board = board = Board(root)
        status, told = await health()
        assert (status, told["status"]) == (503, "failing")
        assert "within" in told["problem"]
        IdleReader.failures = 1_000_000
        board._failed(OSError(12, "ENOMEM"))
        status, told = await health()
        assert (status, told["status"]) == (503, "failing")
        assert "cannot be read" in told["problem"]

    in_loop(main)


def test_a_reader_that_looks_for_long_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks, may_go_on = threading.Event(), threading.Event()

    class SlowFleet(Fleet):
        def look(self) -> Glance:
            looks.set()
            may_go_on.wait(_LIMIT_S)
            return super().look()

    monkeypatch.setattr(reader_module, "Fleet", SlowFleet)
    monkeypatch.delattr(os, "pipe2", raising=False)  # As on macOS.
    failed: list[BaseException] = []
    reader = Reader(Root(str(tmp_path)), lambda _: None, failed.append)
    reader.start()
    assert looks.wait(_LIMIT_S)
    assert not os.get_blocking(reader._pipe.fd)
    assert not os.get_inheritable(reader._pipe.fd)
    reader.close(0.0)
    os.fstat(reader._pipe.fd)  # The thread may still use it.
    may_go_on.set()
    reader.close()
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(reader._pipe.fd)
    reader.close()
    reader.wake()
    assert not failed


@given(looks=st.lists(st.sets(st.sampled_from("abcde")), min_size=1, max_size=8), most=st.integers(1, 3))
def test_from_any_version_a_patch_leads_to_the_present_one(looks: list[set[str]], most: int) -> None:
    root = Root("/nowhere")
    fleet = board_module._EncodedFleet(0, {}, {}, board_module._Departed(), glance_of(root))
    known: dict[int, set[str]] = {}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(board_module, "_MOST_GONE", most)
        for names in looks:
            fleet, _ = fleet.after(glance_of(root, *names))
            known[fleet.version] = names
            assert len(fleet.gone.tasks) <= most
            for version, had in known.items():
                patch = fleet.patch_since(version)
                if patch is None:  # More is gone since than is remembered.
                    assert 0 < version < fleet.gone.complete_from
                    continue
                changes = json.loads(b"{%s}" % patch)["tasks"]
                assert {name for name in had | changes.keys() if changes.get(name, True)} == names
    assert fleet.patch_since(fleet.version + 1) is None
