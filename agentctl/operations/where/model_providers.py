"""Which providers of models a person has: the shipped rows, changed by their own ~/.config/agentctl/providers.yaml."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import agentctl
from agentctl.adapters.document import Document
from agentctl.adapters.files import storage_errors
from agentctl.adapters.known import known_files
from agentctl.adapters.opening import read_bytes
from agentctl.adapters.personal import config_folder, is_there
from agentctl.domain.agent.permissions import BadValue
from agentctl.drivers.llm.providers import Rows, read_providers
from agentctl.errors import UsageError
from agentctl.world_errors import missing_part

_SHIPPED = Path(agentctl.__file__).resolve().parent / "drivers" / "llm" / "providers.yaml"


def personal_providers() -> Path:
    """Return the path of a person's own rows."""
    return Path(config_folder(os.environ)) / "providers.yaml"


def provider_rows() -> Rows:
    """Return the rows that apply.

    Raises:
        UsageError: A file is not well-formed (the message names file and line), or others can write the person's own:
            it says where keys are sent, and which command prints them.
    """
    rows = _read(_SHIPPED, None)
    own = personal_providers()
    return _read(own, rows) if is_there(own, "where keys are sent") else rows


def _read(path: Path, base: Rows | None) -> Rows:
    try:
        with storage_errors(path, "read"):
            data = read_bytes(os.path.realpath(path))
    except OSError as error:
        if missing_part(error) is not None:
            raise
        raise UsageError(f"cannot read {path}: {error}", hint="it holds providers of models") from error
    known = known_files(os.environ)
    said = known.said("providers", path, data)
    if said is not None:
        return read_providers(said, base)
    document = _parsed(path, data)
    try:
        rows = read_providers(document.value, base)
    except BadValue as error:
        raise document.error(error.keys, error.message) from error
    known.keep("providers", path, data, document.value)
    known.save()
    return rows


def _parsed(path: Path, data: bytes) -> Document:
    from agentctl.adapters.yamldoc import parse_yaml  # Only where a file has changed.

    return parse_yaml(path, data)


def named_keys(environ: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return (provider, variable) of each provider whose key is in an environment."""
    found: list[tuple[str, str]] = []
    for name, row in provider_rows().providers.items():
        variable: Any = row.get("keyVariable")
        if variable and environ.get(variable):
            found.append((name, variable))
    return found


def own_providers() -> frozenset[str]:
    """Return the names of the providers in a person's own file, which `provider_rows` has read."""
    own = personal_providers()
    try:
        value = _parsed(own, read_bytes(os.path.realpath(own))).value
    except (FileNotFoundError, NotADirectoryError):
        return frozenset()
    return frozenset(map(str, value.get("providers") or ()))
