"""Keys of requests: one key does one thing in its task, however often and by how many processes the request is sent.

A file in `keys/` says which request has the key, and where to find what it did: a worker, a message in an inbox, or a
sub-task.
Only that proves that something was done. So a key whose request was refused, or killed on its way, is free again.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from agentctl.adapters import processes
from agentctl.adapters.files import make_folder, read_known
from agentctl.adapters.locks import locked
from agentctl.adapters.processes import Identity, Life
from agentctl.adapters.taskdir import TaskDir, WorkerDir
from agentctl.domain.names import check_name
from agentctl.domain.same_request import differing_parts, digests_of
from agentctl.domain.states import Status
from agentctl.errors import Conflict, Next, Refused
from agentctl.lean import NamedTuple
from agentctl.operations.start.key_records import (
    Made,
    differing_words,
    digest_of_key,
    keep_record,
    note_task,
    record_of_key,
    task_of_key,
)
from agentctl.operations.start.options import OF_AGENTS, OF_WORKERS
from agentctl.operations.start.requests import KeyOfOne, Spawned, SpawnRequest, check_key
from agentctl.operations.where.locating import is_in_log
from agentctl.operations.where.tries_in_log import tries_of
from agentctl.supervision import failpoints
from agentctl.supervision.life.judging import judge, queued_instances, settle
from agentctl.supervision.worker.endings import decision_of
from agentctl.supervision.worker.inboxes import message_of_key, put_message
from agentctl.supervision.worker.spec import is_of_task

START, MESSAGE, SUBTASK = "start", "message", "subtask"
#: Options that say neither what a worker does nor with what, but how it is called and when its turn comes.
_ASIDE = frozenset({"name", "priority", "key", "reuse"})
_DEFAULTS = SpawnRequest._field_defaults
#: In the record of a key that is about several targets: their names. What it has done is what was done to any of them.
_EACH = "each"


class _Done(NamedTuple):
    """What a key has done."""

    kind: str
    words: str
    #: The task in which it has done that, or which it has made; and the worker, unless it has made a task.
    task_id: str
    instance: str = ""
    #: Of a message.
    message_id: str = ""


def work_named(task: TaskDir, name: str) -> str:
    """Return the work of a named worker: sent again, a request may name a newer try of it by the same name."""
    return tries_of(task).work_of(name)


def each_keyed(
    task: TaskDir, key: str | None, names: Sequence[str], said: Mapping[str, str]
) -> dict[str, str | None]:  # fmt: skip
    """Return the key of each target of one request: what is done to one of them is done by itself.

    Of several each has a key by its own name, whichever others are there by now; the key as it was given says what they
    were asked, so that another request with it meets that. Of two different requests that come at once, the one that
    is written down last has the key: nothing is done for the other one any more (`_check_has_the_key`).

    Args:
        names: All that the request names, also those that are not there any more.
        said: The request.

    Raises:
        Conflict: The key has done something else.
    """
    check_key(key)
    different = sorted({*names})
    if key is None or len(different) == 1:
        return dict.fromkeys(different, key)
    with _keys_locked(task):
        record = record_of_key(task.keys, key)
        done = _done(task, key, record)
        if done is not None:
            _check_same(key, record, said, done)
        else:
            keep_record(task.keys, key, {_EACH: different, "request": said})
    return {name: KeyOfOne(key, name, said) for name in different}


def _check_has_the_key(task: TaskDir, key: str | None) -> None:
    """Raise `Conflict` if the key of a request about several workers has become that of another one meanwhile.

    Raced by a different request with that key, before either has done anything. The caller has the lock of the keys.
    """
    if isinstance(key, KeyOfOne):
        record = record_of_key(task.keys, key.whole)
        differing = differing_parts(record.get("request") or {}, key.said)
        if differing:
            did, hint = "been taken by another request", "choose another key"
            raise Conflict(key.whole, did, differing_words(differing), task_id=task.id, instance=None, hint=hint)


# -- starts ------------------------------------------------------------------------------------------------------------


def take_key(
    task: TaskDir, request: SpawnRequest, take_name: Callable[[], WorkerDir], remove: Callable[[WorkerDir], None]
) -> WorkerDir | Spawned:
    """Take a name for a request with a key, or return the worker that it has started; of many, one starts it.

    Args:
        remove: Removes the folder of a worker that was never accepted.

    Raises:
        Conflict: The key has done something else.
    """
    sole = None if request.sole is None else _key_of_sole(request.sole)
    keys = [key for key in (request.key, sole) if key is not None]
    with _keys_locked(task):
        for key in keys:
            record = record_of_key(task.keys, key)
            done = _done(task, key, record)
            is_stale = done is not None and request.reuse and done.kind == START and _has_failed(task, done)
            if done is not None and not is_stale:
                if key == request.key:
                    _check_same(key, record, request.said, done)
                return _spawned_of(task.worker(done.instance))
            left = None if done is not None else _unbegun(task, key, record)
            if left is not None:
                remove(left)
        _check_has_the_key(task, request.key)
        worker = take_name()
        try:
            me = processes.identify(os.getpid())
            record = {"agentInstance": worker.instance, "spawner": me and me.to_json(), "request": request.said}
            for key in keys:
                keep_record(task.keys, key, record)
        except BaseException:
            remove(worker)
            raise
        return worker


def said_of_start(request: SpawnRequest) -> Mapping[str, str]:
    """Return the request of a start as its caller says it."""
    said: dict[str, Any] = {"argv": list(request.argv), "artifacts": list(request.artifacts)}
    of_worker = (one.name for one in OF_WORKERS if one.name not in _ASIDE)
    said |= {name: value for name in of_worker if (value := getattr(request, name)) != _DEFAULTS[name]}
    if request.work is not None:
        said |= {name: getattr(request.work, name) for name in ("prompt", *(one.name for one in OF_AGENTS))}
        said["mcp_servers"] = request.work.mcp_servers
    return digests_of(START, said)


def started_once(task: TaskDir, key: str | None, said: Mapping[str, str], start: Callable[[], Spawned]) -> Spawned:
    """Return the worker that a key has started, or else start it.

    Of two that come at once, the second may find that there is nothing to be done any more: then the first one has done
    it.

    Raises:
        Conflict: The key has done something else.
    """
    found = started_by_key(task, key, said)
    if found is not None:
        return found
    try:
        return start()
    except Refused:
        found = started_by_key(task, key, said)
        if found is None:
            raise
        return found


def started_by_key(task: TaskDir, key: str | None, said: Mapping[str, str] | None) -> Spawned | None:
    """Return the worker that a key has started, None if it has done nothing yet.

    Args:
        said: The request; None takes any.

    Raises:
        Conflict: It has done something else.
    """
    check_key(key)
    return None if key is None else _started(task, key, said)


def sole_started(task: TaskDir, sole: str) -> Spawned | None:
    """Return the only worker of its kind (`SpawnRequest.sole`), None if none was started yet."""
    return _started(task, _key_of_sole(sole), None)


def _started(task: TaskDir, key: str, said: Mapping[str, str] | None) -> Spawned | None:
    if not task.keys.exists():
        return None
    record = record_of_key(task.keys, key)
    done = _done(task, key, record)
    if done is None:
        return None
    _check_same(key, record, said, done)
    return _spawned_of(task.worker(done.instance))


def _key_of_sole(sole: str) -> str:
    """Return the key under which only one such worker is started, whoever asks; no caller can choose it."""
    return f"\0{sole}"


def _unbegun(task: TaskDir, key: str, record: Mapping[str, Any]) -> WorkerDir | None:
    """Return the worker of a key that has started none: its spawner was killed on the way, or took its folder back."""
    worker = _worker_in(task, record)
    return worker if worker is not None and record.get("message") is None and _is_started_by(worker, key) else None


# -- messages ----------------------------------------------------------------------------------------------------------


def put_message_once(worker: WorkerDir, key: str, said: Mapping[str, Any], sender: str, text: str, **how: bool) -> str:
    """Put a message into a worker's inbox, if its key has not done so before; return its id.

    Args:
        said: The request, part by part.

    Raises:
        Conflict: The key has done something else.
        Refused: The worker has ended, or the inbox is full.
    """
    task, said = worker.task, digests_of(MESSAGE, said)
    check_key(key)
    with _keys_locked(task):
        record = record_of_key(task.keys, key)
        done = _done(task, key, record)
        if done is not None:
            _check_same(key, record, said, done)
            return done.message_id
        _check_has_the_key(task, key)
        # Before the message, so that no message is without; the message itself says whether it was sent.
        keep_record(task.keys, key, {"agentInstance": worker.instance, "message": True, "request": said})
        failpoints.reached("send.after-key")
        return put_message(worker, sender, text, key=digest_of_key(key), **how)


def done_by_key(task: TaskDir, key: str | None) -> str | None:
    """Return what kind of thing a key has done, `START`, `MESSAGE` or `SUBTASK`; None if nothing yet."""
    done = None if key is None else _done(task, key, record_of_key(task.keys, key))
    return done and done.kind


# -- sub-tasks ---------------------------------------------------------------------------------------------------------


def make_subtask_once(
    parent: TaskDir, key: str | None, said: Mapping[str, Any], make: Callable[[], TaskDir]
) -> Made:  # fmt: skip
    """Return the sub-task that a key has made, or else make it; whether it has a worker is another question.

    Args:
        said: The request, part by part.

    Raises:
        Conflict: The key has done something else.
    """
    if key is None:
        return Made(make())
    with _keys_locked(parent):
        found = subtask_by_key(parent, key, said)
        if found is not None:
            return Made(found, reused=True)
        child = make()
        # Afterwards: then a sub-task that has the key is one of which its parent knows.
        note_task(parent.keys, key, child, digests_of(SUBTASK, said))
        failpoints.reached("subtask.after-key")
        return Made(child)


def subtask_by_key(parent: TaskDir, key: str | None, said: Mapping[str, Any]) -> TaskDir | None:
    """Return the sub-task that a key has made, None if it has done nothing yet.

    Raises:
        Conflict: It has done something else.
    """
    check_key(key)
    if key is None or not parent.keys.exists():
        return None
    record = record_of_key(parent.keys, key)
    done = _done(parent, key, record)
    if done is None:
        return None
    _check_same(key, record, digests_of(SUBTASK, said), done)
    return parent.sibling(done.task_id)


# -- records -----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _keys_locked(task: TaskDir) -> Iterator[None]:
    make_folder(task.keys)
    with locked(task.keys / ""):
        yield


def _worker_in(task: TaskDir, record: Mapping[str, Any]) -> WorkerDir | None:
    name = record.get("agentInstance")
    return None if name is None else task.worker(check_name(str(name), "the instance of a key"))


def _is_believed(worker: WorkerDir) -> bool:
    """Return whether the record of a key, which may have come with somebody else's files, may be about this worker."""
    # In this order: a spec that is written between the two looks does not come from a stranger.
    return not worker.spec.exists() or is_of_task(worker)


def _is_started_by(worker: WorkerDir, key: str) -> bool:
    """Return whether a worker may be the one that a key was for.

    Its spec names the key: where a start was refused, somebody else may have got the name since.
    """
    if not _is_believed(worker):
        return False
    return not worker.spec.exists() or key in _keys_of(read_known(worker.spec))


def _keys_of(spec: Mapping[str, Any]) -> tuple[str | None, ...]:
    return spec.get("key"), spec.get("sole") and _key_of_sole(str(spec["sole"]))


def _done(task: TaskDir, key: str, record: Mapping[str, Any]) -> _Done | None:
    """Return what a key has done; None where it is free, also because what it did was thrown away."""
    for name in record.get(_EACH) or ():
        own = KeyOfOne(key, str(name), {})
        done = _done(task, own, record_of_key(task.keys, own))
        if done is not None:
            return done
    made = task_of_key(task.root, key, record)
    if made is not None:
        return _Done(SUBTASK, f"made the sub-task {made.id}", made.id)
    worker = _worker_in(task, record)
    if worker is None or not _is_believed(worker):
        return None
    if record.get("message") is not None:
        message_id = message_of_key(worker, digest_of_key(key))
        did = f"sent {message_id} to {worker.instance}"
        return None if message_id is None else _Done(MESSAGE, did, task.id, worker.instance, message_id)
    if not _is_started_by(worker, key) or not _is_begun(worker, processes.identity_from(record.get("spawner"))):
        return None
    return _Done(START, f"started {worker.instance}", task.id, worker.instance)


def _check_same(key: str, record: Mapping[str, Any], said: Mapping[str, str] | None, done: _Done) -> None:
    """Raise `Conflict` if a key has done something else. An older record does not say what it was for."""
    before = record.get("request")
    differing = differing_parts(before, said) if said is not None and isinstance(before, dict) else []
    if differing:
        hint = Next("another key", done.instance) if done.instance else Next("another key for a task", done.task_id)
        raise Conflict(
            key, done.words, differing_words(differing), task_id=done.task_id, instance=done.instance or None, hint=hint
        )


def _is_begun(worker: WorkerDir, spawner: Identity | None) -> bool:
    """Return whether the worker of a key is in the queue or further, or on its way there.

    A refused worker no longer has a folder. One whose spawner was killed on the way has neither ticket nor shim; if it
    is in the log already, it was begun, and has failed.
    """
    if spawner is None or processes.life_of(spawner) is not Life.GONE:
        return worker.path.exists()
    if worker.instance in queued_instances(worker.task) or worker.shim.exists() or worker.has_ended:
        return True
    return is_in_log(worker) and settle(worker, judge(worker))


def _has_failed(task: TaskDir, started: _Done) -> bool:
    """Return whether a worker has ended without success, so that its answer is not reused."""
    decision = decision_of(task.worker(started.instance))
    return decision is not None and decision.status is not Status.COMPLETED


def _spawned_of(worker_dir: WorkerDir) -> Spawned:
    decision, worker = decision_of(worker_dir), read_known(worker_dir.process)
    status = decision.status if decision else (Status.RUNNING if worker else Status.QUEUED)
    return Spawned(
        agent_instance=worker_dir.instance,
        status=status,
        task_id=worker_dir.task.id,
        pid=worker.get("pid"),
        reused=True,
    )
