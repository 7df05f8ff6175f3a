"""Which ends a consumer of `wait-any` has been given: each end once, to one of its waiters, and none is lost.

Claim under the lock, print and flush, mark as done. A waiter holds a liveness lock on its claim. If it dies before the
mark, that lock is free and the end is given again, as redelivered. What is done is kept as ranges of deliverable seqs.
"""

from __future__ import annotations

import contextlib
import os
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Any

from agentctl.adapters import eventlog
from agentctl.adapters.files import read_known, storage_errors, to_json, write_whole
from agentctl.adapters.locks import hold_alive, is_alive_held, locked
from agentctl.adapters.taskdir import TreeDir, names_in
from agentctl.domain.names import check_name
from agentctl.domain.worker.projection import Deliverable
from agentctl.lean import NamedTuple

_SUFFIX, _MOST = ".json", 1000


class ClaimedEnd(NamedTuple):
    """An end that this waiter alone may give out."""

    deliverable: Deliverable
    #: A waiter had claimed it and died before it could mark it done.
    redelivered: bool
    token: str
    lock: int


def consumers_in(tree: TreeDir) -> list[str]:
    """Return the consumers that were given anything in a tree of tasks."""
    return sorted(name.removesuffix(_SUFFIX) for name in names_in(tree.cursors, _MOST) if name.endswith(_SUFFIX))


class Cursor:
    """One consumer's cursor in one task; its file is in the root task of the tree."""

    def __init__(self, tree: TreeDir, task_id: str, consumer: str) -> None:
        check_name(consumer, "the consumer")
        self._task_id = task_id
        self._log = tree.sibling(task_id).events
        self._path = tree.cursors / f"{consumer}{_SUFFIX}"
        self._lock = tree.cursors / f"{consumer}.lock"
        self._claims = tree.cursors / consumer

    def claim(self, wanted: Iterable[Deliverable]) -> ClaimedEnd | None:
        """Claim the earliest of `wanted` that is neither done nor claimed by a live waiter; None if there is none."""
        wanted = list(wanted)
        if not wanted:
            return None
        with locked(self._lock):
            state, content = self._read()
            for deliverable in wanted:
                key = str(deliverable.seq)
                if _is_done(state["done"], deliverable.seq) or self._is_claimed(state["claims"].get(key)):
                    continue
                token = os.urandom(6).hex()
                lock = hold_alive(self._claim_path(token))
                assert lock is not None
                redelivered = key in state["claims"]
                if redelivered:
                    self._forget(state["claims"][key])
                state["claims"][key] = token
                self._write(state, content, durable=False)
                return ClaimedEnd(deliverable, redelivered, token, lock)
        return None

    def mark(self, claim: ClaimedEnd, deliverables: Sequence[Deliverable]) -> None:
        """Record durably that a claimed end was given out.

        Args:
            deliverables: All of the task, in order: ranges are joined if only other seqs are between them.
        """
        # If the log lost its last lines, other ends would get seqs that are done, and would never be given out.
        eventlog.flush(self._log)
        with locked(self._lock):
            state, content = self._read()
            state["claims"].pop(str(claim.deliverable.seq), None)
            order = [seq for seq, _, _ in deliverables]
            state["done"] = _with(state["done"], claim.deliverable.seq, order)
            self._write(state, content, durable=True)
        self._forget(claim.token)
        os.close(claim.lock)

    def release(self, claim: ClaimedEnd) -> None:
        """Give a claim back undelivered: it then looks like that of a dead waiter."""
        os.close(claim.lock)

    def withdraw(self, claim: ClaimedEnd) -> None:
        """Give a claim back of which it is certain that nothing was printed: as if it had never been made."""
        with locked(self._lock):
            state, content = self._read()
            state["claims"].pop(str(claim.deliverable.seq), None)
            self._write(state, content, durable=False)
        self._forget(claim.token)
        os.close(claim.lock)

    def undelivered(self, wanted: Iterable[Deliverable]) -> list[Deliverable]:
        """Return those of `wanted` that are not marked as done."""
        state, _ = self._read()
        return [deliverable for deliverable in wanted if not _is_done(state["done"], deliverable.seq)]

    def _is_claimed(self, token: str | None) -> bool:
        return token is not None and is_alive_held(self._claim_path(token))

    def _claim_path(self, token: str) -> str:
        return f"{self._claims}.{token}.claim"

    def _forget(self, token: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._claim_path(token))

    def _read(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the state of this consumer in the task, and the content of its file, which has other tasks too."""
        content = read_known(self._path)
        state = content.get(self._task_id)
        if not isinstance(state, dict):
            state = {}
        return {"done": list(state.get("done", [])), "claims": dict(state.get("claims", {}))}, content

    def _write(self, state: dict[str, Any], content: dict[str, Any], *, durable: bool) -> None:
        with storage_errors(self._path, "write"):
            write_whole(self._path, to_json({**content, self._task_id: state}), durable=durable)


def _is_done(ranges: Sequence[Sequence[int]], seq: int) -> bool:
    return any(first <= seq <= last for first, last in ranges)


def _with(ranges: Sequence[Sequence[int]], seq: int, order: Sequence[int]) -> list[list[int]]:
    """Return `ranges` with `seq` added, joined across the gaps that are known to hold no deliverable.

    Args:
        order: The deliverable seqs that this waiter knows. Others may have marked ends that are newer than its look
            at the log: nothing is joined after the last seq that it knows.

    >>> _with([[3, 3], [20, 20]], 9, [3, 9, 12, 20])
    [[3, 9], [20, 20]]
    >>> _with([[20, 20]], 9, [3, 9])
    [[9, 9], [20, 20]]
    """
    closed: list[list[int]] = []
    for first, last in sorted([*map(list, ranges), [seq, seq]]):
        if closed and _is_gap_empty(closed[-1][1], first, order):
            closed[-1][1] = max(closed[-1][1], last)
        else:
            closed.append([first, last])
    return closed


def _is_gap_empty(end: int, start: int, order: Sequence[int]) -> bool:
    """Return whether `order` has nothing between two seqs, and reaches at least to the second."""
    if start <= end + 1:
        return True
    following = bisect_right(order, end)
    return following < len(order) and order[following] >= start
