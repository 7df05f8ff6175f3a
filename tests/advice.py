"""Follows what agentctl advises: a command is run by a shell as it was printed, in the place where it was printed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.support import Completed, start_argv

#: What ends a command in a sentence, if it is not the last thing that is said.
_ENDS = ("\n", ";", ",", " (", ")", "`", ". ")


def advised(told: Completed | str, command: str) -> str:
    """Return a command that was printed; fail if it was not, or not to its end."""
    text = told if isinstance(told, str) else told.out + told.err
    _, found, rest = text.partition(command)
    assert found, f"{command!r} is not advised in:\n{text}"
    # `agentctl list shows them`: only words follow that nobody takes for a part of the command.
    assert not rest or rest.startswith(_ENDS) or rest[1:].split(maxsplit=1)[0].isalpha(), f"{command!r}, then {rest!r}"
    return command


def follow(
    told: Completed | str, command: str, *, cwd: str | Path | None = None, env: Mapping[str, str | None] | None = None,
    check: bool = True,
) -> Completed:  # fmt: skip
    """Run a command that was printed, and return how it ended."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    process = start_argv(
        ["/bin/sh", "-c", advised(told, command)], stdin=subprocess.DEVNULL, cwd=cwd, env={"PATH": path, **(env or {})}
    )
    out, err = process.communicate(timeout=30)
    done = Completed(argv=("sh", "-c", command), code=process.returncode, out=out, err=err)
    assert not check or done.code == 0, done
    return done
