"""Whether an account is left alone for a while: by its usage windows, as its programs tell them, or by a back-off.

An account is held while a window of it refuses requests until a reset that was told, or, where none was told, for a
pause that was chosen (a back-off). A reset is a moment of the world, so the wall clock counts; where the machine has
not been restarted since, a clock that nobody can set tells as well how long it is, and what comes first ends the hold:
whatever is done to the wall clock, nobody waits for ever, and who starts too early is refused once more.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping

from agentctl.adapters import processes
from agentctl.adapters.clock import iso_of, since_boot
from agentctl.adapters.files import make_folder, read_quietly
from agentctl.adapters.locks import locked
from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain.numbers import finite
from agentctl.domain.windows import (
    LONGEST_S,
    Window,
    concerns,
    label_of,
    merged,
    plausible,
    windows_from,
)
from agentctl.domain.windows import to_json as windows_to_json
from agentctl.lean import Any, NamedTuple
from agentctl.supervision.account.accounts import Account, write_account

#: A back-off lasts no longer.
LONGEST_BACK_OFF_S = 3600.0
#: Those that wait for one account start over so much time, or a tenth of what they waited for.
_MOST_SPREAD_S, _SPREAD = 15.0, 0.1
#: Two clocks are read one after the other, and one of them is slewed.
_CLOCKS_DIFFER_S = 5.0


class Hold(NamedTuple):
    """That an account is left alone; times in seconds from now."""

    account: str
    #: Not above 0: it is over, and those that waited start one after the other.
    left_s: float
    #: Over so much time.
    spread_s: float
    #: The window that was used up; None for a back-off.
    window: str | None = None
    #: When it was told, or chosen, to end: seconds since 1970.
    ends_at: float | None = None

    def left_for(self, worker: WorkerDir) -> float:
        """Return how long a worker has to wait: each another time, and the same at each look."""
        import zlib  # Each shim has this module, and few have somebody to wait for.

        return max(0.0, self.left_s + self.spread_s * (zlib.crc32(os.fsencode(worker.path)) % 1000) / 1000)

    @property
    def until(self) -> str:
        """When it ends, as a time stamp of whole seconds: the same at each look, unless the clock was set."""
        measured = time.time() + self.left_s
        is_as_told = self.ends_at is not None and abs(self.ends_at - measured) < _CLOCKS_DIFFER_S
        return iso_of(round(self.ends_at if is_as_told and self.ends_at is not None else measured))

    def to_json(self) -> dict[str, Any]:
        """Return what views and events tell of it."""
        return {"account": self.account, "until": self.until, "window": self.window}

    @property
    def reason(self) -> str:
        """What is said of a worker that waits."""
        if self.window is None:
            return f"the account of {self.account} is left alone for another {self.left_s:.0f} s after a rate limit"
        return f"the account of {self.account} is used up until {self.until} ({label_of(self.window)} window)"


def tell(account: Account, windows: Iterable[Window]) -> None:
    """Keep what a program told of its account's windows."""
    now = time.time()
    reported = plausible(windows, now)
    make_folder(account.folder)
    with locked(account.folder / ""):
        known = read_quietly(account.path)
        before = _windows_in(known, now)
        after = merged(before, reported)
        if after != before or _is_stale(known, now):
            value = {"at": now, "boot": processes.boot_id(), "sinceBoot": since_boot()}
            write_account(account, {**known, **value, "windows": windows_to_json(after)})


def _is_stale(known: Mapping[str, Any], now: float) -> bool:
    at = finite(known.get("at"))
    return at is None or abs(now - at) > 60


def windows_of(account: Account) -> list[Window]:
    """Return the windows of an account as they were told last, without those that were reset since."""
    known, now = read_quietly(account.path), time.time()
    return [
        window for window in _windows_in(known, now)
        if window.resets_at is None or _left(known, window, now) > 0
    ]  # fmt: skip


def _window_holds(account: Account, known: Mapping[str, Any], any_model: bool) -> Iterable[Hold]:
    now, told_at = time.time(), finite(known.get("at"))
    for window in _windows_in(known, now):
        if window.is_rejected and window.resets_at is not None and (any_model or concerns(window, account.model)):
            length = max(0.0, window.resets_at - (told_at or now))
            yield Hold(account.name, _left(known, window, now), _spread(length), window.name, window.resets_at)


def _windows_in(known: Mapping[str, Any], now: float) -> list[Window]:
    """Return the windows in a file; what can be was told by the clock of that time."""
    told_at = finite(known.get("at"))
    return windows_from(known.get("windows"), now if told_at is None else told_at)


def _left(known: Mapping[str, Any], window: Window, now: float) -> float:
    """Return how long it is until a window is reset, by the clock that says so first; 0 where none can be believed."""
    resets_at = window.resets_at or now
    told_at, told_since = finite(known.get("at")), finite(known.get("sinceBoot"))
    left = resets_at - now
    if told_at is not None and told_since is not None and known.get("boot") == processes.boot_id():
        left = min(left, resets_at - told_at - (since_boot() - told_since))
    return left if left <= LONGEST_S else 0.0


def back_off(account: Account, seconds: float) -> None:
    """Leave an account alone for so long from now; one that is left alone for longer stays so."""
    seconds = min(seconds, LONGEST_BACK_OFF_S)
    make_folder(account.folder)
    with locked(account.folder / ""):
        known = read_quietly(account.path)
        before = _back_off_in(account.name, known)
        if before is None or before.left_s < seconds:
            until = {"boot": processes.boot_id(), "until": since_boot() + seconds, "seconds": seconds}
            until["endsAt"] = time.time() + seconds
            write_account(account, {**known, "backOff": until})


def hold_of(account: Account, *, any_model: bool = False) -> Hold | None:
    """Return that an account is left alone; None where nobody has to wait for it.

    Args:
        any_model: Also by a window of another model than the account's worker uses.
    """
    known = read_quietly(account.path)
    if not known:
        return None
    found = [hold for hold in _window_holds(account, known, any_model) if hold.left_s + hold.spread_s > 0]
    if (pause := _back_off_in(account.name, known)) is not None:
        found.append(pause)
    return max(found, key=lambda hold: hold.left_s, default=None)


def held_now(account: Account, *, any_model: bool = False) -> Hold | None:
    """Return that no request of an account would be answered now."""
    hold = hold_of(account, any_model=any_model)
    return hold if hold is not None and hold.left_s > 0 else None


def _back_off_in(name: str, known: Mapping[str, Any]) -> Hold | None:
    back_off = known.get("backOff")
    if not isinstance(back_off, dict) or back_off.get("boot") != processes.boot_id():
        return None
    until, seconds = finite(back_off.get("until")), finite(back_off.get("seconds"))
    if until is None or seconds is None or not 0 <= seconds <= LONGEST_BACK_OFF_S:
        return None
    hold = Hold(name, until - since_boot(), _spread(seconds), ends_at=finite(back_off.get("endsAt")))
    return hold if -hold.spread_s < hold.left_s <= LONGEST_BACK_OFF_S else None


def _spread(length_s: float) -> float:
    return min(_MOST_SPREAD_S, _SPREAD * length_s)
