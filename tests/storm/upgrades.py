"""How agentctl is replaced in a storm: its files are removed, part by part, and then written again, as pip does it."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.life import passes
from tests.storm.world import World


class Upgrades:
    """Whoever upgrades agentctl while it runs."""

    def __init__(self, world: World) -> None:
        self._world, self._chance = world, world.chance("upgrades")
        self.many = 0

    def act(self) -> str:
        """Replace some parts of it."""
        parts = sorted(one.name for one in self._world.pristine.iterdir())
        chosen = self._chance.sample(parts, self._chance.randint(1, len(parts)))
        for part in chosen:  # What runs may write compiled modules there meanwhile.
            self._remove(self._world.package / part)
        passes(self._chance.uniform(0, 0.3))
        for part in chosen:
            self._write(self._world.pristine / part, self._world.package / part)
        self.many += 1
        return f"upgrade of {len(chosen)} parts"

    @staticmethod
    def _remove(part: Path) -> None:
        if part.is_dir():
            shutil.rmtree(part, ignore_errors=True)
        else:
            part.unlink()

    @staticmethod
    def _write(new: Path, part: Path) -> None:
        if new.is_dir():
            shutil.copytree(new, part, dirs_exist_ok=True)
        else:
            shutil.copy2(new, part)

    def mend(self) -> None:
        """It is whole after each replacement."""
