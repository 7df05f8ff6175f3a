"""`notify list|test|on|off`: where you are told what happens in a task, and whether that works."""

from __future__ import annotations

from collections.abc import Iterator

from agentctl.adapters.taskdir import Root, TaskDir
from agentctl.domain.notice.notices import DEFAULT_KINDS, KINDS
from agentctl.domain.text.plaintext import plain
from agentctl.errors import ExitCode, NotFound
from agentctl.interfaces.commands.model.command_model import (
    FINDS,
    FLAG,
    TARGETS,
    TEXT,
    Command,
    Family,
    Parameter,
    Shown,
    Table,
)
from agentctl.interfaces.commands.model.invocation import Invocation
from agentctl.interfaces.commands.model.parameters import ANYWHERE, IN_TASK
from agentctl.interfaces.words.outline import fields
from agentctl.lean import TYPE_CHECKING
from agentctl.operations.notify.applied_targets import switch_target
from agentctl.operations.notify.target_report import list_targets, test_target

if TYPE_CHECKING:
    from agentctl.domain.documents.notices import TargetRow, TargetSwitch, TargetTest

_HEADS = ("target", "where", "applies", "events", "told", "last error")
_TARGET = Parameter(
    "target",
    TEXT,
    "A target of your config.yaml.",
    "TARGET",
    is_argument=True,
    is_required=True,
    completes=TARGETS,
)
_TARGET_WITH_EVENTS = _TARGET._replace(help="A target of your config.yaml, and its events: phone:blocked,failed.")
_WHOLE_ROOT = Parameter("whole_root", FLAG, "For all tasks of the root, instead of this one.", typed="all")


def list_targets_command(call: Invocation) -> Shown[list[TargetRow]]:
    """List your targets, which of them apply to a task and its sub-tasks, and what they were told.

    On a command line:
        To a pipe, one line each: target, type, where, named by (always, root, task.yaml or task), events, how many
        notices were sent, how many wait (for quiet hours to end, or for the next sender), how many failed, the last
        error.
    """
    rows = list_targets(_task_if_any(call))
    return Shown(rows, map(_line, rows), lambda: _table(rows), _quiet(rows))


def _line(row: TargetRow) -> str:
    failing = row["failing"] + row["refused"]
    events = ",".join(row["events"])
    return fields(
        row["target"],
        row["type"],
        row["where"],
        row["by"],
        events,
        row["sent"],
        row["waiting"],
        failing,
        row["lastError"],
    )


def _task_if_any(call: Invocation) -> TaskDir | None:
    try:
        return call.task()
    except NotFound:
        if call.task_named is not None:
            raise
        return None


def _quiet(rows: list[TargetRow]) -> Iterator[str]:
    if rows and rows[0]["isQuietNow"]:
        yield f"these are quiet hours ({plain(rows[0]['quiet'] or '')}): nothing is sent until they end"


def _table(rows: list[TargetRow]) -> Table | list[str]:
    if not rows:
        return ["no target is defined: docs/notifications.md shows how"]
    cells = [(row["target"], row["where"], row["by"], _events(row), _told(row), row["lastError"]) for row in rows]
    return Table(
        _HEADS, cells, wide="last error", gives_way=("last error", "events", "applies", "where"), below=("last error",)
    )


def _events(row: TargetRow) -> str:
    words = {KINDS: "all", DEFAULT_KINDS: "all but completed"}
    return words.get(tuple(kind for kind in KINDS if kind in row["events"])) or ", ".join(row["events"])


def _told(row: TargetRow) -> str:
    counts = {
        "sent": row["sent"],
        "seen": row["seen"],
        "waiting": row["waiting"],
        "failed": row["failing"] + row["refused"],
    }
    return ", ".join(f"{number} {word}" for word, number in counts.items() if number)


def test(call: Invocation, *, target: str) -> Shown[TargetTest]:
    """Send one message to a target now, and print what came back.

    Quiet hours do not matter. Exits with 1 if it was not delivered.
    """
    found = test_target(target)
    word = "delivered" if found["delivered"] else "not delivered"
    code = ExitCode.DONE if found["delivered"] else ExitCode.REFUSED
    return Shown(found, [f"{plain(target)}: {word} ({found['said']})"], code=code)


def on(call: Invocation, *, target: str, whole_root: bool = False) -> Shown[TargetSwitch]:
    """Tell a target about a task and its sub-tasks from now on."""
    return _shown(switch_target(_place(call, whole_root=whole_root), target, on=True))


def off(call: Invocation, *, target: str, whole_root: bool = False) -> Shown[TargetSwitch]:
    """Tell a target nothing about a task and its sub-tasks, even if it is one that is always told."""
    return _shown(switch_target(_place(call, whole_root=whole_root), target, on=False))


def _place(call: Invocation, *, whole_root: bool) -> TaskDir | Root:
    return call.root() if whole_root else call.task()


def _shown(found: TargetSwitch) -> Shown[TargetSwitch]:
    of = f"the tasks of {found['root']}" if "root" in found else found["taskId"]
    return Shown(found, [plain(f"{found['target']} is {'told' if found['on'] else 'not told'} of {of}")])


_LIST = Command(
    "list",
    list_targets_command,
    IN_TASK,
    "agentctl notify list\nagentctl notify list --json --task survey-auth",
)
COMMANDS = (
    Family(
        "notify",
        """Show, try and choose where you are told what happens in a task.

Targets (a phone, a desktop, a webhook) are defined in ~/.config/agentctl/config.yaml and nowhere else. Without a
subcommand: `notify list` of the chosen task.
""",
        """
agentctl notify
agentctl notify test phone
agentctl notify on phone:blocked,failed
""",
        (
            _LIST,
            Command(
                "test",
                test,
                ANYWHERE,
                "agentctl notify test phone\nagentctl notify test phone --json",
                (_TARGET,),
                exits=FINDS,
            ),
            Command(
                "on",
                on,
                IN_TASK,
                "agentctl notify on phone\nagentctl notify on desk:failed --all",
                (
                    _TARGET_WITH_EVENTS,
                    _WHOLE_ROOT,
                ),
            ),
            Command(
                "off",
                off,
                IN_TASK,
                "agentctl notify off phone\nagentctl notify off phone --all",
                (
                    _TARGET,
                    _WHOLE_ROOT,
                ),
            ),
        ),
        exits=FINDS,
        without=_LIST,
    ),
)
