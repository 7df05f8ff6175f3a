"""The options of a start, each once.

From here come the options of `spawn` and of its plain lines, the keys of a batch and of a template's roster, and which
of them `spec.json` keeps unchanged. What a type checker has to read is written out: the fields of
`SpawnRequest` and `AgentWork`, and `agentctl.SpawnOptions`. `tests/unit/test_start_options.py` holds every place where
a start is asked for to this table.
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
    #: On the command line: what its value is called, and what it does.
    metavar: str | None
    help: str
    also: tuple[str, ...] = (API,)
    #: The field of `WorkerSpec` that keeps it unchanged.
    kept: str | None = None


#: Fields of `AgentWork`; a command has none of them.
OF_AGENTS = (
    Option("agent", TEXT, "AGENT", "explore, plan, general or your own (agentctl agents); else general."),
    Option("driver", TEXT, "DRIVER", "claude or codex; else the first found.", (API, TOOLS, SUBTASK)),
    Option("model", TEXT, "MODEL", "The agent's model, as its program names it.", (API, TOOLS, SUBTASK)),
    Option("effort", TEXT, "LEVEL", "How hard it thinks: low, medium, high.", (API, TOOLS)),
    Option("max_turns", WHOLE, "N", "How many tool rounds it may take.", (API, TOOLS, SUBTASK)),
    Option("max_budget_usd", NUMBER, "N", "What it may cost, in US dollars."),
    Option("permissions", TEXT, "POLICY", "ask, allow, deny, or rules in JSON; else the definition's, else ask.",
           (API, TOOLS, SUBTASK)),
    Option("keep", FLAG, None, "Keep the agent after its answer, for `send`.", ()),
    Option("output_schema", TEXT, "FILE", "A JSON schema that its final answer has to fit."),
)  # fmt: skip
#: Fields of `SpawnRequest`.
OF_WORKERS = (
    Option("name", TEXT, "INSTANCE", "Its name; else CMD and a number."),
    Option("cwd", TEXT, "FOLDER", "Where it runs.", (API, SUBTASK)),
    Option("env", TABLE, "K=V", "Set in its environment; repeatable."),
    Option("timeout_seconds", NUMBER, "N", "How long it may run; else the task's limit.", (API, SUBTASK)),
    Option("grace_seconds", NUMBER, "N", "The time between two signals of a cancel."),
    Option("priority", WHOLE, "N", "In the queue, the higher starts first.", (API, SUBTASK), "priority"),
    Option("after", TEXTS, "INSTANCE", "Start when this one has completed; repeatable; implies --queue.", kept="after"),
    Option("after_any", FLAG, None, "Start when those of --after have ended, however.", kept="after_any"),
    Option("retries", WHOLE, "N", "Try again so often when it fails.", kept="retries"),
    Option("retry_delay_seconds", NUMBER, "N", "Before the first retry; doubled for each other.", kept="retry_delay_s"),
    Option("max_park_seconds", NUMBER, "N", "Fail, if its account cannot be used for longer, and not wait.",
           kept="max_park_s"),
    Option("key", TEXT, "TEXT", "The same key twice starts one worker, and answers with it.", kept="key"),
    Option("reuse", FLAG, None, "Let the same work over the same files (as git sees them) answer again."),
    Option("keep_children", FLAG, None, "Let what it leaves behind at its end live.", kept="keep_children"),
    Option("worktree", FLAG, None, "Run it in a git worktree and on a branch of its own.", (API, TOOLS, SUBTASK)),
)  # fmt: skip
OPTIONS = (*OF_AGENTS, *OF_WORKERS)
