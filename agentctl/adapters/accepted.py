"""Which roots on network file systems a self-test has accepted, in a private file of the person.

It is not kept in the root, which may have come from somebody else. A row counts for the file system that was tested,
and for the machine whose commands use the root: between machines, the locks of a network file system are not trusted.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from agentctl.adapters import processes
from agentctl.adapters.clock import now_iso
from agentctl.adapters.files import AnyPath
from agentctl.adapters.mounts import Mount
from agentctl.adapters.personal import config_folder
from agentctl.adapters.privaterows import Rows, change_rows, read_rows
from agentctl.errors import AtTerminal
from agentctl.lean import NamedTuple

_KEY = "roots"


class Acceptance(NamedTuple):
    """What is noted of a root that was accepted."""

    #: `Mount.identity`.
    file_system: str
    runner: str
    machine: str
    #: The machine's name, for people.
    host: str

    @property
    def is_of_this_machine(self) -> bool:
        """Whether the commands of this machine may use the root."""
        return self.machine == _machine()


def accepted_file(environ: Mapping[str, str]) -> Path:
    """Return where it is kept which roots were accepted."""
    return Path(config_folder(environ)) / "accepted.json"


def acceptance_of(environ: Mapping[str, str], path: AnyPath) -> Acceptance | None:
    """Return what is noted of a root; None where it was not accepted.

    Raises:
        Refused, Damaged: As `read_rows` does.
    """
    row = _read(accepted_file(environ)).get(os.path.realpath(path))
    if row is None:
        return None
    return Acceptance(row["fileSystem"], *(str(row.get(name, "")) for name in ("runner", "machine", "host")))


def accept(environ: Mapping[str, str], path: AnyPath, mount: Mount, runner: str) -> None:
    """Note that a root was accepted, for the commands of this machine; an earlier note about it is replaced."""
    row = {
        "fileSystem": mount.identity, "runner": runner, "machine": _machine(), "host": os.uname().nodename,
        "at": now_iso(),
    }  # fmt: skip
    _change(environ, path, row)


def reject(environ: Mapping[str, str], path: AnyPath) -> None:
    """Forget that a root was accepted."""
    _change(environ, path, None)


def _change(environ: Mapping[str, str], path: AnyPath, row: dict[str, str] | None) -> None:
    file, real = accepted_file(environ), os.path.realpath(path)

    def change(rows: Rows) -> None:
        rows.pop(real, None)
        if row is not None:
            rows[real] = row

    change_rows(file, _KEY, lambda: _read(file), change)


def _read(file: Path) -> Rows:
    return read_rows(file, _KEY, "fileSystem", AtTerminal("test the root again: agentctl doctor --runner RUNNER"))


def _machine() -> str:
    """Return what tells machines apart; nodes that were made from one image may share the id of a machine."""
    return f"{processes.machine_id()} {os.uname().nodename}"
