"""What can be said of a worker that is to be started, each option once.

From here come the keys of a batch and of a template's roster, and what of them `spec.json` keeps as it was said. What a
type checker has to read is written out: the fields of `SpawnRequest` and `AgentWork`, `agentctl.SpawnOptions`.
`tests/unit/test_start_options.py` holds every place where a start is asked for to this table.
"""

from __future__ import annotations

from agentctl.lean import NamedTuple

# What a value is, in the words of an error.
TEXT, NUMBER, WHOLE, FLAG, TEXTS, TABLE = (
    "text", "a number", "a whole number", "true or false", "a list of texts", "a table of texts",
)  # fmt: skip
# Where an option can be given beside `spawn` and its batches, which have them all.
API, TOOLS, SUBTASK = "the calls of Python programs", "the tools of agents", "the command subtask"


class Option(NamedTuple):
    """An option of a start."""

    name: str
    kind: str
    also: tuple[str, ...] = (API,)
    #: The field of `WorkerSpec` that has it as it was said.
    kept: str | None = None


#: Fields of `AgentWork`; with a command there are none of them.
OF_AGENTS = (
    Option("agent", TEXT),
    Option("driver", TEXT, (API, TOOLS, SUBTASK)),
    Option("model", TEXT, (API, TOOLS, SUBTASK)),
    Option("effort", TEXT, (API, TOOLS)),
    Option("max_turns", WHOLE, (API, TOOLS, SUBTASK)),
    Option("max_budget_usd", NUMBER),
    Option("permissions", TEXT, (API, TOOLS, SUBTASK)),
    Option("keep", FLAG, ()),
    Option("output_schema", TEXT),
)
#: Fields of `SpawnRequest`.
OF_WORKERS = (
    Option("name", TEXT),
    Option("cwd", TEXT, (API, SUBTASK)),
    Option("env", TABLE),
    Option("timeout_seconds", NUMBER, (API, SUBTASK)),
    Option("grace_seconds", NUMBER),
    Option("priority", WHOLE, (API, SUBTASK), "priority"),
    Option("after", TEXTS, kept="after"),
    Option("after_any", FLAG, kept="after_any"),
    Option("retries", WHOLE, kept="retries"),
    Option("retry_delay_seconds", NUMBER, kept="retry_delay_s"),
    Option("max_park_seconds", NUMBER, kept="max_park_s"),
    Option("key", TEXT, kept="key"),
    Option("reuse", FLAG),
    Option("keep_children", FLAG, kept="keep_children"),
    Option("worktree", FLAG, (API, TOOLS, SUBTASK)),
)
OPTIONS = (*OF_AGENTS, *OF_WORKERS)
