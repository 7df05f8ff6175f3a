"""Where agentctl looks for the programs that it calls itself: never in the working folder.

An empty or relative entry of PATH depends on that folder. A person may want that for the commands that they type, but
the authors of a clone must not choose what `git` is.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

#: Where a system keeps the programs that belong to it.
OF_THE_SYSTEM = "/usr/bin:/bin:/usr/sbin:/sbin"


def absolute_entries(path: str) -> str:
    """Return a PATH without its relative entries.

    >>> absolute_entries(":/usr/bin:.:bin:/bin")
    '/usr/bin:/bin'
    """
    return os.pathsep.join(entry for entry in path.split(os.pathsep) if os.path.isabs(entry))


def program_at(name: str, path: str | None = None) -> str | None:
    """Return the path of a program, as the absolute entries of a PATH lead to it; None where none does.

    Args:
        path: That of this process by default.
    """
    import shutil  # With it come three compressors.

    return shutil.which(name, path=absolute_entries(os.environ.get("PATH", os.defpath) if path is None else path))


def settled(environ: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which the working folder does not say what a program finds that looks for another.

    >>> settled({"PATH": ".:/opt/bin"}), settled({"PATH": "."})
    ({'PATH': '/opt/bin'}, {'PATH': '/usr/bin:/bin:/usr/sbin:/sbin'})
    """
    if "PATH" not in environ:
        return dict(environ)
    return {**environ, "PATH": absolute_entries(environ["PATH"]) or OF_THE_SYSTEM}  # An empty one is that folder again.
