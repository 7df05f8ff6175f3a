"""A usage window of the stand-in's account: how much of it is left, told in headers as the two APIs tell it."""

from __future__ import annotations

import threading
import time
from typing import Any

LENGTH_MINUTES = 300


class UsageWindow:
    """So many requests are served, then none until the window is reset; then as many again.

    Args:
        most: How many requests it holds.
        seconds: So long after it was used up it is reset.
        told: What it says of the time of its reset, where that is another one.
    """

    def __init__(self, most: int, seconds: float, told: float | None = None) -> None:
        self.most, self.seconds, self.told = most, seconds, told
        self.served = self.refused = 0
        #: When it was used up first.
        self.resets_at: float | None = None
        self._used = 0
        self._lock = threading.Lock()

    def take(self) -> bool:
        """Use some of it; False where nothing is left."""
        with self._lock:
            if self.resets_at is not None and time.time() >= self.resets_at:
                self.resets_at, self._used, self.most = None, 0, 1_000_000
            if self._used >= self.most:
                self.resets_at = self.resets_at or time.time() + self.seconds
                self.refused += 1
                return False
            self._used += 1
            self.served += 1
            return True

    @property
    def told_reset(self) -> int:
        """The time that is told, in whole seconds as both vendors do."""
        return int(self.told or self.resets_at or time.time() + self.seconds) + 1

    def used(self) -> float:
        """How much of it is used up, from 0 to 1."""
        return min(1.0, self._used / self.most)

    def headers(self, api: str) -> dict[str, str]:
        """Return what goes with each answer."""
        is_open, at = self.resets_at is None, str(self.told_reset)
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
