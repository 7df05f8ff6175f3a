"""Keys of tasks: one key makes one task of a root, however often and by how many processes that is asked for.

The task is proved by its own folder, which names the key; the file in `keys/` of the root says which task that is.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from agentctl.adapters.files import make_folder
from agentctl.adapters.taskdir import Root, TaskDir
from agentctl.domain.names import check_name
from agentctl.domain.same_request import differing_parts
from agentctl.errors import Argument, AtTerminal, Conflict, Next, Refused, WithArguments
from agentctl.operations.start.key_records import (
    Made,
    differing_words,
    is_made_by,
    note_task,
    record_of_key,
    task_of_key,
)
from agentctl.operations.start.requests import check_key
from agentctl.operations.where.root_lock import root_locked
from agentctl.supervision import failpoints

TASK = "task"
#: Notes the folder of a task that is being made; called before it is a task.
Note = Callable[[TaskDir], None]


def make_task_once(root: Root, key: str | None, said: Mapping[str, str], make: Callable[[Note], TaskDir]) -> Made:
    """Return the task that a key has made, or else make it.

    Args:
        make: Calls what it gets with the task's folder, before that is a task.

    Raises:
        Conflict: The key has made another task.
        Refused: What it has made was put away.
    """
    if key is None:
        return Made(make(lambda _task: None))
    check_key(key)
    make_folder(root.path)
    with root_locked(root):
        make_folder(root.keys)
        record = record_of_key(root.keys, key)
        task = task_of_key(root, key, record)
        if task is not None:
            differing = differing_parts(record.get("request") or {}, said)
            if differing:
                hint = Next("another key for a task", task.id)
                raise Conflict(
                    key,
                    f"made the task {task.id}",
                    differing_words(differing),
                    task_id=task.id,
                    instance=None,
                    hint=hint,
                )
            return Made(task, reused=True)
        _refuse_put_away(root, key, record)

        def note(task: TaskDir) -> None:
            note_task(root.keys, key, task, said)
            failpoints.reached("new.after-key")

        return Made(make(note))


def _refuse_put_away(root: Root, key: str, record: Mapping[str, Any]) -> None:
    """Raise `Refused` for a key whose task was put away: another one would be what was asked for once, made twice."""
    if record.get("taskId") is None:
        return
    from agentctl.operations.where.put_away import all_put_away  # Only where what a key made is gone.

    for place, _ in all_put_away(root):
        task = place.task(check_name(str(record["taskId"]), "the task of a key"))
        if is_made_by(task, key):
            name = os.path.basename(place.path)
            raise Refused(
                f"the key {key!r} has made the task {task.id}, which was put away as {name}",
                hint=(
                    AtTerminal(f"agentctl archive --bring-back {name} brings it back"),
                    WithArguments("or choose another ", Argument("key")),
                ),
            )
