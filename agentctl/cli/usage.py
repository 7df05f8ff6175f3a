"""`usage`: what a tree of tasks has used up, and what is left."""

import sys
from collections.abc import Iterable
from typing import Annotated, Any

import typer

from agentctl.cli import options as opt
from agentctl.cli.render import (
    duration,
    is_terminal,
    local_time,
    note,
    note_foreign,
    out,
    out_fields,
    out_json,
    plain,
    waiting_for,
)
from agentctl.cli.verb import module, verb
from agentctl.domain.windows import label_of
from agentctl.operations.show.usage import read_usage
from agentctl.operations.where.locating import find_task

app = module()


@verb(app, "usage", examples="agentctl usage\nagentctl usage --no-recursive --json\nagentctl usage | cut -f 2,4")
def usage(
    recursive: Annotated[
        bool, typer.Option("--recursive/--no-recursive", help="All tasks of the tree, or the chosen one alone.")
    ] = True,
    task: opt.Task = None,
    root: opt.Root = None,
    force: opt.Force = False,
    json: opt.Json = False,
) -> None:
    """Show what the workers of a tree have used up, and what is left.

    Tokens, money and time per worker, agent, task and tree. To a pipe, a line each: what it is (worker, agent, task,
    tree), its name, workers, tokens in, out and from a cache, US dollars, seconds at work; - for what nobody told.
    The limits (maxTokens, maxCostUsd, maxWorkers, maxWallSeconds) stand in the config of the root task.
    """
    told = read_usage(note_foreign(find_task(task, root=root, force=force)), recursive=recursive)
    if json:
        out_json(told)
        return
    shows_people = is_terminal(sys.stdout)
    lines = [_line(*row) for row in _rows(told)]
    if shows_people:
        _draw(lines)
    else:
        for line in lines:
            out_fields(*line)
    for key, most in told["limits"].items():
        note(f"{key} {most:g}: {told['left'][key]:g} left")
    for one in told["accounts"]:
        note(f"{plain(one['account'])}: {_windows(one)}")
    for one in told["breakers"]:
        if one["open"]:
            note(f"{plain(one['agent'])} failed {one['failures']} times in a row ({one['reason']}): not started now")


def _windows(account: dict[str, Any]) -> str:
    """Return the usage windows of an account in a few words: `5 h window 97 % used, until 03:30`."""
    words = []
    for window in account["windows"]:
        used = "" if window["usedPercent"] is None else f" {window['usedPercent']:.0f} % used"
        until = f", until {local_time(window['resetsAt'])}" if window["resetsAt"] else ""
        words.append(f"{label_of(window['window'])} window{used}{until}")
    if account["held"]:
        words.append(waiting_for(account["held"], is_parked=False).replace("waits for its account", "left alone"))
    return plain("; ".join(words))


def _rows(told: dict[str, Any]) -> Iterable[tuple[str, str, dict[str, Any]]]:
    for row in told["workers"]:
        yield "worker", f"{row['taskId']}/{row['agentInstance']}", row
    for row in told["agents"]:
        yield "agent", row["agent"], row
    for row in told["tasks"]:
        yield "task", row["taskId"], row
    yield "tree", told["rootTaskId"], told["total"]


def _line(kind: str, name: str, row: dict[str, Any]) -> list[str]:
    cost, seconds = row["costUsd"], row.get("wallSeconds")
    figures = [str(row[key]) for key in ("workers", "input", "output", "cached")]
    return [kind, name, *figures, "" if cost is None else f"{cost:.4f}", "" if seconds is None else f"{seconds:.1f}"]


def _draw(lines: list[list[str]]) -> None:
    """Print columns of one width each."""
    head = ["", "name", "workers", "in", "out", "cached", "USD", "time"]
    shown = [head, *([*line[:-1], duration(float(line[-1])) if line[-1] else ""] for line in lines)]
    widths = [max(len(plain(row[column])) for row in shown) for column in range(len(head))]
    for row in shown:
        texts = [plain(text) for text in row]
        cells = [text.ljust(width) if index < 2 else text.rjust(width)
                 for index, (text, width) in enumerate(zip(texts, widths, strict=True))]  # fmt: skip
        out("  ".join(cells).rstrip())
