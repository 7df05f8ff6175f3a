"""The list of commands: where each is declared, and what it is for. Nothing of a command is loaded for it.

A command loads its own module and what that imports. So `list` does not load what `spawn` needs.
"""

from __future__ import annotations

from importlib import import_module

from agentctl.lean import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from agentctl.interfaces.commands.model.command_model import Command, Family


class Listed(NamedTuple):
    """A command: the module of `interfaces/commands` that declares it, and its line in `agentctl --help`."""

    module: str
    help: str


#: name -> command, in the order in which a person meets them.
VERBS: dict[str, Listed] = {
    "new": Listed("start.tasks", "Make a task and choose it."),
    "use": Listed("start.tasks", "Choose the task that later commands mean, or say which."),
    "tasks": Listed("start.tasks", "List the tasks."),
    "templates": Listed("start.tasks", "List the templates that `new --template` knows."),
    "agents": Listed("start.agents", "List and show the agents that can be spawned."),
    "trust": Listed("upkeep.trust", "Trust definitions, templates, tasks and settings that come with the project."),
    "spawn": Listed("start.spawn", "Start an agent or a command as a worker."),
    "spawn-template": Listed("start.spawn", "Start the workers of the template that the task was made from."),
    "resume-queue": Listed("start.spawn", "Give this command's environment to queued workers that have lost theirs."),
    "subtask": Listed("start.subtask", "Give an agent a task of its own below this one, and wait for its answer."),
    "list": Listed("show.list", "List the workers of a task and their status."),
    "watch": Listed("watch.watch", "Watch the workers of all tasks, and answer those that ask."),
    "serve": Listed("programs.serve", "Serve the workers of all tasks to a browser, and over HTTP."),
    "tree": Listed("show.tree", "Show what the workers of a task do, and their sub-agents."),
    "timeline": Listed("show.timeline", "Show when each worker was queued, at work, blocked or parked."),
    "show": Listed("show.list", "Show everything that is known about one worker."),
    "why": Listed("show.why", "Say why a worker is in its state, from which evidence, and what would change it."),
    "wait-any": Listed("wait.wait_any", "Wait for the next worker to end or to block."),
    "wait": Listed("wait.wait", "Wait until the named workers have ended."),
    "wait-all": Listed("wait.wait", "Wait until all workers of the task have ended."),
    "cancel": Listed("steer.cancel", "Stop workers with all their processes."),
    "pause": Listed("steer.pause", "Stop all processes of a worker, and its clock; or hold the queue of a task."),
    "unpause": Listed("steer.pause", "Let a paused worker continue, or let the queue of a task go."),
    "interact": Listed("steer.interact", "Ask, list and answer the questions of workers."),
    "report": Listed("steer.report", "Report progress, a message or a result from inside a worker."),
    "send": Listed("steer.send", "Send a message to a worker."),
    "resume": Listed("start.resume", "Continue an ended agent in its own session."),
    "retry": Listed("start.retry", "Start the work of an ended worker once more."),
    "inbox": Listed("steer.send", "Read the next message, from inside a worker."),
    "result": Listed("show.result", "Print the result of a worker."),
    "join": Listed("show.join", "Write one report of the results of several workers."),
    "search": Listed("show.search", "Find where words occur in all tasks, the newest first."),
    "usage": Listed("show.usage", "Show what the workers of a tree have used, and what is left."),
    "worktrees": Listed("show.worktrees", "List, show, compare and remove the git worktrees of workers."),
    "notify": Listed("upkeep.notify", "Show, try and choose where you are told what happens in a task."),
    "logs": Listed("show.logs", "Print the output of a worker."),
    "activity": Listed("show.activity", "Print the rows of a worker's activity, or make them again."),
    "events": Listed("show.logs", "Print the events of a task."),
    "acp": Listed("programs.acp", "Be an agent for an editor, over the Agent Client Protocol."),
    "mcp": Listed("programs.mcp", "Serve the tools for agents over MCP."),
    "install": Listed("programs.install", "Teach an agent program to delegate to agentctl."),
    "hook": Listed("programs.hook", "Note the sub-agents that Claude Code and Codex start by themselves."),
    "doctor": Listed("upkeep.doctor", "Look for damage and leftovers, and repair what is safe to repair."),
    "demo": Listed("start.demo", "See it all at work in under a minute: five workers survey a source tree."),
}


def command_named(name: str) -> Command | Family:
    """Return a command, or the family of that name.

    Raises:
        KeyError: There is none.
    """
    listed = VERBS[name]
    module = import_module(f"agentctl.interfaces.commands.{listed.module}")
    found: Command | Family = next(one for one in module.COMMANDS if one.name == name)
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
