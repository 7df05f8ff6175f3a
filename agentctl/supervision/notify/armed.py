"""What a sender needs to know, in the file of the switch: the targets of a tree of tasks, and what they need.

A command of the person resolves it. It may hold tokens, so it is kept in memory and private. A reboot takes it, with
all environments.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping

from agentctl.adapters.files import make_folders, read_known, to_json, write_whole
from agentctl.adapters.paths import FilePath
from agentctl.adapters.taskdir import TaskDir, TreeDir, names_in
from agentctl.domain.notice.quiet import QuietHours
from agentctl.domain.notice.targets import MOST_TARGETS, NoticeTarget, target_from
from agentctl.errors import AgentctlError
from agentctl.lean import Any, NamedTuple
from agentctl.supervision.worker.environment import switch_of

#: What a command target gets of the person's environment: no more than it needs to reach their desktop.
KEPT_VARIABLES = (
    "PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY",
    "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "DBUS_SESSION_BUS_ADDRESS",
)  # fmt: skip

#: More switches than that are not looked through.
_MOST = 10_000


class Armed(NamedTuple):
    """Who is to be told about a tree of tasks, and how."""

    targets: tuple[NoticeTarget, ...]
    hosts: tuple[str, ...] = ()
    quiet: QuietHours | None = None
    #: Of the person; see `KEPT_VARIABLES`.
    environ: Mapping[str, str] = {}
    #: The person's folder of state, where it says what they look at.
    state: str = ""
    #: Where the root task is: when it is gone, this is of no use any more.
    task: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return it in the form of the file."""
        return {
            "targets": [target.to_json() for target in self.targets],
            "hosts": self.hosts,
            "quiet": self.quiet,
            "environ": dict(self.environ),
            "state": self.state,
            "task": self.task,
        }


def read_armed(tree: TreeDir, folder: FilePath) -> Armed | None:
    """Return who is to be told about a tree of tasks; None where nobody is.

    Raises:
        StorageError: That cannot be read.
    """
    value = read_known(switch_of(folder, tree.nonce()))
    try:
        return _armed_from(value)
    except (TypeError, ValueError, KeyError, AttributeError):
        return None


def _armed_from(value: Mapping[str, Any]) -> Armed:
    quiet = value["quiet"]
    return Armed(
        targets=tuple(map(target_from, value["targets"][:MOST_TARGETS])),
        hosts=tuple(map(str, value["hosts"])),
        quiet=None if quiet is None else QuietHours(*map(int, quiet)),
        environ={str(name): str(text) for name, text in value["environ"].items()},
        state=str(value["state"]),
        task=str(value.get("task", "")),
    )


def write_armed(tree: TreeDir, folder: FilePath, armed: Armed) -> None:
    """Keep who is to be told; of a target that is already there, what happened since then is told.

    Raises:
        StorageError, OSError: The folder cannot be written.
    """
    file = switch_of(folder, tree.nonce())
    if not armed.targets:
        with contextlib.suppress(OSError):
            os.unlink(file)
        return
    before = read_armed(tree, folder)
    since = {target.name: target.since for target in before.targets} if before else {}
    targets = tuple(one._replace(since=since.get(one.name) or one.since) for one in armed.targets)
    armed = armed._replace(targets=targets, task=os.path.realpath(tree.path))
    if armed != before:
        make_folders(folder)
        if before is None:
            _drop_gone(folder)
        write_whole(file, to_json(armed.to_json()), durable=False)


def _drop_gone(folder: FilePath) -> None:
    """Remove the switches of root tasks that are gone, or replaced: nobody else would."""
    for name in names_in(folder, _MOST):
        file = folder / name
        if name.startswith("notify-") and name.endswith(".json"):
            with contextlib.suppress(AgentctlError, OSError):
                path = read_known(file).get("task")
                if isinstance(path, str) and path and switch_of(folder, TaskDir(path).nonce()) != file:
                    os.unlink(file)
