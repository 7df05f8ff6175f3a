"""Whether a root on a network file system may be used: once `doctor --runner` has tested it, from one machine.

Between machines, the locks and appends of such a file system are not trusted. Workers on nodes need none: what head and
node exchange has one writer for each file. So all that is needed is that the processes of one machine lock each other
out, which the self-test tries.
"""

from __future__ import annotations

import os

from agentctl.adapters.accepted import acceptance_of
from agentctl.adapters.mounts import Mount
from agentctl.adapters.paths import FilePath
from agentctl.errors import Argument, AtTerminal, Refused, WithArguments

_OTHERWISE = (
    WithArguments("choose a local ", Argument("root")),
    WithArguments(Argument("force"), " uses it all the same"),
)


def check_accepted(path: FilePath, mount: Mount) -> None:
    """Raise `Refused` if a root on a network file system was not accepted as it is now, for this machine."""
    accepted = acceptance_of(os.environ, path)
    if accepted is None:
        raise Refused(
            f"{path} lies on a network file system ({mount.kind}): its locks and appends cannot be trusted",
            hint=(
                AtTerminal("for workers on a cluster, agentctl doctor --runner slurm tests and accepts it"),
                *_OTHERWISE,
            ),
        )
    runner = accepted.runner or "slurm"
    if accepted.file_system != mount.identity:
        raise Refused(
            f"{path} was accepted while it lay on another file system ({accepted.file_system}); now it lies on"
            f" {mount.identity}",
            hint=(AtTerminal(f"agentctl doctor --runner {runner} tests it again"), *_OTHERWISE),
        )
    if not accepted.is_of_this_machine:
        raise Refused(
            f"{path} lies on a network file system ({mount.kind}), and is used from {accepted.host or 'elsewhere'}: its"
            " locks work only among the processes of one machine",
            hint=AtTerminal(
                "use it there; once no command and no worker of it is left there,"
                f" agentctl doctor --runner {runner} moves it here"
            ),
        )
