"""The JSON schemas of what the tools answer.

They are made from the types of `domain/documents`, and lie in a file: an agent's program waits for the list of tools,
and making them takes longer than all else that it waits for.
"""

from __future__ import annotations

import json
import os
from functools import cache
from typing import Any

FILE = os.path.join(os.path.dirname(__file__), "answer_schemas.json")


def answer_schema(answers: str) -> dict[str, Any]:
    """Return the schema of the answers of a tool.

    Args:
        answers: As the tool declares them.
    """
    found: dict[str, Any] = _schemas()[answers]
    return found


@cache
def _schemas() -> dict[str, Any]:
    with open(FILE, encoding="utf-8") as file:
        found: dict[str, Any] = json.load(file)
    return found
