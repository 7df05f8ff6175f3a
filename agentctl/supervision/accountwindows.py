"""The usage windows of an account: kept as its programs tell them, and what follows from them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from agentctl.adapters import processes
from agentctl.adapters.clock import since_boot
from agentctl.adapters.files import make_folder, read_quietly
from agentctl.adapters.locks import locked
from agentctl.domain.numbers import finite
from agentctl.domain.windows import LONGEST_S, Window, concerns, merged, plausible, windows_from
from agentctl.domain.windows import to_json as windows_to_json
from agentctl.lean import Any
from agentctl.supervision.accounts import Account, Hold, spread, write_account


def tell(account: Account, windows: Iterable[Window]) -> None:
    """Keep what a program told of its account's windows."""
    now = time.time()
    told = plausible(windows, now)
    make_folder(account.folder)
    with locked(account.folder / ""):
        known = read_quietly(account.path)
        before = _windows_in(known, now)
        after = merged(before, told)
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


def window_holds(account: Account, known: Mapping[str, Any], any_model: bool) -> Iterable[Hold]:
    now, told_at = time.time(), finite(known.get("at"))
    for window in _windows_in(known, now):
        if window.is_rejected and window.resets_at is not None and (any_model or concerns(window, account.model)):
            length = max(0.0, window.resets_at - (told_at or now))
            yield Hold(account.name, _left(known, window, now), spread(length), window.name, window.resets_at)


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
