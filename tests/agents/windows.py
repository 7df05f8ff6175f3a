"""A usage window of the stand-in's account: how much of it is left, told in headers as the two APIs tell it."""

from __future__ import annotations

import threading
import time
from typing import Any

LENGTH_MINUTES = 300
_PATIENCE_S = 60


class UsageWindow:
    """So many turns are begun, and none goes on until the window is reset; then there is no end of it.

    Args:
        turns: How many turns it lets begin.
        seconds: So long after it was used up it is reset.
        tells: So much too early it says that it is reset, the first time.
    """

    def __init__(self, turns: int, seconds: float, tells: float = 0) -> None:
        self.turns, self.seconds, self.tells = turns, seconds, tells
        self.begun = self.served = self.refused = 0
        #: When it is reset, once it is used up.
        self.resets_at: float | None = None
        self._changed = threading.Condition()

    def take(self, *, is_first: bool) -> bool:
        """Use some of it for a request, the first of a turn or a later one; False where nothing is left.

        The later ones wait until all turns have begun: each of them is stopped in the middle.
        """
        with self._changed:
            if is_first and self.begun < self.turns and self.resets_at is None:
                self.begun += 1
                self._changed.notify_all()
            else:
                self._changed.wait_for(lambda: self.begun >= self.turns, timeout=_PATIENCE_S)
                self.resets_at = self.resets_at or time.time() + self.seconds
                if time.time() < self.resets_at:
                    self.refused += 1
                    return False
            self.served += 1
            return True

    @property
    def is_reset(self) -> bool:
        """Whether it was used up, and has begun anew."""
        return self.resets_at is not None and time.time() >= self.resets_at

    @property
    def told_reset(self) -> int:
        """The time that is told, in whole seconds as both vendors do."""
        if self.resets_at is None or self.is_reset:
            return int(time.time() + LENGTH_MINUTES * 60)
        told = self.resets_at + 1 - (self.tells if time.time() < self.resets_at - self.tells else 0)
        return int(told)

    def used(self) -> float:
        """How much of it is used up, from 0 to 1."""
        return 0.01 if self.is_reset else min(1.0, self.begun / self.turns)

    def headers(self, api: str) -> dict[str, str]:
        """Return what goes with each answer."""
        is_open, at = self.resets_at is None or self.is_reset, str(self.told_reset)
        if api == "responses":
            return {
                "x-codex-primary-used-percent": f"{self.used() * 100:.1f}",
                "x-codex-primary-window-minutes": str(LENGTH_MINUTES),
                "x-codex-primary-reset-at": at,
                "x-codex-secondary-used-percent": "12.5",
                "x-codex-secondary-window-minutes": "10080",
                "x-codex-secondary-reset-at": str(int(time.time()) + 500_000),
            }
        status = "allowed" if is_open else "rejected"
        head = "anthropic-ratelimit-unified-"
        return {
            f"{head}status": status, f"{head}reset": at, f"{head}representative-claim": "five_hour",
            f"{head}5h-status": status, f"{head}5h-reset": at, f"{head}5h-utilization": f"{self.used():.4f}",
            f"{head}7d-status": "allowed", f"{head}7d-reset": str(int(time.time()) + 500_000),
            f"{head}7d-utilization": "0.125", f"{head}fallback-percentage": "0.5",
            f"{head}overage-status": "rejected", f"{head}overage-disabled-reason": "org_level_disabled",
            **({} if is_open else {"retry-after": str(max(1, int(self.told_reset - time.time())))}),
        }  # fmt: skip

    def refusal(self, api: str) -> dict[str, Any]:
        """Return the body of a 429."""
        if api == "responses":
            error = {"type": "usage_limit_reached", "message": "The usage limit has been reached", "plan_type": "plus"}
            return {"error": {**error, "resets_at": self.told_reset,
                              "resets_in_seconds": max(0, self.told_reset - int(time.time()))}}  # fmt: skip
        message = "This request would exceed your account's rate limit. Please try again later."
        return {"type": "error", "error": {"type": "rate_limit_error", "message": message}}
