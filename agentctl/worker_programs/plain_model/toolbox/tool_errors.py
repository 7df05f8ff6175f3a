"""What a tool answers where it cannot do what was asked: the model reads it, and goes on."""

from __future__ import annotations


class ToolError(Exception):
    """A tool failed; the message says why, and where there is one, the next step."""
