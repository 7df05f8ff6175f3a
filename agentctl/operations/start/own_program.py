"""Where workers find `agentctl` itself, which they call to report and to ask."""

from __future__ import annotations

import os
import shutil
import sys

from agentctl.adapters.searchpath import program_at

_NAME = "agentctl"


def make_reachable(environ: dict[bytes, bytes]) -> None:
    """Put the folder of this program at the end of PATH where `agentctl` would not be found."""
    path = os.fsdecode(environ.get(b"PATH", os.fsencode(os.defpath)))
    own = _beside_python()
    if shutil.which(_NAME, path=path) is None and own is not None:
        # "" is the current folder.
        environ[b"PATH"] = os.fsencode(os.pathsep.join(filter(None, (path, os.path.dirname(own)))))


def own_program() -> str:
    """Return the path of `agentctl`, as a worker would find it; empty if there is no such program."""
    return program_at(_NAME) or _beside_python() or ""


def _beside_python() -> str | None:
    path = os.path.join(os.path.dirname(sys.executable), _NAME)
    return path if os.path.exists(path) else None
