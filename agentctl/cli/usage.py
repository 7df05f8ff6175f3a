"""`usage`: what a tree of tasks has used up, and what is left."""

from collections.abc import Iterable, Iterator
from typing import Annotated, Any

import typer

from agentctl.cli import options as opt
from agentctl.cli.render import fields, plain
from agentctl.cli.verb import module, verb
from agentctl.domain.windows import label_of
from agentctl.operations.show.usage import read_usage
from agentctl.text.words import LEAST, duration, local_time
from agentctl.text.worker import waiting_for

app = module()


@verb(app, "usage", examples="agentctl usage\nagentctl usage --no-recursive --json\nagentctl usage | cut -f 2,4")
def usage(
    call: opt.InTask,
    recursive: Annotated[
        bool, typer.Option("--recursive/--no-recursive", help="All tasks of the tree, or only the chosen one.")
    ] = True,
) -> None:
    """Show what the workers of a tree have used, and what is left.

    Tokens, money and time per worker, agent, task and tree. To a pipe, one line each: what it is (worker, agent, task,
    tree), its name, workers, tokens in, out and from a cache, US dollars, seconds at work; - for what is unknown.
    Where some agents' programs tell none, a sum is the least that was used: marked at a terminal, `atLeast` in --json.
    The limits (maxTokens, maxCostUsd, maxWorkers, maxWallSeconds) are in the config of the root task.
    """
    used = read_usage(call.task_to_show(), recursive=recursive)
    rows = [_columns(*row) for row in _rows(used)]
    call.show(used, (fields(*row) for row in rows), lambda: _draw([_marked(*row) for row in _rows(used)]), _notes(used))


def _notes(used: dict[str, Any]) -> Iterator[str]:
    for key, most in used["limits"].items():
        yield f"{key} {most:g}: {used['left'][key]:g} left"
    for one in used["accounts"]:
        yield f"{plain(one['account'])}: {_windows(one)}"
    for one in used["breakers"]:
        if one["open"]:
            yield f"{plain(one['agent'])} failed {one['failures']} times in a row ({one['reason']}): not started now"


def _windows(account: dict[str, Any]) -> str:
    """Return the usage windows of an account in a few words: `5 h window 97 % used, until 03:30`."""
    words = []
    for window in account["windows"]:
        used = "" if window["usedPercent"] is None else f" {window['usedPercent']:.0f} % used"
        until = f", until {local_time(window['resetsAt'])}" if window["resetsAt"] else ""
        words.append(f"{label_of(window['window'])} window{used}{until}")
    if account["held"]:
        words.append(waiting_for(account["held"], is_parked=False).replace("waits for its account", "on hold"))
    return plain("; ".join(words))


def _rows(used: dict[str, Any]) -> Iterable[tuple[str, str, dict[str, Any]]]:
    for row in used["workers"]:
        yield "worker", f"{row['taskId']}/{row['agentInstance']}", row
    for row in used["agents"]:
        yield "agent", row["agent"], row
    for row in used["tasks"]:
        yield "task", row["taskId"], row
    yield "tree", used["rootTaskId"], used["total"]


def _marked(kind: str, name: str, row: dict[str, Any]) -> list[str]:
    """Return the columns for a person: what is the least that it was says so."""
    marked = {"tokens": (3, 4, 5), "costUsd": (6,)}
    least = {column for figure in row.get("atLeast", ()) for column in marked[figure]}
    return [LEAST * (place in least) + text for place, text in enumerate(_columns(kind, name, row))]


def _columns(kind: str, name: str, row: dict[str, Any]) -> list[str]:
    cost, seconds = row["costUsd"], row.get("wallSeconds")
    figures = ["" if row[key] is None else str(row[key]) for key in ("workers", "input", "output", "cached")]
    return [kind, name, *figures, "" if cost is None else f"{cost:.4f}", "" if seconds is None else f"{seconds:.1f}"]


def _draw(rows: list[list[str]]) -> None:
    """Print the rows in aligned columns."""
    head = ["", "name", "workers", "in", "out", "cached", "USD", "time"]
    shown = [head, *([*row[:-1], duration(float(row[-1])) if row[-1] else ""] for row in rows)]
    widths = [max(len(plain(row[column])) for row in shown) for column in range(len(head))]
    for row in shown:
        texts = [plain(text) for text in row]
        cells = [text.ljust(width) if index < 2 else text.rjust(width)
                 for index, (text, width) in enumerate(zip(texts, widths, strict=True))]  # fmt: skip
        print("  ".join(cells).rstrip())
