"""The list of commands: where each is declared, and what it is for. Nothing of a command is loaded for it.

A command loads its own module and what that imports. So `list` does not load what `spawn` needs.
"""

from __future__ import annotations

from collections.abc import Sequence

from agentctl.lean import TYPE_CHECKING, NamedTuple
from agentctl.parts import part

if TYPE_CHECKING:
    from agentctl.interfaces.commands.model.command_model import Command, Family


class Listed(NamedTuple):
    """A command: the module of `interfaces/commands` that declares it, its line in the help, and its heading there."""

    module: str
    help: str
    #: The heading below which it stands; none of a command that only has an older name for something.
    group: str = ""


#: The headings in their order. The first one is the first page of the help: the most wanted commands, 14 at most.
DAY, TASKS, LOOKING, CONNECTING, WITHIN = GROUPS = (
    "Every day", "Tasks", "Looking deeper", "Connecting", "Inside a worker",
)  # fmt: skip

#: name -> command, in the order in which each heading has them.
VERBS: dict[str, Listed] = {
    "spawn": Listed("start.spawn", "Start an agent or a command as a worker.", DAY),
    "watch": Listed("watch.watch", "Watch the workers of all tasks, and answer those that ask.", DAY),
    "list": Listed("show.list", "List the workers of a task and their status.", DAY),
    "answer": Listed("steer.open_questions", "Show the open questions of workers, and answer them.", DAY),
    "logs": Listed("show.logs", "Print the output of a worker.", DAY),
    "result": Listed("show.result", "Print the result of a worker.", DAY),
    "diff": Listed("show.worktrees", "Show what a worker has changed in its worktree, also while it works.", DAY),
    "retry": Listed("start.retry", "Start the work of an ended worker once more.", DAY),
    "send": Listed("steer.send", "Send a message to a worker.", DAY),
    "cancel": Listed("steer.cancel", "Stop workers with all their processes.", DAY),
    "wait": Listed("wait.wait", "Wait until workers have ended.", DAY),
    "rm": Listed("upkeep.rm", "Remove ended workers for good.", DAY),
    "why": Listed("show.why", "Say why a worker is in its state, and what would change it.", DAY),
    "doctor": Listed("upkeep.doctor", "Look for damage and leftovers, and repair what is safe to repair.", DAY),
    "new": Listed("start.tasks", "Make a task and choose it.", TASKS),
    "use": Listed("start.tasks", "Choose the task that later commands mean, or say which.", TASKS),
    "tasks": Listed("start.tasks", "List the tasks.", TASKS),
    "templates": Listed("start.tasks", "List the templates from which a task can be made.", TASKS),
    "spawn-template": Listed("start.spawn", "Start the workers of the template that the task was made from.", TASKS),
    "agents": Listed("start.agents", "List and show the agents that can be spawned.", TASKS),
    "trust": Listed(
        "upkeep.trust", "Trust definitions, templates, tasks and settings that come with the project.", TASKS
    ),
    "archive": Listed("upkeep.archive", "Put tasks away that are over, each with all tasks below it.", TASKS),
    "subtask": Listed(
        "start.subtask", "Give an agent a task of its own below this one, and wait for its answer.", TASKS
    ),
    "resume": Listed("start.resume", "Continue an ended agent in its own session.", TASKS),
    "pause": Listed(
        "steer.pause", "Stop all processes of a worker, and its clock; or hold the queue of a task.", TASKS
    ),
    "unpause": Listed("steer.pause", "Let a paused worker continue, or let the queue of a task go.", TASKS),
    "wait-any": Listed("wait.wait_any", "Wait for the next worker to end or to block.", TASKS),
    "wait-all": Listed("wait.wait", "Wait until all workers of the task have ended.", TASKS),
    "join": Listed("show.join", "Write one report of the results of several workers.", TASKS),
    "status": Listed("watch.status", "Show what needs you, what has failed and what runs, in all tasks.", LOOKING),
    "show": Listed("show.list", "Show everything that is known about one worker.", LOOKING),
    "tree": Listed("show.tree", "Show what the workers of a task do, and their sub-agents.", LOOKING),
    "timeline": Listed("show.timeline", "Show when each worker was queued, at work, blocked or parked.", LOOKING),
    "search": Listed("show.search", "Find where words occur in all tasks, the newest first.", LOOKING),
    "usage": Listed("show.usage", "Show what the workers of a tree have used, and what is left.", LOOKING),
    "worktrees": Listed("show.worktrees", "List, show, compare and remove the git worktrees of workers.", LOOKING),
    "events": Listed("show.logs", "Print the events of a task.", LOOKING),
    "activity": Listed("show.activity", "Print the rows of a worker's activity, or make them again.", LOOKING),
    "demo": Listed("start.demo", "See it all at work in under a minute: five workers survey a source tree.", LOOKING),
    "serve": Listed("programs.serve", "Serve the workers of all tasks to a browser, and over HTTP.", CONNECTING),
    "notify": Listed("upkeep.notify", "Show, try and choose where you are told what happens in a task.", CONNECTING),
    "install": Listed("programs.install", "Teach an agent program to delegate to agentctl.", CONNECTING),
    "mcp": Listed("programs.mcp", "Serve the tools for agents over MCP.", CONNECTING),
    "acp": Listed("programs.acp", "Be an agent for an editor, over the Agent Client Protocol.", CONNECTING),
    "report": Listed("steer.report", "Report progress, a message or a result from inside a worker.", WITHIN),
    "inbox": Listed("steer.send", "Read the next message, from inside a worker.", WITHIN),
    "interact": Listed("steer.interact", "Ask, list and answer the questions of workers.", WITHIN),
    "hook": Listed("programs.hook", "Note the sub-agents that Claude Code and Codex start by themselves.", WITHIN),
    "resume-queue": Listed("start.spawn", "Give this command's environment to queued workers that have lost theirs."),
}

#: What `agentctl` alone stands for.
ALONE = "status"
#: Words of commands that go on working -> what does the same.
OLDER_NAMES = {
    "interact list": "answer", "interact respond": "answer", "worktrees diff": "diff",
    "resume-queue": "resume --lost",
}  # fmt: skip
#: What other programs call a command -> the command here that means the same; none of them is offered or listed.
ALIASES = {
    "ps": "list", "ls": "list", "kill": "cancel", "stop": "cancel", "run": "spawn", "add": "spawn", "log": "logs",
    "rerun": "retry", "questions": "answer", "inspect": "show", "remove": "rm", "top": "watch",
}  # fmt: skip
#: What other programs call something that is close to a line here, but not the same.
CLOSE_LINES = {
    "attach": "watch WORKER", "follow": "logs -f WORKER", "tail": "logs -f WORKER", "restart": "retry WORKER",
    "start": "spawn -- COMMAND", "exec": "spawn -- COMMAND", "queue": "spawn --queue -- COMMAND",
    "enqueue": "spawn --queue -- COMMAND", "respond": "answer WORKER ANSWER", "continue": "resume WORKER",
    "task": "tasks", "clean": "rm --ended", "init": 'new "TITLE"', "version": "--version",
}  # fmt: skip


def listed_below(group: str) -> dict[str, Listed]:
    """Return the commands below a heading, in their order."""
    return {name: listed for name, listed in VERBS.items() if listed.group == group}


def meant(argv: Sequence[str]) -> list[str]:
    """Return a command line with the command that its first word means, if that is an alias.

    >>> meant(["kill", "a"]), meant(["list", "ps"]), meant([])
    (['cancel', 'a'], ['list', 'ps'], ['status'])
    """
    return [ALIASES.get(argv[0], argv[0]), *argv[1:]] if argv else [ALONE]


def command_named(name: str) -> Command | Family:
    """Return a command, or the family of that name.

    Raises:
        KeyError: There is none.
    """
    listed = VERBS[name]
    commands = part(f"agentctl.interfaces.commands.{listed.module}", "COMMANDS")
    found: Command | Family = next(one for one in commands if one.name == name)
    return found


def command_by_words(words: str) -> Command:
    """Return a command by its words: `interact list`.

    Raises:
        KeyError: There is none.
    """
    from agentctl.interfaces.commands.model.command_model import Family

    name, _, rest = words.partition(" ")
    found = command_named(name)
    below = found.command(rest) if isinstance(found, Family) else None if rest else found
    if below is None:
        raise KeyError(words)
    return below
