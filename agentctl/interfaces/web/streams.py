"""The stream of events, and of the state of the fleet: what a client has had is in its cursor, nowhere else."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from itertools import islice
from typing import TypeVar

import anyio.to_thread
from sse_starlette import EventSourceResponse

from agentctl.interfaces.web.board import Board, EncodedEvent
from agentctl.lean import NamedTuple
from agentctl.operations.fleet.event_stream import Positions, cursor_of

NOW, START = "now", "start"
#: A page takes a connection for dead that is silent for longer (`page/js/stream.js`).
PING_S = 2
#: So many events are read from the files at a time.
_PIECE, _PIECE_BYTES = 200, 1 << 20
#: With more tasks, making or reading a cursor would hold up everybody else: a thread does it.
_MANY_TASKS = 500
_RESET = b"event: reset\ndata: {}\n\n"

T = TypeVar("T")


class Wanted(NamedTuple):
    """What a client wants."""

    #: The ids of the tasks whose events it wants; None is all.
    only: frozenset[str] | None = None
    #: `now`, `start` or a cursor.
    since: str = NOW
    with_fleet: bool = False
    #: The version of the fleet that it has; None if it has none.
    version: str | None = None


def stream_response(board: Board, wanted: Wanted) -> EventSourceResponse:
    """Return the response that goes on until the client leaves."""
    return EventSourceResponse(
        _Stream(board, wanted).messages(), ping=PING_S, sep="\n", media_type="text/event-stream",
        headers={"Cache-Control": "no-store"},
    )  # fmt: skip


class _Stream:
    """What one client gets. Nothing is kept for it but where it is: a slow one reads the files."""

    def __init__(self, board: Board, wanted: Wanted) -> None:
        self._board, self._wanted = board, wanted
        #: Where it is in the histories of the board.
        self._events_at = self._patches_at = 0
        #: How many events of each task it has had.
        self._had: Positions = {}

    async def messages(self) -> AsyncIterator[bytes]:
        """Yield pieces of the stream, without end."""
        await self._board.caught_up()
        if self._wanted.with_fleet:
            yield self._fleet_since(self._wanted.version)
        self._events_at, self._had = self._board.place()
        cursor = await self._worked_out(lambda: cursor_of(self._had))
        begin = await self._worked_out(self._begin)
        if begin is None:
            yield _RESET
        else:
            async for piece in self._from_files(begin):
                yield piece
        yield b"id: %s\nevent: cursor\ndata: {}\n\n" % cursor.encode()
        while True:
            change = self._board.change()
            had = self._had
            events, self._events_at, self._had = self._board.events_since(self._events_at)
            if events is None:  # It is too slow for what the board keeps.
                async for piece in self._from_files(had):
                    yield piece
            parts = [one.data for one in events or () if self._has(one)]
            parts += self._patches() if self._wanted.with_fleet else ()
            if parts:
                yield b"".join(parts)
            else:  # What happened meanwhile has set it: it was taken before.
                await change.wait()

    async def _worked_out(self, work: Callable[[], T]) -> T:
        """Return what comes out of some work that grows with the number of tasks."""
        return await anyio.to_thread.run_sync(work) if len(self._had) > _MANY_TASKS else work()

    def _begin(self) -> Positions | None:
        """Return where it wants to begin; None if that cannot be told."""
        since = self._wanted.since
        if since == NOW:
            return self._had
        return dict.fromkeys(self._had, 0) if since == START else self._board.positions_at(since, self._had)

    def _has(self, one: EncodedEvent) -> bool:
        return self._wanted.only is None or one.task_id in self._wanted.only

    def _fleet_since(self, version: str | None) -> bytes:
        self._patches_at, message = self._board.fleet_since(version)
        return message

    def _patches(self) -> list[bytes]:
        had = self._patches_at
        patches, self._patches_at = self._board.patches_since(had)
        return [self._fleet_since(self._board.version_at(had))] if patches is None else patches

    async def _from_files(self, begin: Positions) -> AsyncIterator[bytes]:
        """Yield what came after a place, up to where it is now."""
        if begin is self._had:
            return
        left = self._board.read_again(begin, self._had, self._wanted.only)
        while piece := await anyio.to_thread.run_sync(_next_piece, left, abandon_on_cancel=True):
            yield b"".join(one.data for one in piece)


def _next_piece(left: Iterator[EncodedEvent]) -> list[EncodedEvent]:
    found, size = [], 0
    for one in islice(left, _PIECE):
        found.append(one)
        size += len(one.data)
        if size >= _PIECE_BYTES:
            break
    return found
