"""Where the programs that agentctl itself calls are looked for: never in the folder that it works in.

An entry of PATH that is empty or relative means that folder. A person may want that for the commands that they type;
who wrote the files of a clone is not to choose what `git` is.
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
