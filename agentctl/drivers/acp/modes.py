"""Compares the mode in which a program says that it works with the one that was ordered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentctl.drivers.acp.program import Manner
from agentctl.drivers.acp.settings import MODE, Offers
from agentctl.drivers.order import ALLOWING, BY_OWN_SETTINGS, OWN_PERMISSIONS, READ_ONLY
from agentctl.drivers.values import bounded_text, text_in

#: What the person may say instead.
_ROW = "list in a row of acp.yaml the modes that are as strict (`modes`)"


class Modes:
    """What a program may be in, and what it says that it is in: of its session, and of those within it."""

    def __init__(self, driver: str, manner: Manner, stance: str) -> None:
        self._driver, self._manner, self._stance = driver, manner, stance
        self._allowed: frozenset[str] = frozenset(filter(None, (manner.mode, *manner.modes)))
        self._offered: frozenset[str] = frozenset()
        self._current = ""

    def opened(self, offers: Offers) -> None:
        """Take in what the session offers: a mode may have been ordered by its name."""
        self._allowed = frozenset(offers.meant(MODE, mode) or mode for mode in self._allowed)
        self._offered = offers.values(MODE)
        self._current = offers.current(MODE)

    def told(self, said: Mapping[str, Any]) -> None:
        """Take in the mode that a message tells, if it tells any."""
        self._current = mode_in(said) or self._current

    def was_set(self, mode: str) -> None:
        """Take in that the program has taken a mode: not every one tells it once more."""
        self._current = mode

    def problem(self) -> str | None:
        """Return what is wrong with the mode; None where it is one that may be, or where none is told."""
        if not self._current or self._current in self._allowed or not self._is_compared:
            return None
        known = " or ".join(sorted(self._allowed))
        what = f"{self._driver} is in the mode {bounded_text(self._current)}, "
        ordered = f"but {known} was ordered" if known else "about which its row says nothing"
        return f"{what}{ordered}: what it asks before it acts is not known ({self._way_out})"

    def problem_later(self) -> str | None:
        """Return what is wrong with a mode to which the program has changed: nothing where all is allowed anyway."""
        return None if self._stance == ALLOWING else self.problem()

    def leads_elsewhere(self, option: Mapping[str, Any]) -> bool:
        """Return whether an option that allows has the name of a mode, and would lead to one that may not be."""
        is_forbidden = option.get("optionId") in self._offered - self._allowed and self._is_compared
        return is_forbidden and self._stance != ALLOWING and text_in(option.get("kind")).startswith("allow")

    @property
    def _is_compared(self) -> bool:
        """Whether it matters: it does not where the person's own settings decide, nor where nothing was ordered."""
        if self._stance == BY_OWN_SETTINGS:
            return False
        return bool(self._allowed) or self._stance != ALLOWING

    @property
    def _way_out(self) -> str:
        """Return what a person can do about it: of an agent that may only read, no word of theirs loosens that."""
        own = f"{OWN_PERMISSIONS} let your own settings of it decide; or "
        return _ROW if self._stance == READ_ONLY else own + _ROW


def mode_in(said: Mapping[str, Any]) -> str:
    """Return the mode that a reply or an update tells; empty where it tells none."""
    return text_in(said.get("currentModeId")) or Offers("", said).current(MODE)
