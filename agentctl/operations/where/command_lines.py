"""The command line about a task, as it has to be typed: with `--task`, `--root` and `--host` only where needed."""

from __future__ import annotations

import os
from collections.abc import Sequence

from agentctl.adapters.taskdir import Root, TaskDir
from agentctl.errors import AgentctlError
from agentctl.operations.where.calling import BY_HOST
from agentctl.operations.where.chosen_task import chosen_task
from agentctl.operations.where.locating import find_root
from agentctl.supervision.worker.environment import TASK_VARIABLE


def command_line(task: TaskDir, *words: str) -> str:
    """Return `agentctl WORDS`, with the options without which it would mean another task than this one."""
    return line_with(task_options(task), *words)


def line_with(options: Sequence[str], *words: str) -> str:
    """Return `agentctl WORDS`, with the options of the task that it is about."""
    return " ".join([*program_words(), *words, *options])


def program_words() -> list[str]:
    """Return the words with which a command line begins: where another host has ordered this command, with its name."""
    host = os.environ.get(BY_HOST)
    if not host:
        return ["agentctl"]
    import shlex

    return ["agentctl", "--host", shlex.quote(host)]


def root_option(root: Root) -> list[str]:
    """Return the option that names a root; none if a command finds this one anyway."""
    try:
        is_found = root.is_at(find_root(None, force=True).path)
    except (AgentctlError, OSError):
        is_found = False
    if is_found:
        return []
    import shlex  # Mostly the root is found.

    return ["--root", shlex.quote(root.path)]


def root_words(root: Root) -> str:
    """Return the same, to be appended to a command line that names a task: empty, or ` --root FOLDER`."""
    return "".join(f" {word}" for word in root_option(root))


def task_options(task: TaskDir) -> list[str]:
    """Return the options without which a command line would mean another task than this one."""
    place = root_option(task.root)
    if not place and (task.is_meant or task.id == (os.environ.get(TASK_VARIABLE) or chosen_task(task.root))):
        return []
    return ["--task", task.id, *place]
