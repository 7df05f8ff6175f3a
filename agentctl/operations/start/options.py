"""The table of all options of a start.

It defines the options of `spawn` and of its plain lines, the keys of a batch and of a template's roster, and which of
them `spec.json` keeps unchanged. For type checkers they are also written out, as the fields of `SpawnRequest` and
`AgentWork`, and as `agentctl.SpawnOptions`. `tests/unit/test_start_options.py` compares every place where a start can
be requested with this table.
"""

from __future__ import annotations

from collections.abc import Mapping

from agentctl.lean import Any, NamedTuple

# The kinds of values, in the words of an error.
TEXT, NUMBER, WHOLE, FLAG, TEXTS, TABLE = (
    "text", "a number", "a whole number", "true or false", "a list of texts", "a table of texts",
)  # fmt: skip
# Where an option can be given in addition to `spawn` and its batches, which have them all.
API, TOOLS, SUBTASK = "the calls of Python programs", "the tools of agents", "the command subtask"


# The headings of `spawn --help`, in the order of the page.
WORK, AGENT, LIMITS, QUEUE, PLACE, OUTPUT = "What to run", "Agent", "Limits", "Queue", "Place", "Output"
NODE = "On a node of a cluster"
GROUPS = (WORK, AGENT, LIMITS, QUEUE, PLACE, NODE, OUTPUT)


class Option(NamedTuple):
    """An option of a start."""

    name: str
    kind: str
    #: On the command line: the name of its value, and what it does.
    metavar: str | None
    help: str
    #: Which of `GROUPS` it belongs to.
    group: str
    also: tuple[str, ...] = (API,)
    #: The field of `WorkerSpec` that keeps it unchanged.
    kept: str | None = None


#: Fields of `AgentWork`; a command has none of them.
OF_AGENTS = (
    Option("agent", TEXT, "AGENT", "explore, plan, general or your own (see agents); by default general.", AGENT),
    Option("driver", TEXT, "DRIVER", "The program (see doctor); else the first found.", AGENT, (API, TOOLS, SUBTASK)),
    Option("model", TEXT, "MODEL", "The agent's model, as its program names it.", AGENT, (API, TOOLS, SUBTASK)),
    Option("effort", TEXT, "LEVEL", "How hard it thinks: low, medium, high.", AGENT, (API, TOOLS)),
    Option("max_turns", WHOLE, "N", "How many tool rounds an agent may take.", LIMITS, (API, TOOLS, SUBTASK)),
    Option("max_budget_usd", NUMBER, "N", "What an agent may cost, in US dollars.", LIMITS),
    Option("permissions", TEXT, "POLICY", "ask, allow, deny, own or rules in JSON; else the definition's, else ask.",
           AGENT, (API, TOOLS, SUBTASK)),
    Option("keep", FLAG, None, "Keep the agent after its answer, for `send`.", AGENT, ()),
    Option("output_schema", TEXT, "FILE", "A JSON schema that its final answer has to fit.", AGENT),
)  # fmt: skip
#: Fields of `SpawnRequest`.
OF_WORKERS = (
    Option("name", TEXT, "INSTANCE", "Its name; by default CMD and a number.", WORK),
    Option("cwd", TEXT, "FOLDER", "Where it runs.", PLACE, (API, SUBTASK)),
    Option("env", TABLE, "K=V", "Set in its environment.", WORK),
    Option("timeout_seconds", NUMBER, "N", "How long it may run; by default the task's limit.", LIMITS, (API, SUBTASK)),
    Option("grace_seconds", NUMBER, "N", "The pause between the signals of a cancel.", LIMITS),
    Option("priority", WHOLE, "N", "In the queue, higher starts first.", QUEUE, (API, SUBTASK), "priority"),
    Option("after", TEXTS, "INSTANCE", "Wait in the queue until this one has completed.", QUEUE,
           kept="after"),
    Option("after_any", FLAG, None, "Start when those that it waits for have ended, even if they failed.", QUEUE,
           kept="after_any"),
    Option("retries", WHOLE, "N", "How often to try again when it fails.", LIMITS, kept="retries"),
    Option("retry_delay_seconds", NUMBER, "N", "The pause before the first retry; it doubles with each.", LIMITS,
           kept="retry_delay_s"),
    Option("max_park_seconds", NUMBER, "N", "How long it may wait for its account; it fails rather than wait longer.",
           LIMITS, kept="max_park_s"),
    Option("key", TEXT, "TEXT", "The same key twice starts one worker, and returns it.", WORK,
           (API, SUBTASK), "key"),
    Option("reuse", FLAG, None, "Return the worker that did the same work on the same files (as git sees them).",
           WORK),
    Option("keep_children", FLAG, None, "Do not stop the processes that it leaves behind at its end.", LIMITS,
           kept="keep_children"),
    Option("worktree", FLAG, None, "Run it in a git worktree and on a branch of its own.", PLACE,
           (API, TOOLS, SUBTASK)),
    Option("runner", TEXT, "RUNNER", "What runs it: local, or slurm for a node of the cluster.", NODE),
    Option("cpus", WHOLE, "N", "The processors that it needs there.", NODE),
    Option("memory", TEXT, "SIZE", "The memory that it needs: 500M, 16G.", NODE),
    Option("gpus", TEXT, "N", "The GPUs that it needs: 1, or a100:2.", NODE),
    Option("time", TEXT, "TIME", "How long the cluster lets it run: 90m, 2h, 1-12:00:00.", NODE),
    Option("partition", TEXT, "PARTITION", "The part of the cluster that it runs in.", NODE),
    Option("runner_arg", TEXTS, "ARG", "An option for the engine as it is, such as --account=lab.", NODE),
)  # fmt: skip
OPTIONS = (*OF_AGENTS, *OF_WORKERS)


def given_options(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return those of a command line that were given (not None or False): the agent's, and the worker's."""
    of_worker = {name: value for name, value in options.items() if value is not None and value is not False}
    of_agent = {option.name: of_worker.pop(option.name) for option in OF_AGENTS if option.name in of_worker}
    return of_agent, of_worker
