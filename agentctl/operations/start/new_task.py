"""Makes a task, and chooses the task that later commands mean."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from typing import Any

from agentctl.adapters import eventlog
from agentctl.adapters.clock import now_iso
from agentctl.adapters.files import make_durable, make_folder, make_folders, storage_errors, write_whole
from agentctl.adapters.taskdir import Root, TaskDir
from agentctl.adapters.taskyaml import roster
from agentctl.adapters.taskyaml.reader import OTHER_KEYS
from agentctl.adapters.taskyaml.writer import yaml_head
from agentctl.adapters.treedir import tree_at
from agentctl.domain import events as ev
from agentctl.domain.agent.permissions import parse_policy
from agentctl.domain.names import check_name, first_free, slug
from agentctl.domain.tree.limits import KEYS, BadLimit, limits_from
from agentctl.encoding import as_utf8
from agentctl.errors import Argument, Next, NotFound, Refused, Taken, UsageError, WithArguments
from agentctl.operations.where.calling import caller
from agentctl.operations.where.chosen_task import chosen_task, write_choice
from agentctl.operations.where.lineage import who
from agentctl.operations.where.moved import note_paths_right
from agentctl.operations.where.ownership import check_own, mark_own, vouch_for_rules
from agentctl.operations.where.personal_config import DEFAULTS, section
from agentctl.operations.where.put_away import finish_put_away
from agentctl.operations.where.root_lock import root_locked
from agentctl.operations.where.task_config import keep_config

_LONGEST_TITLE = 4000
_CONFIG_KEYS = [*KEYS.values(), *sorted(OTHER_KEYS)]
_COMMENT = [
    "# config takes these; what is missing takes its default:",
    *(f"#   {', '.join(_CONFIG_KEYS[at : at + 5])}" for at in range(0, len(_CONFIG_KEYS), 5)),
]


def create_task(  # noqa: PLR0913 - keyword-only, each known to a caller
    root: Root,
    title: str,
    *,
    task_id: str | None = None,
    config: Mapping[str, Any] | None = None,
    above: Mapping[str, str] | None = None,
    furnish: Callable[[TaskDir], None] | None = None,
    is_taken: Callable[[str], bool] = lambda _: False,
    is_chosen: bool = True,
    note: Callable[[TaskDir], None] | None = None,
) -> TaskDir:
    """Make a task; if a person makes it, it is chosen, unless it is not to be.

    Args:
        config: Its limits, instead of the person's own, and other keys of `config` in task.yaml.
        above: The keys of a sub-task about the tasks above it. Its limits are theirs, and it is not chosen.
        furnish: Puts further files into its folder; if that fails, no task is made.
        is_taken: Tells whether an id is the name of something else.
        note: Gets its folder before that is a task.
    """
    defaults = {} if above else section(DEFAULTS)
    config = {**defaults, **(config or {})}
    try:
        limits_from({key: value for key, value in config.items() if key not in OTHER_KEYS})
    except BadLimit as error:
        raise UsageError(str(error)) from error
    if "permissions" in config and not above:
        from agentctl.operations.start.inherited import refuse_allowing  # Few tasks have rules of their own.

        refuse_allowing(parse_policy(config["permissions"]))
    title = as_utf8(title)
    if len(title) > _LONGEST_TITLE:
        raise UsageError(
            f"the title has {len(title)} characters; at most {_LONGEST_TITLE} are allowed",
            hint="it is shown wherever the task is; describe the work at length in the intent of a sub-task",
        )
    if task_id is not None and is_taken(task_id):
        raise Taken(f"{task_id!r} is a worker's name already", hint=Next("another id"))
    task = _make_folder(root, task_id, title, is_taken)
    try:
        if note is not None:
            note(task)
        if furnish is not None:  # Before it is a task: then it has all of it.
            furnish(task)
        _fill(task, title, config, above or {})
        return use_task(root, task.id) if is_chosen and not above and caller() is None else task
    except BaseException:  # A full disk, for example: an unfinished task must not keep the name.
        shutil.rmtree(task.path, ignore_errors=True)
        raise


def find_or_create_task(root: Root, task_id: str) -> TaskDir:
    """Return the task of an id; if there is none, make it, and choose it where none is chosen.

    Of several programs that ask for it at once, one makes it, and the others get it whole.
    """
    task = root.task(check_name(task_id, "the task"))
    finish_put_away(task)
    with root_locked(root):
        if task.exists:
            return task
        create_task(root, task_id, task_id=task_id, is_chosen=False)
    return task if caller() is not None or chosen_task(root) is not None else use_task(root, task_id)


def _fill(task: TaskDir, title: str, config: Mapping[str, Any], above: Mapping[str, str]) -> None:
    for folder in tree_at(task.path).folders():
        make_folder(folder)
    head = {"id": task.id, "title": title, "createdAt": now_iso(), **above, "config": config}
    text = yaml_head(head) + "".join(f"{line}\n" for line in _COMMENT).encode()
    write_whole(task.task_file, roster.initial(text), durable=False)
    note_paths_right(task)
    mark_own(task)
    vouch_for_rules(task, parse_policy(config.get("permissions")))
    keep_config(task, text, head)
    event = ev.make_event(now_iso(), ev.TASK_CREATED, task.id, who(), {"title": title, **above})
    eventlog.append(task.events, [event])
    make_durable([task.task_file, task.origin], task.path.parent)


def _make_folder(root: Root, task_id: str | None, title: str, is_taken: Callable[[str], bool]) -> TaskDir:
    """Take a name by mkdir: if two race, each gets one of its own."""
    if os.path.islink(root.tasks):
        raise Refused(
            f"{root.tasks} is a link: no task is made behind a link",
            hint=WithArguments("choose another ", Argument("root")),
        )
    from agentctl.operations.worktree.making import keep_out_of_git  # Most commands make no task.

    make_folders(root.tasks)
    keep_out_of_git(root)
    base = check_name(task_id, "the task id") if task_id is not None else slug(title)

    def numbered(number: int) -> TaskDir:
        return root.task(base if number == 1 else f"{base}-{number}")

    def is_in_use(number: int) -> bool:
        return numbered(number).path.exists() or is_taken(numbered(number).id)

    number = first_free(is_in_use) if is_taken(base) else 1
    while True:
        task = numbered(number)
        try:
            with storage_errors(task.path, "make the folder"):
                task.path.mkdir()
            return task
        except FileExistsError:
            if task.put_away.exists():  # It was being put away, and whoever did that was killed.
                finish_put_away(task)
                if not task.path.exists():
                    continue
            if task_id is not None:
                raise Taken(f"task {task_id!r} exists already", hint=Next("use", task_id)) from None
            number = max(number + 1, first_free(is_in_use))


def use_task(root: Root, task_id: str) -> TaskDir:
    """Choose a task for this seat, and for those where none was chosen."""
    task = root.task(check_name(task_id, "the task"))
    if not task.exists:
        raise NotFound(f"no task {task_id!r} in {root.path}", hint=Next("tasks"))
    check_own(task)
    with root_locked(root):
        write_choice(root, task.id)
    return task
