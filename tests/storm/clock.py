"""How the wall clock steps in a storm: by hours and days, ahead and back."""

from __future__ import annotations

from tests.storm.world import World

_HOUR_S, _DAY_S = 3600, 86400
_AHEAD_S = (-9 * _DAY_S, -_DAY_S, -2 * _HOUR_S, 0, 2 * _HOUR_S, _DAY_S, 9 * _DAY_S, 400 * _DAY_S)


class Clock:
    """A wall clock that somebody sets."""

    def __init__(self, world: World) -> None:
        self._faults, self._chance = world.faults, world.chance("clock")
        self.many = 0

    def act(self) -> str:
        """Set it."""
        ahead_s = self._chance.choice(_AHEAD_S)
        self._faults.set_clock(ahead_s)
        self.many += 1
        return f"clock {ahead_s / _DAY_S:+.2f} d"

    def mend(self) -> None:
        """Set it right."""
        self._faults.set_clock(0)
