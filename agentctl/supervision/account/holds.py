"""Whether an account is on hold for a while: by usage windows that programs report, or by a back-off.

An account is held while one of its windows refuses requests, until the reset that was reported. If none was reported,
it is held for a chosen pause (a back-off). A reset is a moment of the world, so the wall clock counts. Unless the
machine was restarted since, a clock that nobody can set measures it too, and the clock that gets there first ends the
hold. So whatever is done to the wall clock, no worker waits for ever, and one that starts too early is refused again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping

from agentctl.adapters import processes
from agentctl.adapters.clock import iso_of, since_boot
from agentctl.adapters.files import make_folders, read_known
from agentctl.adapters.locks import locked
from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain.text.numbers import finite
from agentctl.domain.tree.windows import (
    LONGEST_S,
    Window,
    concerns,
    label_of,
    merged,
    plausible,
    windows_from,
    windows_to_json,
)
from agentctl.lean import TYPE_CHECKING, Any, NamedTuple
from agentctl.supervision.account.accounts import Account, write_account

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.worker import AwaitedAccount

#: The longest back-off.
LONGEST_BACK_OFF_S = 3600.0
#: The starts of workers that waited for one account are spread over this time, or over a tenth of the wait if less.
_MOST_SPREAD_S, _SPREAD = 15.0, 0.1
#: A tolerance: two clocks are read one after the other, and one of them is slewed.
_CLOCKS_DIFFER_S = 5.0


class Hold(NamedTuple):
    """That an account is on hold; times in seconds from now."""

    account: str
    #: 0 or below: the hold is over, and the workers that waited start one after another.
    left_s: float
    #: The time over which they start.
    spread_s: float
    #: The window that was used up; None for a back-off.
    window: str | None = None
    #: When it ends as reported, or as chosen: seconds since 1970.
    ends_at: float | None = None

    def left_for(self, worker: WorkerDir) -> float:
        """Return how long a worker has to wait: each a different time, which is the same at each look."""
        import zlib  # Many processes load this module, but few of them find a worker that waits.

        return max(0.0, self.left_s + self.spread_s * (zlib.crc32(os.fsencode(worker.path)) % 1000) / 1000)

    @property
    def until(self) -> str:
        """The time stamp of its end in whole seconds: the same at each look, unless the clock was set."""
        measured = time.time() + self.left_s
        is_as_told = self.ends_at is not None and abs(self.ends_at - measured) < _CLOCKS_DIFFER_S
        return iso_of(round(self.ends_at if is_as_told and self.ends_at is not None else measured))

    def to_json(self) -> AwaitedAccount:
        """Return what views and events show of it."""
        return {"account": self.account, "until": self.until, "window": self.window}

    @property
    def reason(self) -> str:
        """The reason that a waiting worker shows."""
        if self.window is None:
            return f"the account of {self.account} is on hold for another {self.left_s:.0f} s after a rate limit"
        return f"the account of {self.account} is used up until {self.until} ({label_of(self.window)} window)"


def tell(account: Account, windows: Iterable[Window]) -> None:
    """Write down what a program reported about its account's windows."""
    now = time.time()
    reported = plausible(windows, now)
    make_folders(account.folder)
    with locked(account.folder / ""):
        known = read_known(account.path)
        before = _windows_in(known, now)
        after = merged(before, reported)
        if after != before or _is_stale(known, now):
            value = {"at": now, "boot": processes.boot_id(), "sinceBoot": since_boot()}
            write_account(account, {**known, **value, "windows": windows_to_json(after)})


def _is_stale(known: Mapping[str, Any], now: float) -> bool:
    at = finite(known.get("at"))
    return at is None or abs(now - at) > 60


def windows_of(account: Account) -> list[Window]:
    """Return the windows of an account as last reported, without those that were reset since."""
    known, now = read_known(account.path), time.time()
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
    """Return the windows in a file; which of them are plausible is judged by the time at which they were reported."""
    told_at = finite(known.get("at"))
    return windows_from(known.get("windows"), now if told_at is None else told_at)


def _left(known: Mapping[str, Any], window: Window, now: float) -> float:
    """Return how long it is until a window is reset, by the clock that gets there first; 0 if that is not plausible."""
    resets_at = window.resets_at or now
    told_at, told_since = finite(known.get("at")), finite(known.get("sinceBoot"))
    left = resets_at - now
    if told_at is not None and told_since is not None and known.get("boot") == processes.boot_id():
        left = min(left, resets_at - told_at - (since_boot() - told_since))
    return left if left <= LONGEST_S else 0.0


def back_off(account: Account, seconds: float) -> None:
    """Hold an account for `seconds` from now; a back-off that lasts longer stays."""
    seconds = min(seconds, LONGEST_BACK_OFF_S)
    make_folders(account.folder)
    with locked(account.folder / ""):
        known = read_known(account.path)
        before = _back_off_in(account.name, known)
        if before is None or before.left_s < seconds:
            until = {"boot": processes.boot_id(), "until": since_boot() + seconds, "seconds": seconds}
            until["endsAt"] = time.time() + seconds
            write_account(account, {**known, "backOff": until})


def hold_of(account: Account, *, any_model: bool = False) -> Hold | None:
    """Return the hold of an account; None if no worker has to wait for it.

    Args:
        any_model: Include windows of other models than the account's worker uses.
    """
    known = read_known(account.path)
    if not known:
        return None
    found = [hold for hold in _window_holds(account, known, any_model) if hold.left_s + hold.spread_s > 0]
    if (pause := _back_off_in(account.name, known)) is not None:
        found.append(pause)
    return max(found, key=lambda hold: hold.left_s, default=None)


def held_now(account: Account, *, any_model: bool = False) -> Hold | None:
    """Return the hold of an account if no request would be answered now."""
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
