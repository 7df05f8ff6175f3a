r"""A line that starts a worker: how it is read, and how it is carried out. Needs no textual.

    [@TASK] [in:FOLDER] [name:NAME] AGENT PROMPT
    [@TASK] [in:FOLDER] [name:NAME] ! COMMAND

The words in front stand in any order, each at most once: in which task, in which folder, under which name. Such a word
is quoted as in a shell (`in:"my work"`); `~` in front of a folder is the home folder, and one that is really called so
is `./~`.

The next word decides, and nothing is guessed: `!` begins a command, the exact name of an agent its prompt, and any
other word is an error that names the agents. A prompt is everything that follows, with its quotes and line breaks.

A command in which a shell has nothing to do but to split words is executed as it is, so the worker has its name; any
other (a pipe, `$HOME`, `*.py`, `A=1 make`) is given to `/bin/sh -c`.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection

from agentctl.adapters.taskdir import Root
from agentctl.domain.names import check_name, first_of
from agentctl.errors import UsageError
from agentctl.lean import NamedTuple
from agentctl.operations.start.requests import AgentWork, Spawned, SpawnRequest
from agentctl.operations.start.spawning import spawn_workers, task_for_spawn
from agentctl.operations.trust.definitions import list_agent_specs

#: The words in front, and what each of them names.
IN_FRONT = {"@": "a task", "in:": "a folder", "name:": "the worker"}
#: Begins a command.
COMMAND_MARK = "!"
#: A word as a shell takes it: parts in quotes, and characters behind a backslash, belong to it.
_WORD = re.compile(r"""(?:[^\s'"\\]|\\.|'[^']*'|"(?:[^"\\]|\\.)*")+""", re.DOTALL)
#: What a shell acts on, wherever it stands; in quotes it would mostly not, and then it does no harm to ask one.
_OF_SHELL = frozenset("|&;<>()$`*?[]{}#~!\\\n\r")
_LONGEST_TITLE = 60


class KnownNames(NamedTuple):
    """What a line may name."""

    agents: Collection[str]
    tasks: Collection[str]


class StartLine(NamedTuple):
    """What a line asks for."""

    request: SpawnRequest
    #: The task that it names, else the one that it was typed over; None leaves it to `start_by_line`.
    task: str | None = None
    #: The title of a task that is made for it.
    title: str = "Task"


def known_names(root: Root) -> KnownNames:
    """Return what the lines of a root may name now; it reads definitions, which may take a moment."""
    return KnownNames([agent.spec.name for agent in list_agent_specs(root)[0]], root.task_ids())


def parse_start_line(line: str, known: KnownNames, task: str | None = None) -> StartLine:
    """Return what a line asks for.

    Args:
        task: The task of a line that names none.

    Raises:
        UsageError: The line is empty, or something in it is missing, unknown, or there twice.
    """
    front, rest = _split_front(line)
    if "@" in front:
        task = _known_task(front["@"], known)
    name = check_name(front["name:"], "the name") if "name:" in front else None
    request = SpawnRequest(name=name, cwd=_folder(front["in:"]) if "in:" in front else None)
    if rest.startswith(COMMAND_MARK):
        command = rest.removeprefix(COMMAND_MARK).strip()
        return StartLine(request._replace(argv=_argv(command)), task, _title(command))
    agent, prompt = _agent_and_prompt(rest, known)
    return StartLine(request._replace(work=AgentWork(prompt=prompt, agent=agent)), task, _title(prompt))


def start_by_line(root: Root, line: StartLine, key: str | None = None) -> Spawned:
    """Start what a line asks for, or queue it; where no task is named or chosen, one is made.

    Args:
        key: The same key twice starts one worker.

    Raises:
        AgentctlError: It may not be started, or something that it needs is missing; nothing was started.
    """
    # Whoever typed the line has opened this root already: whether it is theirs was asked then.
    task = task_for_spawn(line.task, root=str(root.path), force=True, title=line.title)
    return spawn_workers(task, [line.request._replace(key=key)], queue=True)[0]


def mark_of(word: str) -> str | None:
    """Return which of `IN_FRONT` a word begins with; None for any other word."""
    return next((mark for mark in IN_FRONT if word.startswith(mark)), None)


def _split_front(line: str) -> tuple[dict[str, str], str]:
    """Return the words in front by their marks, and what follows them."""
    front: dict[str, str] = {}
    rest = line.strip()
    while (mark := mark_of(rest)) is not None:
        word, rest = _first_word(rest)
        if mark in front:
            raise UsageError(f"{mark} is given twice", hint=f"it names {IN_FRONT[mark]}, and a line has one")
        front[mark] = word.removeprefix(mark)
        if not front[mark]:
            raise UsageError(f"{mark} names nothing", hint=f"{IN_FRONT[mark]} follows it, without a space")
    if not rest:
        raise UsageError("there is nothing to start", hint="AGENT PROMPT, or ! COMMAND")
    return front, rest


def _first_word(text: str) -> tuple[str, str]:
    found = _WORD.match(text)
    end = found.end() if found else 0
    if not found or not (end == len(text) or text[end].isspace()):
        raise UsageError(f"a quote is not closed: {text[:40]!r}", hint="""in:"my work", in:'my work' or in:my\\ work""")
    return shlex.split(found[0])[0], text[end:].lstrip()


def _known_task(name: str, known: KnownNames) -> str:
    if name not in known.tasks:
        names = first_of(sorted(known.tasks)) or "none yet; without @ one is made"
        raise UsageError(f"there is no task {name!r} here", hint=f"known: {names}")
    return name


def _folder(text: str) -> str:
    return os.path.expanduser(text) if text == "~" or text.startswith("~/") else text


def _argv(command: str) -> list[str]:
    """Return how a command is executed: directly where a shell would only split it into words."""
    if not command:
        raise UsageError("there is no command behind the !", hint="! make test")
    if _OF_SHELL.isdisjoint(command):
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise UsageError(f"a quote in the command is not closed: {command[:40]!r}") from error
        if not words[0]:
            raise UsageError("the command has an empty name", hint="! make test")
        if "=" not in words[0]:
            return words
    return ["/bin/sh", "-c", command]


def _agent_and_prompt(text: str, known: KnownNames) -> tuple[str, str]:
    agent, *behind = text.split(maxsplit=1)
    if agent not in known.agents:
        raise UsageError(
            f"{agent[:40]!r} is not an agent",
            hint=f"a line begins with an agent ({first_of(sorted(known.agents), 30)}), or with ! for a command",
        )
    if not behind:
        raise UsageError(f"there is no prompt for {agent}", hint=f"{agent} WHAT TO DO")
    return agent, behind[0]


def _title(text: str) -> str:
    first = text.splitlines()[0] if text.splitlines() else ""
    return " ".join(first[:_LONGEST_TITLE].split()) or "Task"
