"""JSON as stdout takes it: in its encoding, and on a terminal with nothing that the terminal would obey."""

from __future__ import annotations

import json
import sys

from agentctl.interfaces.commands.model.surface import is_terminal
from agentctl.interfaces.words.value_words import JSON_ESCAPES
from agentctl.lean import Any


def as_json(value: Any) -> str:
    """Return one compact JSON document that is safe wherever stdout goes.

    Where stdout cannot print every character, `backslashreplace` would write escapes that JSON does not have.
    """
    return fit_for_stdout(json.dumps(value, ensure_ascii=not prints_unicode(), separators=(",", ":")))


def fit_for_stdout(text: str) -> str:
    """Escape each byte that is not UTF-8, and what a terminal would obey.

    In a locale that is not in UTF-8, stdout would print such a byte as it was typed.
    """
    text = text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
    return text.translate(JSON_ESCAPES) if is_terminal(sys.stdout) else text


def prints_unicode() -> bool:
    return (sys.stdout.encoding or "").lower().startswith("utf")
