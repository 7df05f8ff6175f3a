"""Usage windows: how much of its five-hour or weekly allowance an account has used up, and when that is reset.

The figures come from agent programs, which have them from servers: impossible values are dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from agentctl.domain.names import is_name
from agentctl.domain.text.numbers import finite
from agentctl.lean import Any, NamedTuple

#: The longest window, a week, and a day for clocks that differ.
LONGEST_S = 8 * 86_400.0
#: A window of which this much is used up, in per cent, is nearly used up.
NEAR_PERCENT = 80.0
#: A reset time that has moved by more than this is that of another window.
_MOVED_S = 60.0
#: A used-up window that is reported below this was reset early: no single request uses up the rest.
_USED_PERCENT = 50.0
_MOST_WINDOWS = 16
_LABELS = {"five_hour": "5 h", "seven_day": "week"}
_BY_MINUTES = {300: "five_hour", 10_080: "seven_day"}


class Window(NamedTuple):
    """One window of an account; times are seconds since 1970."""

    #: `five_hour`, `seven_day`, `seven_day_MODEL`, `90_minutes`, or `requests` where a server names only a time.
    name: str
    used_percent: float | None = None
    resets_at: float | None = None
    #: Requests are refused until it is reset.
    is_rejected: bool = False

    @property
    def is_near(self) -> bool:
        """Return whether it is nearly used up."""
        return self.is_rejected or (self.used_percent or 0) >= NEAR_PERCENT

    @property
    def label(self) -> str:
        """The window's name for people."""
        return label_of(self.name)

    def to_json(self) -> dict[str, Any]:
        """Return the window as files and JSON output have it."""
        return {
            "window": self.name,
            "usedPercent": self.used_percent,
            "resetsAt": self.resets_at,
            "isRejected": self.is_rejected,
        }


def label_of(name: str) -> str:
    """Return the name of a window for people.

    >>> [label_of(name) for name in ("five_hour", "seven_day", "seven_day_opus", "90_minutes", "overage")]
    ['5 h', 'week', 'week, opus', '90 min', 'overage']
    """
    if name in _LABELS:
        return _LABELS[name]
    minutes, _, unit = name.partition("_")
    if unit == "minutes" and minutes.isdigit():
        return f"{minutes} min"
    return f"week, {model}" if (model := _model_of(name)) else name


def name_of_minutes(minutes: object) -> str | None:
    """Return the name of a window that lasts this many minutes; None where no window can.

    >>> [name_of_minutes(value) for value in (300, 10080, 90, 0, "5 h", float("nan"))]
    ['five_hour', 'seven_day', '90_minutes', None, None, None]
    """
    number = finite(minutes)
    if number is None or not 1 <= number * 60 <= LONGEST_S:
        return None
    return _BY_MINUTES.get(int(number), f"{int(number)}_minutes")


def window_from(name: object, used_percent: object, resets_at: object, *, is_rejected: object = False) -> Window | None:
    """Return a reported window without values that are not numbers; None where its name is not a name.

    >>> window_from("five_hour", float("nan"), "tomorrow")
    Window(name='five_hour', used_percent=None, resets_at=None, is_rejected=False)
    """
    if not isinstance(name, str) or not is_name(name):
        return None
    used, at = finite(used_percent), finite(resets_at)
    used = None if used is None else min(max(float(used), 0.0), 100.0)
    return Window(name, used, None if at is None else float(at), is_rejected is True)


def plausible(windows: Iterable[Window], now: float) -> list[Window]:
    """Return windows without reset times that are impossible.

    >>> [window.resets_at for window in plausible([Window("x", 1, 2000), Window("x", 1, 253402300800)], 1000)]
    [2000, None]
    """
    return [
        window if window.resets_at is None or abs(window.resets_at - now) <= LONGEST_S
        else window._replace(resets_at=None)
        for window in windows
    ]  # fmt: skip


def windows_from(value: object, now: float) -> list[Window]:
    """Return the windows in a file, as `to_json` writes them."""
    rows = [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []
    found = (
        window_from(row.get("window"), row.get("usedPercent"), row.get("resetsAt"), is_rejected=row.get("isRejected"))
        for row in rows[:_MOST_WINDOWS]
    )
    return plausible(filter(None, found), now)


def merged(known: Iterable[Window], news: Iterable[Window]) -> list[Window]:
    """Return the known windows of an account, updated by newly reported ones.

    A request that was under way while another one was refused still reports the window as open and less used. That
    does not lift the refusal. Only a reset does: a later reset time, or far less used up.
    """
    windows = {window.name: window for window in known}
    for window in news:
        before = windows.pop(window.name, None)  # The latest report comes last.
        stays = before is not None and before.is_rejected and not window.is_rejected and _is_same(before, window)
        windows[window.name] = before if stays and before is not None else window
    return list(windows.values())[-_MOST_WINDOWS:]


def _is_same(before: Window, now: Window) -> bool:
    """Return whether a window has not been reset since it was used up."""
    moved = 0.0 if now.resets_at is None or before.resets_at is None else now.resets_at - before.resets_at
    return moved <= _MOVED_S and (now.used_percent is None or now.used_percent >= _USED_PERCENT)


def concerns(window: Window, model: str | None) -> bool:
    """Return whether a window applies to a model; a window of a single model does not where the model is unknown.

    >>> [concerns(Window("seven_day_opus"), model) for model in ("claude-opus-5", "claude-sonnet-5-5", None)]
    [True, False, False]
    """
    own = _model_of(window.name)
    return own is None or own in (model or "").lower()


def _model_of(name: str) -> str | None:
    head, _, model = name.partition("seven_day_")
    return model.lower() if not head and model else None


def windows_to_json(windows: Iterable[Window]) -> list[Mapping[str, Any]]:
    """Return windows as a file has them."""
    return [window.to_json() for window in windows]
