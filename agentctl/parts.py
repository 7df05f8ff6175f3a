"""Loads a part of agentctl whose module is only known by name at run time."""

from __future__ import annotations

from importlib import import_module

from agentctl.lean import Any


def part(module: str, name: str) -> Any:
    """Return what a module of agentctl has under a name.

    Raises:
        ImportError: It is not there: as with `from MODULE import NAME`, also where an upgrade has emptied the file.
    """
    try:
        return getattr(import_module(module), name)
    except AttributeError as error:
        raise ImportError(f"cannot import name {name!r} from {module!r}", name=module) from error
