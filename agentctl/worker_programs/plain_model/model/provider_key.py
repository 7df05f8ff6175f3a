"""The key of a provider: read once, from the environment or from a command that prints it, and hidden elsewhere."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from typing import Any

from agentctl.adapters.searchpath import settled
from agentctl.domain.states import Reason
from agentctl.worker_programs.plain_model.model.refusals import Failure

_COMMAND_S = 60
#: A shorter text is not a secret (`EMPTY`, `ollama`), and may stand anywhere.
_SHORTEST = 8
_HIDDEN = "[key]"


def key_of(provider: Mapping[str, Any]) -> str | None:
    """Return the key; None where the provider needs none.

    Raises:
        Failure: There is none, or the command failed. What it printed is not told.
    """
    variable = provider.get("keyVariable")
    given = os.environ.get(str(variable), "").strip() if variable else ""
    if given:
        return given if given.isascii() and given.isprintable() else _refuse(f"{variable} does not hold a key")
    if command := provider.get("keyCommand"):
        return _printed(list(map(str, command)))
    if variable and not provider.get("local"):
        return _refuse(f"there is no key for {provider.get('name')}: set {variable} where the worker is spawned")
    return None


def _printed(command: list[str]) -> str:
    name = command[0]
    try:
        # Not in the agent's folder: many programs obey what lies where they are started.
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_COMMAND_S, check=False, process_group=0,
            cwd="/", env=settled(os.environ),
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        why = "took too long" if isinstance(error, subprocess.TimeoutExpired) else getattr(error, "strerror", "failed")
        return _refuse(f"the keyCommand {name} printed no key: {why}")
    key = done.stdout.decode("utf-8", "replace").strip()
    if done.returncode or not key or not key.isascii() or not key.isprintable():
        return _refuse(f"the keyCommand {name} printed no key: it ended with exit code {done.returncode}")
    return key


def _refuse(message: str) -> str:
    raise Failure(Reason.AUTH, message)


class Mask:
    """Hides the key in a text, however a server, a tool or a model came to repeat it."""

    def __init__(self, key: str | None) -> None:
        forms = {key, json.dumps(key)[1:-1]} if key and len(key) >= _SHORTEST else set()
        self._forms = sorted((form for form in forms if form), key=len, reverse=True)

    def text(self, text: str) -> str:
        """Return a text without the key."""
        for form in self._forms:
            text = text.replace(form, _HIDDEN)
        return text

    def data(self, data: bytes) -> bytes:
        """Return bytes without the key."""
        for form in self._forms:
            data = data.replace(form.encode(), _HIDDEN.encode())
        return data

    @property
    def overlap(self) -> int:
        """How many bytes of one chunk may be the beginning of a key that the next one ends."""
        return max((len(form) - 1 for form in self._forms), default=0)
