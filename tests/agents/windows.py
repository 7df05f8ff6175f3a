"""A usage window of the stand-in's account: how much of it is left, told in headers as the two APIs tell it."""

from __future__ import annotations

import threading
import time
from typing import Any

LENGTH_MINUTES = 300
_PATIENCE_S = 60
#: How long it stays used up at least, in seconds.
_REST_S = 4


class UsageWindow:
    """So many turns are begun, and none goes on until the window is reset; then there is no end of it.

    Args:
        turns: How many turns it lets begin.
        seconds: So long after the first request it is reset, and some seconds after it was used up.
        tells: So much too early it says that it is reset, until it has refused one who believed that.
    """

    def __init__(self, turns: int, seconds: float, tells: float = 0) -> None:
        self.turns, self.seconds, self.tells = turns, seconds, tells
        self.begun = self.served = self.refused = 0
        #: When it is reset, from the first request on.
        self.resets_at: float | None = None
        self._is_used_up = False
        self._changed = threading.Condition()

    def take(self, *, is_first: bool) -> bool:
        """Use some of it for a request, the first of a turn or a later one; False where nothing is left.

        The later ones wait until all turns have begun: each of them is stopped in the middle.
        """
        with self._changed:
            self.resets_at = self.resets_at or time.time() + self.seconds
            if is_first and self.begun < self.turns:
                self.begun += 1
                self._changed.notify_all()
            else:
                self._changed.wait_for(lambda: self.begun >= self.turns, timeout=_PATIENCE_S)
                self._use_up(self.resets_at)
                if not self.is_reset:
                    self._refuse()
                    return False
            self.served += 1
            return True

    def _use_up(self, resets_at: float) -> None:
        if not self._is_used_up:
            self._is_used_up = True
            # Where the turns took long to begin; what is told must not be over then.
            self.resets_at = max(resets_at, time.time() + _REST_S + self.tells)

    def _refuse(self) -> None:
        self.refused += 1
        if self.tells and not self._is_early and self.resets_at is not None:
            self.resets_at = max(self.resets_at, time.time() + 1)  # Who believed it may have taken long to come back.

    @property
    def _is_early(self) -> bool:
        """Whether it is told to be reset before it is."""
        return bool(self.tells) and self.refused < 2

    @property
    def is_reset(self) -> bool:
        """Whether it was used up, and has begun anew."""
        is_over = self.resets_at is not None and time.time() >= self.resets_at
        return self._is_used_up and is_over and not self._is_early

    def told_reset(self, *, is_refused: bool) -> int:
        """The time that is told, in whole seconds as both vendors do; to one that is refused, that of its refusal."""
        if self.resets_at is None or (self.is_reset and not is_refused):
            return int(time.time() + LENGTH_MINUTES * 60)
        return int(self.resets_at + 1 - (self.tells if self._is_early else 0))

    def used(self) -> float:
        """How much of it is used up, from 0 to 1."""
        return 0.01 if self.is_reset else min(1.0, self.begun / self.turns)

    def headers(self, api: str, *, is_refused: bool) -> dict[str, str]:
        """Return what goes with an answer, or with a refusal."""
        at, used = self.told_reset(is_refused=is_refused), 1.0 if is_refused else self.used()
        if api == "responses":
            return {
                "x-codex-primary-used-percent": f"{used * 100:.1f}",
                "x-codex-primary-window-minutes": str(LENGTH_MINUTES),
                "x-codex-primary-reset-at": str(at),
                "x-codex-secondary-used-percent": "12.5",
                "x-codex-secondary-window-minutes": "10080",
                "x-codex-secondary-reset-at": str(int(time.time()) + 500_000),
            }
        status = "rejected" if is_refused else "allowed"
        head = "anthropic-ratelimit-unified-"
        return {
            f"{head}status": status, f"{head}reset": str(at), f"{head}representative-claim": "five_hour",
            f"{head}5h-status": status, f"{head}5h-reset": str(at), f"{head}5h-utilization": f"{used:.4f}",
            f"{head}7d-status": "allowed", f"{head}7d-reset": str(int(time.time()) + 500_000),
            f"{head}7d-utilization": "0.125", f"{head}fallback-percentage": "0.5",
            f"{head}overage-status": "rejected", f"{head}overage-disabled-reason": "org_level_disabled",
            **({"retry-after": str(max(1, int(at - time.time())))} if is_refused else {}),
        }  # fmt: skip

    def refusal(self, api: str) -> dict[str, Any]:
        """Return the body of a 429."""
        if api == "responses":
            error = {"type": "usage_limit_reached", "message": "The usage limit has been reached", "plan_type": "plus"}
            at = self.told_reset(is_refused=True)
            return {"error": {**error, "resets_at": at, "resets_in_seconds": max(0, at - int(time.time()))}}
        message = "This request would exceed your account's rate limit. Please try again later."
        return {"type": "error", "error": {"type": "rate_limit_error", "message": message}}
