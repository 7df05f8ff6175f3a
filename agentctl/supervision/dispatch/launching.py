"""Starts a shim: detached, with an empty environment and a clean interpreter; then gives it a place, and its order.

The order (see `handshake`) is written after the queue's lock is given back. A program that starts many workers keeps
spare shims, since an interpreter takes 40 ms to get ready; a spare shim gets its place when there is one.

Measured in memory, on two busy processors, in alternation: with a spare shim kept ready, a start by a running program
takes 16 ms instead of 70 ms (faster in 30 of 30 rounds). `operations/start/spare_shims.py` has the figures of shims
that get ready for a single start.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import select
from collections.abc import Iterator

from agentctl.adapters import processes
from agentctl.adapters.detached import start_detached
from agentctl.adapters.signals import signal
from agentctl.adapters.taskdir import TreeDir
from agentctl.errors import StorageError
from agentctl.lean import Any, NamedTuple
from agentctl.supervision import failpoints
from agentctl.supervision.dispatch.handshake import ANSWER_FD, ORDER_FD, Channel, channel, send_fds, send_order, twin_at
from agentctl.supervision.life.strangers import SHIM_SCRIPT, note_guardian
from agentctl.supervision.queue.places import Occupant, Place
from agentctl.supervision.queue.tickets import Ticket

#: A shim answers within a tenth of a second; on a busy machine, within some seconds.
_ANSWER_LIMIT_S = 60.0


class Shim(NamedTuple):
    """A shim that was started and has no place yet."""

    #: None for a twin: another shim forks it, and it reports its pid itself.
    identity: processes.Identity | None
    orders: Channel
    answer_fd: int


class Launch(NamedTuple):
    """A shim that has its place, and waits for its order."""

    ticket: Ticket
    orders: Channel
    answer_fd: int


#: Shims without a place, by the path of their root task, and how many of them to keep.
_spares: dict[str, list[Shim]] = {}
_wanted: dict[str, int] = {}
#: Shims that this process has started and not reaped yet.
_started: set[processes.Identity] = set()


def count_spares(tree: TreeDir) -> int:
    """Return how many shims of this process have no place yet."""
    return len(_spares.get(tree.path, ()))


def start_ahead(tree: TreeDir, count: int) -> None:
    """Get `count` shims ready for `launch`; the caller must call `trim_spares` in the end."""
    ready = _spares.setdefault(tree.path, [])
    with contextlib.suppress(OSError):  # No process left, no descriptor: `launch` reports that if it needs one.
        while len(ready) < count:
            first = next(iter(ready[:1]), None)  # Another thread may take it meanwhile.
            ready.append(_twin_of(first) if first is not None and first.identity else _start(tree))


def keep_spares(tree: TreeDir, count: int) -> None:
    """Keep `count` shims ready from now on, and replace those that are used; 0 ends those that were kept."""
    _wanted[tree.path] = count
    trim_spares(tree)
    start_ahead(tree, count)


def replace_spares(tree: TreeDir) -> None:
    """Start the shims that are missing from the number that `keep_spares` was given."""
    start_ahead(tree, _wanted.get(tree.path, 0))


def trim_spares(tree: TreeDir) -> None:
    """End the spare shims beyond the number to keep."""
    while count_spares(tree) > _wanted.get(tree.path, 0) and (shim := _take_spare(tree)) is not None:
        _dismiss(shim)


def _take_spare(tree: TreeDir) -> Shim | None:
    with contextlib.suppress(KeyError, IndexError):  # Another thread may take the last one.
        return _spares[tree.path].pop()
    return None


def launch(tree: TreeDir, ticket: Ticket, place: Place) -> Launch:
    """Start a shim for `ticket` in `place` and let go of the place (the caller holds the queue's lock).

    Raises:
        OSError: The system refuses another process or descriptor; the place is still the caller's.
    """
    _reap()
    place.occupy(Occupant(ticket.worker_id))
    shim = _give_to_shim(tree, ticket, place)
    place.let_go()
    failpoints.reached("dispatch.after-launch")
    return Launch(ticket, shim.orders, shim.answer_fd)


def _give_to_shim(tree: TreeDir, ticket: Ticket, place: Place) -> Shim:
    """Give the place to a shim and return that shim: a spare one that lives, or else a new one."""
    while True:
        spare = _take_spare(tree)
        shim = spare or _start(tree)
        try:
            identity = shim.identity or _identity_of(twin_at(shim.orders))
            note_guardian(tree, identity)
            place.occupy(Occupant(ticket.worker_id, identity))
            send_fds(shim.orders, place.fd)
        except (StorageError, OSError):
            _dismiss(shim)
            if spare is None:
                raise
        else:
            return shim


def _twin_of(shim: Shim) -> Shim:
    """Return a twin of a shim that waits for a place; the shim forks it as soon as it is ready itself."""
    with _new_ends() as (ours, theirs):
        send_fds(shim.orders, *theirs)
    return Shim(None, *ours)


def _start(tree: TreeDir) -> Shim:
    if not os.path.exists(SHIM_SCRIPT):  # An interpreter would be started all the same, and end: nobody would know why.
        raise FileNotFoundError(errno.ENOENT, "agentctl is just being replaced, or was removed")
    with _new_ends() as (ours, theirs):
        given = dict(zip((ORDER_FD, ANSWER_FD), theirs, strict=True))
        identity = _identity_of(start_detached([SHIM_SCRIPT, str(tree.path)], {}, given))
    _started.add(identity)
    return Shim(identity, *ours)


@contextlib.contextmanager
def _new_ends() -> Iterator[tuple[tuple[Channel, int], tuple[int, int]]]:
    """Yield the launcher's and the shim's ends of new channels for order and answer.

    The shim's ends are closed here once it has them; the launcher's are closed too if the shim could not be started.
    """
    ours, theirs = channel()
    answer_read, answer_write = os.pipe()
    try:
        yield (ours, answer_read), (theirs.fileno(), answer_write)
    except BaseException:
        ours.close()
        os.close(answer_read)
        raise
    finally:
        theirs.close()
        os.close(answer_write)


def _identity_of(pid: int) -> processes.Identity:
    identity = processes.identify(pid)
    if identity is None:
        raise ChildProcessError(errno.ECHILD, "its shim exited at once")
    return identity


def _dismiss(shim: Shim) -> None:
    """End a shim that has nothing to guard: by closing its channel, and by SIGKILL if it is a child of this process."""
    shim.orders.close()
    os.close(shim.answer_fd)
    if shim.identity is not None:
        processes.signal_process(shim.identity, signal.SIGKILL)
        _collect(shim.identity, 0)


def _reap() -> None:
    """Reap the shims of this process that have ended: a server may start thousands."""
    for shim in list(_started):
        _collect(shim, os.WNOHANG)


def _collect(shim: processes.Identity, options: int) -> None:
    """Reap a shim that has ended, unless that was done elsewhere: its pid may be another child's by now."""
    is_gone = True
    if processes.identify(shim.pid) == shim:
        with contextlib.suppress(ChildProcessError):
            is_gone = os.waitpid(shim.pid, options)[0] != 0
    if is_gone:
        _started.discard(shim)


def hand_over(launched: Launch, tree: TreeDir, blob: bytes | None, folder: str) -> None:
    """Give a shim its order: the worker, and its environment or the folder where that waits.

    Blocks until the shim has read it; no lock may be held.
    """
    order = {
        "root": str(tree.path),
        "ticket": launched.ticket,
        "environmentFolder": folder,
        "hasEnvironment": blob is not None,
        "failpoint": failpoints.armed(),
    }
    with contextlib.suppress(OSError):  # The shim died: its answer is missing.
        send_order(launched.orders, order, blob or b"")
    launched.orders.close()


def await_answer(launched: Launch) -> dict[str, Any]:
    """Return the shim's answer, which comes once its worker runs or has failed to start; {} if the shim died first.

    A worker may stop its shim before the answer: then an error that says so is returned.
    """
    data, poll = b"", select.poll()
    poll.register(launched.answer_fd, select.POLLIN)
    try:
        while True:
            if not poll.poll(_ANSWER_LIMIT_S * 1000):
                return {"error": "its shim has not answered: is it stopped?"}
            if not (chunk := os.read(launched.answer_fd, 1 << 16)):
                break
            data += chunk
    finally:
        os.close(launched.answer_fd)
    try:
        answer = json.loads(data)
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}
