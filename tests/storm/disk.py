"""How the disk fails in a storm: which calls, below which folder, with which error, and for how long."""

from __future__ import annotations

import errno
from pathlib import Path

from tests import faults as layer
from tests.storm.world import World

_READS = layer.OPEN | layer.READ | layer.STAT | layer.SCAN
#: The calls that fail together, and with what.
_WAYS = (
    (layer.CHANGES, errno.EIO), (layer.TAKES_ROOM, errno.ENOSPC), (layer.TAKES_ROOM, errno.EDQUOT),
    (layer.CHANGES, errno.ESTALE), (_READS, errno.EIO), (_READS, errno.ESTALE), (layer.READ, errno.EIO),
    (layer.WRITE, layer.CUT_SHORT), (layer.SYNC, errno.EIO), (layer.RENAME | layer.LINK, errno.EIO),
    (layer.OPEN, errno.EMFILE),
)  # fmt: skip
#: So many calls pass before one fails: the first ones of a command are always the same.
_AFTER = (0, 0, 2, 5, 10, 20, 40, 80, 160)


class Disk:
    """A disk that fails now and then."""

    def __init__(self, world: World) -> None:
        self._world, self._chance = world, world.chance("disk")
        self.many = 0

    def act(self) -> str:
        """Fail in another way than before, for a few calls or until it is mended."""
        self.mend()
        calls, error = self._chance.choice(_WAYS)
        folder, times, after = self._folder(), self._chance.choice([1, 1, 2, 5, -1]), self._chance.choice(_AFTER)
        self._world.faults.fail(folder, calls, error, times, after)
        self.many += 1
        what = errno.errorcode.get(error, "cut short")
        return f"disk {what} {calls:#x} {folder.relative_to(self._world.folder)} {times} after {after}"

    def mend(self) -> None:
        """Be well."""
        self._world.faults.mend()

    def _folder(self) -> Path:
        task = self._world.task.path
        places = [self._world.root, task, task / "agents", task / "queue", self._world.folder / "run",
                  self._world.folder / "home", task / "events.jsonl", self._world.root / "current"]  # fmt: skip
        if self._world.names:
            places.append(task / "agents" / self._chance.choice(self._world.names))
        return self._chance.choice(places)
