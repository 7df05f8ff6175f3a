"""How deeply a JSON value is nested: one that could be read may still be too deep to be written, compared or shown."""

from __future__ import annotations

from agentctl.lean import Any

#: Lists and objects within each other. Python gives up at a thousand calls, whoever has made them.
DEEPEST = 300
#: Stands for what is deeper.
TOO_DEEP = "(nested too deeply to be shown)"


def is_too_deep(value: Any) -> bool:
    """Return whether the lists and objects of a value are nested deeper than any of ours.

    >>> from functools import reduce
    >>> [is_too_deep(reduce(lambda inner, _: [inner], range(count), [])) for count in (299, 300)]
    [False, True]
    """
    level = [value]
    for _ in range(DEEPEST):
        level = [item for one in level for item in _items_of(one) if isinstance(item, (dict, list))]
        if not level:
            return False
    return True


def shallow(value: dict[str, Any]) -> dict[str, Any]:
    """Return an object with words in place of those of its values that are too deep to be shown.

    >>> from functools import reduce
    >>> shallow({"a": [1], "b": reduce(lambda inner, _: [inner], range(500), [])})
    {'a': [1], 'b': '(nested too deeply to be shown)'}
    """
    return {key: TOO_DEEP if is_too_deep(item) else item for key, item in value.items()}


def _items_of(value: Any) -> Any:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def may_be_too_deep(data: bytes) -> bool:
    """Return whether JSON text has enough brackets to be too deep; most has not, and need not be looked at."""
    return data.count(b"[") + data.count(b"{") > DEEPEST
