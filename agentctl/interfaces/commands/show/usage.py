"""`usage`: what a tree of tasks has used up, and what is left."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agentctl.domain.text.plaintext import plain
from agentctl.domain.tree.windows import label_of
from agentctl.interfaces.commands.model.command_model import FLAG, Command, Parameter, Shown, Table
from agentctl.interfaces.commands.model.invocation import Invocation
from agentctl.interfaces.commands.model.parameters import IN_TASK
from agentctl.interfaces.words.outline import fields
from agentctl.interfaces.words.value_words import LEAST, duration, local_time
from agentctl.interfaces.words.worker import waiting_for
from agentctl.lean import TYPE_CHECKING
from agentctl.operations.show.usage import read_usage

if TYPE_CHECKING:
    from agentctl.domain.documents.views import AccountUsage, TreeUsageReport, UsageFigures

    #: What a row is about, its name, its figures, and its seconds at work.
    _Row = tuple[str, str, UsageFigures, float | None]


def usage(call: Invocation, *, recursive: bool = True) -> Shown[TreeUsageReport]:
    """Show what the workers of a tree have used, and what is left.

    Tokens, money and time per worker, agent, task and tree. Where an agent's program reports no figures, a sum is the
    least that was used, and marked as that: `atLeast` in JSON. The limits (maxTokens, maxCostUsd, maxWorkers,
    maxWallSeconds) are in the config of the root task.

    On a command line:
        To a pipe, one line each: what it is (worker, agent, task, tree), its name, workers, tokens in, out and from a
        cache, US dollars, seconds at work; - for what is unknown.
    """
    used = read_usage(call.task_to_show(), recursive=recursive)
    rows = list(_rows(used))
    return Shown(used, (fields(*_columns(row)) for row in rows), lambda: _table(rows), _notes(used))


def _notes(used: TreeUsageReport) -> Iterator[str]:
    for key, most in used["limits"].items():
        yield f"{key} {most:g}: {used['left'][key]:g} left"
    for account in used["accounts"]:
        yield f"{plain(account['account'])}: {_windows(account)}"
    for one in used["breakers"]:
        if one["open"]:
            yield f"{plain(one['agent'])} failed {one['failures']} times in a row ({one['reason']}): not started now"


def _windows(account: AccountUsage) -> str:
    """Return the usage windows of an account in a few words: `5 h window 97 % used, until 03:30`."""
    words = []
    for window in account["windows"]:
        used = "" if window["usedPercent"] is None else f" {window['usedPercent']:.0f} % used"
        until = f", until {local_time(window['resetsAt'])}" if window["resetsAt"] else ""
        words.append(f"{label_of(window['window'])} window{used}{until}")
    if account["held"]:
        words.append(waiting_for(account["held"], is_parked=False).replace("waits for its account", "on hold"))
    return plain("; ".join(words))


def _rows(used: TreeUsageReport) -> Iterable[_Row]:
    for worker in used["workers"]:
        yield "worker", f"{worker['taskId']}/{worker['agentInstance']}", worker, worker["wallSeconds"]
    for agent in used["agents"]:
        yield "agent", agent["agent"], agent, None
    for task in used["tasks"]:
        yield "task", task["taskId"], task, task["wallSeconds"]
    yield "tree", used["rootTaskId"], used["total"], used["total"]["wallSeconds"]


def _marked(row: _Row) -> list[str]:
    """Return the columns for a person: what is the least that it was says so."""
    marked = {"tokens": (3, 4, 5), "costUsd": (6,)}
    least = {column for figure in row[2].get("atLeast", ()) for column in marked[figure]}
    return [LEAST * (place in least) + text for place, text in enumerate(_columns(row))]


def _columns(row: _Row) -> list[str]:
    kind, name, used, seconds = row
    counts = [
        "" if one is None else str(one) for one in (used["workers"], used["input"], used["output"], used["cached"])
    ]
    cost = used["costUsd"]
    return [kind, name, *counts, "" if cost is None else f"{cost:.4f}", "" if seconds is None else f"{seconds:.1f}"]


def _table(rows: Iterable[_Row]) -> Table:
    cells = [[*marked[:-1], duration(float(marked[-1])) if marked[-1] else ""] for marked in map(_marked, rows)]
    return Table(_HEADS, cells, gives_way=_GIVES_WAY, right=_HEADS[2:])


_HEADS = ("", "name", "workers", "in", "out", "cached", "USD", "time")
#: Who used something is what one looks for, and then what it cost.
_GIVES_WAY = ("cached", "workers", "time", "in", "out")


COMMANDS = (
    Command(
        "usage",
        usage,
        IN_TASK,
        "agentctl usage\nagentctl usage --no-recursive --json\nagentctl usage | cut -f 2,4",
        (
            Parameter(
                "recursive", FLAG, "All tasks of the tree, or only the chosen one.", default=True, off="no-recursive"
            ),
        ),
    ),
)
