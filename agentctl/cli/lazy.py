"""The list of commands, and the group that loads only the one that is called.

A command loads its own module and what that imports; `agentctl --help` and the completion of a command's name
load none. So `list` does not load what `spawn` needs.
"""

from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer

from agentctl import __version__
from agentctl.cli.completing import complete_hosts
from agentctl.cli.verb import Family, family
from agentctl.errors import ExitCode, UsageError


class Listed(NamedTuple):
    """A command: the module that declares it, and its line in `agentctl --help`."""

    module: str
    help: str


#: name -> command, in the order in which a person meets them.
VERBS: dict[str, Listed] = {
    "new": Listed("tasks", "Make a task and choose it."),
    "use": Listed("tasks", "Choose the task to which later commands refer."),
    "tasks": Listed("tasks", "List the tasks."),
    "templates": Listed("tasks", "List the templates that `new --template` knows."),
    "agents": Listed("agents", "List and show the agents that can be spawned."),
    "trust": Listed("trust", "Trust definitions, templates, tasks and settings that come with the project."),
    "spawn": Listed("spawn", "Start an agent or a command as a worker."),
    "spawn-template": Listed("spawn", "Start the workers of the template that the task was made from."),
    "resume-queue": Listed("spawn", "Give this command's environment to queued workers that have lost theirs."),
    "subtask": Listed("subtask", "Give an agent a task of its own below this one, and wait for its answer."),
    "list": Listed("list", "List the workers of a task and their status."),
    "watch": Listed("watch", "Watch the workers of all tasks, and answer those that ask."),
    "serve": Listed("serve", "Serve the workers of all tasks to a browser, and over HTTP."),
    "tree": Listed("tree", "Show what the workers of a task do, and their sub-agents."),
    "timeline": Listed("timeline", "Show when each worker was queued, at work, blocked or parked."),
    "show": Listed("list", "Show everything that is known about one worker."),
    "why": Listed("why", "Say why a worker is in its state, from which evidence, and what would change it."),
    "wait-any": Listed("wait_any", "Wait for the next worker to end or to block."),
    "wait": Listed("wait", "Wait until the named workers have ended."),
    "wait-all": Listed("wait", "Wait until all workers of the task have ended."),
    "cancel": Listed("cancel", "Stop workers with all their processes."),
    "pause": Listed("pause", "Stop all processes of a worker, and its clock; or hold the queue of a task."),
    "unpause": Listed("pause", "Let a paused worker continue, or let the queue of a task go."),
    "interact": Listed("interact", "Ask, list and answer the questions of workers."),
    "report": Listed("report", "Report progress, a message or a result from inside a worker."),
    "send": Listed("send", "Send a message to a worker."),
    "resume": Listed("resume", "Continue an ended agent in its own session."),
    "retry": Listed("retry", "Start the work of an ended worker once more."),
    "inbox": Listed("send", "Read the next message, from inside a worker."),
    "result": Listed("result", "Print the result of a worker."),
    "join": Listed("join", "Write one report of the results of several workers."),
    "search": Listed("search", "Find where words occur in all tasks, the newest first."),
    "usage": Listed("usage", "Show what the workers of a tree have used, and what is left."),
    "worktrees": Listed("worktrees", "List, show, compare and remove the git worktrees of workers."),
    "notify": Listed("notify", "Show, try and choose where you are told what happens in a task."),
    "logs": Listed("logs", "Print the output of a worker."),
    "activity": Listed("activity", "Print the rows of a worker's activity, or make them again."),
    "events": Listed("logs", "Print the events of a task."),
    "acp": Listed("acp", "Be an agent for an editor, over the Agent Client Protocol."),
    "mcp": Listed("mcp", "Serve the tools for agents over MCP."),
    "install": Listed("install", "Teach an agent program to delegate to agentctl."),
    "hook": Listed("hook", "Note the sub-agents that Claude Code and Codex start by themselves."),
    "doctor": Listed("doctor", "Look for damage and leftovers, and repair what is safe to repair."),
    "demo": Listed("demo", "See it all at work in under a minute: five workers survey a source tree."),
}

_EXAMPLES = """
agentctl new "Survey the auth module"
agentctl spawn --name size -- du -sh .
agentctl wait-all && agentctl result size
"""


class LazyGroup(Family):
    """The program's commands; each is loaded only when it is called."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        return list(VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        if cmd_name not in self.commands and cmd_name in VERBS:
            self.commands[cmd_name] = _load(cmd_name)
        return self.commands.get(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0]
        if name not in VERBS and not name.startswith("-") and not ctx.resilient_parsing:
            raise UsageError(f"there is no command {name!r}", hint=_similar(name))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, listed.help) for name, listed in VERBS.items()])

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        from typer.core import CompletionItem  # type: ignore[attr-defined]

        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        return [CompletionItem(name) for name in VERBS if name.startswith(incomplete)]


def _load(name: str) -> Any:
    """Return a command from its module, which declares this one, several of a kind, or a family of that name."""
    module = import_module(f"agentctl.cli.{VERBS[name].module}")
    loaded = typer.main.get_command(module.app)
    return getattr(loaded, "commands", {}).get(name, loaded)


def _similar(name: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, VERBS, n=3)
    return f"did you mean {' or '.join(near)}?" if near else "agentctl --help lists them"


def program() -> Any:
    """Return the whole program as one command."""
    app = family("", examples=_EXAMPLES, exits=tuple(ExitCode), group=LazyGroup, add_completion=True)
    app.callback(invoke_without_command=True)(_start)
    return typer.main.get_command(app)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"agentctl {__version__}")
        raise typer.Exit


def _start(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    host: Annotated[
        str | None,
        typer.Option(
            "--host",
            metavar="HOST",
            help="Carry the command out there, over ssh: a name of your config.yaml, or user@machine. It comes first.",
            autocompletion=complete_hosts,
        ),
    ] = None,
) -> None:
    """Give work to several agents or commands at once: real processes, plain files, no daemon.

    The task is --task, else AGENTCTL_TASK, else the current one of the nearest .agentctl folder, up to the top of
    the git repository.
    Data goes to stdout, everything else to stderr; --json prints one JSON document.
    """
    if host is not None:  # Where it comes first, none of this is reached.
        raise UsageError("--host comes before everything else", hint=f"agentctl --host {host} COMMAND")
    if context.invoked_subcommand is None:
        raise UsageError("no command is given", hint="agentctl --help lists them")
