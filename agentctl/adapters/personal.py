"""Where a person's own files are."""

from __future__ import annotations

import os
from collections.abc import Mapping

from agentctl.adapters.paths import FilePath
from agentctl.errors import UsageError


def config_folder(environ: Mapping[str, str]) -> FilePath:
    """Return the folder of a person's config.yaml, agents, templates, trust and key (XDG Base Directory)."""
    base = environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return FilePath(base) / "agentctl"


def own_programs_file(environ: Mapping[str, str]) -> FilePath:
    """Return the file of the programs that speak ACP which a person has added."""
    return config_folder(environ) / "acp.yaml"


def state_folder(environ: Mapping[str, str]) -> FilePath:
    """Return the folder of data that is worth keeping but is not a setting (XDG Base Directory)."""
    base = environ.get("XDG_STATE_HOME") or os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".local/state")
    return FilePath(base) / "agentctl"


def is_ones_own(found: os.stat_result) -> bool:
    """Return whether a file or folder belongs to this person, and nobody else can write to it."""
    return found.st_uid == os.geteuid() and not found.st_mode & 0o022


def is_there(path: str | os.PathLike[str], says: str) -> bool:
    """Return whether a person's own file exists.

    Args:
        says: What it decides, for which reason only they may write it.

    Raises:
        UsageError: Others can write it.
    """
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    if not is_ones_own(found):
        raise UsageError(f"{path} says {says}, and others can write it", hint=f"chmod go-w {path}")
    return True
