"""The parameters that several commands share, each declared once."""

from __future__ import annotations

from collections.abc import Iterable

from agentctl.errors import Argument, UsageError, WithArguments
from agentctl.interfaces.commands.model.command_model import (
    AGENTS,
    DRIVERS,
    EFFORTS,
    FLAG,
    HOST_LIST,
    INSTANCES,
    NUMBER,
    OUTPUT,
    PLACE,
    POLICIES,
    RUNNERS,
    SECONDS,
    TASKS,
    TEXT,
    TEXTS,
    WHOLE,
    Parameter,
)
from agentctl.lean import TYPE_CHECKING

if TYPE_CHECKING:
    from agentctl.operations.start.options import Option

TASK = Parameter("task", TEXT, "The task; by default the chosen one (agentctl use).", "TASK", short="t",
                 completes=TASKS, group=PLACE)  # fmt: skip
ROOT = Parameter(
    "root", TEXT,
    "The folder that holds the tasks; by default the nearest .agentctl, up to the top of the git repository.", "FOLDER",
    group=PLACE,
)  # fmt: skip
FORCE = Parameter("force", FLAG, "Use a root that belongs to someone else or is on a network file system.", group=PLACE)
JSON = Parameter("json", FLAG, "Print one JSON document.", group=OUTPUT)
JSON_BY_LINE = JSON._replace(help="Print one JSON object per line.")

# What a command needs to find its place, and how it can print.
ANYWHERE = (JSON,)
IN_ROOT = (ROOT, FORCE, JSON)
IN_TASK = (TASK, *IN_ROOT)
#: Of a command that is about all tasks.
ONE_TASK = TASK._replace(help="Only this task; by default all tasks.")
IN_ALL_TASKS = (ONE_TASK, *IN_ROOT)
SHOWN_IN_TASK = (TASK, ROOT, FORCE)
BY_LINE_IN_TASK = (*SHOWN_IN_TASK, JSON_BY_LINE)

#: Of what agents say, at a terminal.
PLAIN = Parameter("plain_text", FLAG, "Their words as they wrote them: no Markdown is drawn.", typed="plain",
                  group=OUTPUT)  # fmt: skip

HOSTS = Parameter("hosts", TEXT, "On these hosts at once: all, or names with commas between; `here` is this machine.",
                  "LIST", completes=HOST_LIST, group=PLACE)  # fmt: skip
INSTANCE = Parameter("instance", TEXT, "The worker.", "INSTANCE", is_argument=True, is_required=True,
                     completes=INSTANCES)  # fmt: skip
_MANY = Parameter("instances", TEXTS, "The workers.", "INSTANCE...", is_argument=True, completes=INSTANCES)
SOME_INSTANCES = _MANY._replace(is_required=True)
NAMED_INSTANCES = _MANY._replace(metavar="[INSTANCE]...")
ANY_INSTANCES = _MANY._replace(help="The workers; by default all of the task.", metavar="[INSTANCE]...")
TIMEOUT = Parameter("timeout_seconds", SECONDS, "How long to wait; this stops no worker.", "N")
GRACE = Parameter("grace_seconds", SECONDS, "The pause between the signals of a cancel.", "N")
RECURSIVE = Parameter("recursive", FLAG, "Include the sub-tasks.")
FOLLOW = Parameter("follow", FLAG, "Keep printing as more is added.", short="f")
#: None, where neither is typed: `config.queue` of the task decides.
QUEUE_UP = Parameter("queue", FLAG, "Wait for a slot instead of being refused; by default as the task says.",
                     off="no-queue")  # fmt: skip
#: What was done is told each time.
KEY = Parameter("key", TEXT, "The same key twice does it once; with another request it is refused.", "TEXT")

#: Option of a start -> the names that it takes.
_COMPLETED = {
    "after": INSTANCES, "agent": AGENTS, "driver": DRIVERS, "effort": EFFORTS, "permissions": POLICIES,
    "runner": RUNNERS,
}  # fmt: skip


def of_start(options: tuple[Option, ...]) -> tuple[Parameter, ...]:
    """Return the parameters for options of a start, from the table that every surface shares."""
    from agentctl.operations.start import options as of
    from agentctl.operations.start.requests import AgentWork, SpawnRequest

    kinds = {of.TEXT: TEXT, of.WHOLE: WHOLE, of.FLAG: FLAG, of.TEXTS: TEXTS, of.TABLE: TEXTS, of.NUMBER: NUMBER}
    defaults = {**AgentWork._field_defaults, **SpawnRequest._field_defaults}
    return tuple(
        Parameter(
            one.name, SECONDS if one.name.endswith("_seconds") else kinds[one.kind], one.help, one.metavar,
            group=one.group, default=default if isinstance(default := defaults.get(one.name), int | float) else None,
            completes=_COMPLETED.get(one.name, ""),
        )
        for one in options
    )  # fmt: skip


def pairs_in(option: Argument, texts: Iterable[str]) -> dict[str, str]:
    """Return what an option names and gives: `K=V` each.

    Raises:
        UsageError: One is not of that form; of it only what stands before `=` is shown, as the rest may be a secret.
    """
    pairs = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise UsageError(WithArguments(option, f" {key!r} is not of the form K=V"))
        pairs[key] = value
    return pairs
