"""Keys of tasks: one key makes one task of a root, however often and by how many processes that is asked for.

The task is proved by its own folder, which names the key; the file in `keys/` of the root says which task that is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from agentctl.adapters.files import make_folder
from agentctl.adapters.taskdir import Root, TaskDir
from agentctl.domain.same_request import differing_parts
from agentctl.errors import Conflict, Next
from agentctl.operations.start.key_records import Made, differing_words, note_task, record_of_key, task_of_key
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

        def note(task: TaskDir) -> None:
            note_task(root.keys, key, task, said)
            failpoints.reached("new.after-key")

        return Made(make(note))
