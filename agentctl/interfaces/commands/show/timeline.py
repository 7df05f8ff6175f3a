"""`timeline`: when each worker was queued, at work, blocked or parked, and what determined the end of the whole."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator

from agentctl.adapters.files import storage_errors, write_whole
from agentctl.adapters.opening import kind_of
from agentctl.domain.text.plaintext import plain
from agentctl.errors import Argument, AtTerminal, UsageError, WithArguments
from agentctl.interfaces.commands.model.command_model import (
    TASKS,
    TEXT,
    Command,
    Parameter,
    Picture,
    Raw,
    Showing,
    Shown,
)
from agentctl.interfaces.commands.model.invocation import Invocation
from agentctl.interfaces.commands.model.parameters import IN_TASK
from agentctl.interfaces.words.outline import fields
from agentctl.interfaces.words.timeline import BLOCKS, timeline_lines
from agentctl.lean import TYPE_CHECKING
from agentctl.operations.show.timeline import Timeline, read_timeline

if TYPE_CHECKING:
    from agentctl.domain.documents.views import TaskTimeline, TimelineFile

_STDOUT = "-"


def timeline(
    call: Invocation, *, named: str | None = None, svg: str | None = None, html: str | None = None
) -> Showing[TaskTimeline | TimelineFile]:
    """Show when each worker was queued, at work, blocked or parked.

    A bar for each worker, children below the worker that started them, with time, tokens and cost; the workers that
    determined when the whole ended, its critical path, are marked.

    On a command line:
        To a pipe, a line for each worker: worker, status, start, end, seconds between them, attempts, tokens, US
        dollars, and whether it is on the critical path. SVG and HTML need nothing else and contain no script.
    """
    target = _target(call, svg, html)
    if named is not None:
        if call.task_named not in (None, named):
            raise UsageError("two tasks are named", hint=AtTerminal("leave out --task"))
        call.task_named = named
    found = read_timeline(call.task_to_show())
    if target is None:
        yield Shown(found.to_json(), _fields(found), lambda: _picture(found))
    else:
        yield _written(found, target, _svg if html is None else _html)
    call.warn(found.warnings)
    return call.report_unreadable(found.unreadable)


def _target(call: Invocation, svg: str | None, html: str | None) -> str | None:
    if svg is not None and html is not None:
        raise UsageError(
            WithArguments(Argument("svg"), " and ", Argument("html"), " exclude each other"), hint="call it twice"
        )
    target = html if svg is None else svg
    if target == _STDOUT and call.json:
        raise UsageError(
            "stdout cannot be both a picture and JSON", hint=AtTerminal("give a FILE, or leave out --json")
        )
    return target


def _svg(found: Timeline) -> str:
    from agentctl.interfaces.words.timeline_svg import svg_of

    return svg_of(found)


def _html(found: Timeline) -> str:
    from agentctl.interfaces.words.timeline_html import html_of

    return html_of(found)


def _written(found: Timeline, target: str, picture: Callable[[Timeline], str]) -> Shown[TimelineFile] | Raw:
    data = picture(found).encode()
    if target == _STDOUT:
        return Raw(data)
    path = os.path.abspath(target)
    kind, folder = kind_of(path), os.path.dirname(path)
    if kind is not None:
        raise UsageError(f"{path} is {kind}: nothing was written", hint="name a plain file, or one that does not exist")
    if not os.path.isdir(folder):
        raise UsageError(f"there is no folder {folder}", hint=f"mkdir -p {shlex.quote(folder)}")
    with storage_errors(path, "write"):
        write_whole(path, data, durable=False)
    return Shown({"taskId": found.task_id, "path": path, "workers": len(found.rows)}, [plain(path)])


def _fields(found: Timeline) -> Iterator[str]:
    for row in found.rows:
        bar, spent, shown = row.bar, row.spent, row.to_json()
        began = bar.began if bar.started is None else bar.started
        name = bar.id[1] if bar.id[0] == found.task_id else "/".join(bar.id)
        end = None if bar.is_open else shown["to"]
        yield fields(name, bar.status, shown["startedAt"], end, f"{bar.until - began:.1f}", bar.attempts,
                     spent.figures()["tokens"],
                     None if spent.cost_usd is None else f"{spent.cost_usd:.4f}",
                     "critical" if row.is_critical else None)  # fmt: skip


def _picture(found: Timeline) -> Picture:
    """Return the picture for a terminal, with the characters that it has."""
    from agentctl.interfaces.commands.parts.tables import width_of_terminal

    try:
        BLOCKS.encode(sys.stdout.encoding or "ascii")
        blocks = True
    except (UnicodeEncodeError, LookupError):
        blocks = False
    return Picture(timeline_lines(found, width_of_terminal(), blocks=blocks))


COMMANDS = (
    Command(
        "timeline",
        timeline,
        IN_TASK,
        """
agentctl timeline
agentctl timeline survey-auth --svg timeline.svg
agentctl timeline --html - > timeline.html
agentctl timeline --json
agentctl timeline | sort -t "$(printf '\\t')" -k 5 -rn | head
""",
        (
            Parameter("named", TEXT, "The task, the same as --task.", "[TASK]", is_argument=True, completes=TASKS),
            Parameter("svg", TEXT, "Write a picture; - is stdout.", "FILE"),
            Parameter("html", TEXT, "Write the picture and its figures; - is stdout.", "FILE"),
        ),
    ),
)
