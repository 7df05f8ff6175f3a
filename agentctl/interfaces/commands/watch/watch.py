"""`watch`: what runs, who needs a person, and what becomes of it; on a terminal as a screen."""

from __future__ import annotations

import os

from agentctl.errors import ExitCode
from agentctl.interfaces.commands.model.command_model import (
    FINDS,
    FLAG,
    INSTANCES,
    TEXT,
    Carried,
    Command,
    Parameter,
    Shown,
)
from agentctl.interfaces.commands.model.invocation import Invocation
from agentctl.interfaces.commands.model.parameters import FORCE, HOSTS, ONE_TASK, ROOT


def watch(
    call: Invocation, *, instance: str | None = None, is_plain: bool = False, hosts: str | None = None
) -> Carried:
    """Watch the workers of all tasks, and answer those that ask.

    On a terminal it is a screen, or, without the extra `tui`, a table that is drawn again and again. To a pipe, on a
    dumb terminal and with --plain it prints lines: the current state by need, then one line for each change. With
    --task it shows only that task and those below it, by default all. With an INSTANCE it prints that worker's state,
    its output as `logs -f` does, its questions, which you answer there at a terminal, and its end, and exits as
    `wait` does. Ctrl-C leaves it; no worker is stopped. Where nothing was started yet, the screen has its line open in
    which you write what to start, and lines say so and end, with exit code 6. With --hosts it prints the lines of
    several hosts, each with its host in front.
    """
    if hosts is not None:
        from agentctl.interfaces.commands.watch.watch_on_hosts import changes_across

        return changes_across(call, hosts, instance)
    if instance is not None:
        from agentctl.interfaces.commands.watch.followed_worker import follow_worker

        return follow_worker(call, instance)
    if is_plain or not call.draws or os.environ.get("TERM") == "dumb":
        return _say_changes(call)
    return _show(call)


def _top(call: Invocation) -> str | None:
    task = call.named_task()
    return None if task is None else task.id


def _say_changes(call: Invocation) -> Carried:
    from agentctl.interfaces.commands.watch.fleet_changes import NO_WORKER, changes

    root, top = call.root(absent=True), _top(call)
    return changes(call, root, top) if root.path.is_dir() else Shown(None, [NO_WORKER], code=ExitCode.NOTHING_LEFT)


def _show(call: Invocation) -> Carried:
    """Show the screen, or a table where the screen's library is missing."""
    root, top = call.root(absent=True), _top(call)
    try:
        from agentctl.interfaces.screen.app import run_screen
    except ModuleNotFoundError as error:
        from agentctl.adapters.extras import install_command

        missing = (error.name or "agentctl").partition(".")[0]
        if missing == "agentctl":
            raise
        call.note(f"a table is shown, as {missing} is not installed; for the screen: {install_command('tui')}")
    else:
        return run_screen(root, task=top, force=call.force)
    if not root.path.is_dir():
        return _say_changes(call)
    from agentctl.interfaces.commands.watch.fleet_table import draw_changes

    return draw_changes(root, top)


COMMANDS = (
    Command(
        "watch",
        watch,
        (ONE_TASK, ROOT, FORCE),
        """
agentctl watch
agentctl watch --task survey-auth
agentctl watch --plain | tee watched.txt
agentctl watch explore-1
agentctl watch --hosts all
""",
        (
            Parameter(
                "instance", TEXT, "Follow this worker alone.", "[INSTANCE]", is_argument=True, completes=INSTANCES
            ),
            Parameter(
                "is_plain",
                FLAG,
                "One line for each change, and nothing drawn again: for screen readers.",
                typed="plain",
            ),
            HOSTS,
        ),
        exits=(*FINDS, ExitCode.NOTHING_LEFT, ExitCode.UNSUCCESSFUL),
    ),
)
