"""Where agentctl looks for the programs that it calls itself: never in the working folder.

An empty or relative entry of PATH depends on that folder. A person may want that for the commands that they type, but
the authors of a clone must not choose what `git` is.
"""

from __future__ import annotations

import os

#: Where a system keeps the programs that belong to it.
OF_THE_SYSTEM = "/usr/bin:/bin:/usr/sbin:/sbin"


def absolute_entries(path: str) -> str:
    """Return a PATH without its relative entries.

    >>> absolute_entries(":/usr/bin:.:bin:/bin")
    '/usr/bin:/bin'
    """
    return os.pathsep.join(entry for entry in path.split(os.pathsep) if os.path.isabs(entry))
