"""What waits in memory while the disk of a task refuses it, requests to stop and ends: where, and under which names.

It lies beside the environments of queued workers: whoever can write there can have anything run as this person anyway,
and a sandbox that shows the disk does not show it. Each name holds the random text of its task, so that nothing is ever
taken for a worker of another task. A reboot forgets it.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Mapping

from agentctl.adapters.files import read_known, to_json, write_whole
from agentctl.adapters.paths import FilePath
from agentctl.adapters.taskdir import TaskDir, WorkerDir
from agentctl.errors import AgentctlError, Refused
from agentctl.lean import TYPE_CHECKING, Any
from agentctl.supervision.worker.environment import store_folder

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.worker import RefusedByDisk

#: The requests; each is written by commands, and removed by the worker's guardian once the disk has it.
CANCEL, PAUSE = "cancel", "pause"
#: What the worker's guardian holds and says meanwhile: {start, end, paused, problem}. It alone writes this.
_STANDING = "standing"
#: Which queues of a tree of tasks are held: of its root task, in the place of a worker.
HOLD = "hold"
_NO_WORKER = "-"
_FOLDER = "deferred"
_TRIES = 5

_place: FilePath | None = None


def use_folder(folder: FilePath) -> None:
    """Set where this process looks, for a shim: its own environment, which says so for a command, is empty."""
    global _place  # noqa: PLW0603 - it is true of the whole process
    _place = folder / _FOLDER


def place() -> FilePath:
    """Return the folder of all that is deferred, which need not exist.

    Raises:
        Refused: There is no private place in memory.
        OSError: The same.
    """
    return _place or store_folder() / _FOLDER


def are_any() -> bool:
    """Return whether anything of any task may be deferred: mostly nothing is, and nobody looks any further."""
    try:
        return os.access(_place or place(), os.F_OK)  # The cheapest look: a shim makes some for each worker.
    except (AgentctlError, OSError):
        return False


def _name(whose: WorkerDir | TaskDir, kind: str) -> FilePath:
    task, name = (whose, _NO_WORKER) if isinstance(whose, TaskDir) else (whose.task, whose.instance)
    nonce = task.nonce()
    if not nonce.isalnum():
        raise Refused(f"{task.path} has no `origin`, so nothing of it can wait in memory")
    return place() / f"{nonce}.{name}.{kind}"


def defer_request(whose: WorkerDir | TaskDir, kind: str, body: dict[str, Any]) -> None:
    """Keep a request, in the place of an earlier one of its kind.

    It is the text of a symbolic link: that is made whole, in one call, without a descriptor and without a block.

    Raises:
        AgentctlError: There is no place in memory for it.
        OSError: Memory refuses it too.
    """

    def write(path: FilePath) -> None:
        made = f"{path}.{os.urandom(4).hex()}.tmp"
        os.symlink(json.dumps(body), made)
        os.rename(made, path)

    _keep(_name(whose, kind), write)


def _keep(path: FilePath, write: Callable[[FilePath], None]) -> None:
    for is_last in (*[False] * _TRIES, True):
        with contextlib.suppress(FileExistsError):
            os.mkdir(os.path.dirname(path), 0o700)
        try:
            write(path)
        except FileNotFoundError:  # Whoever forgot the last entry has removed the folder meanwhile.
            if is_last:
                raise
        else:
            return


def request(whose: WorkerDir | TaskDir, kind: str) -> dict[str, Any] | None:
    """Return a request that waits in memory; None if there is none."""
    if not are_any():
        return None
    try:
        value = json.loads(os.readlink(_name(whose, kind)))
    except ValueError:
        value = {}  # Not ours, but somebody asks for something.
    except (AgentctlError, OSError):
        return None
    return value if isinstance(value, dict) else {}


def forget_request(whose: WorkerDir | TaskDir, kind: str, body: dict[str, Any] | None = None) -> None:
    """Remove a request that is on disk by now or is taken back: only this very one, where its content is given."""
    if body is None or request(whose, kind) == body:
        _remove(whose, kind)


def say(worker: WorkerDir, standing: Mapping[str, object]) -> None:
    """Keep what a guardian holds and says: here it outlives the guardian.

    Raises:
        AgentctlError: There is no place in memory for it.
        OSError: Memory refuses it too.
    """
    _keep(_name(worker, _STANDING), lambda path: write_whole(path, to_json(standing), durable=False))


def standing(worker: WorkerDir) -> RefusedByDisk:
    """Return what the guardian of a worker holds and says while the disk refuses something; {} otherwise."""
    if not are_any():
        return {}
    with contextlib.suppress(AgentctlError, OSError):
        said: Any = read_known(_name(worker, _STANDING))
        found: RefusedByDisk = said  # As the guardian wrote it.
        return found
    return {}


def unsay(worker: WorkerDir) -> None:
    """Remove what a guardian has said: the disk refuses nothing any more."""
    _remove(worker, _STANDING)


def clear(worker: WorkerDir) -> None:
    """Remove all that is deferred of a worker: the disk has it, or the worker has ended."""
    if are_any():
        for kind in (CANCEL, PAUSE, _STANDING):
            _remove(worker, kind)


def _remove(whose: WorkerDir | TaskDir, kind: str) -> None:
    with contextlib.suppress(AgentctlError, OSError):
        os.unlink(_name(whose, kind))
    with contextlib.suppress(AgentctlError, OSError):
        os.rmdir(place())  # Refused while anything is in it.
