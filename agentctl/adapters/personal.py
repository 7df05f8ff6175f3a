"""Where a person's own files are: below folders that variables name, by absolute paths alone (XDG Base Directory).

A relative one would be another folder for each command, in whatever project it is given.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from agentctl.adapters.paths import FilePath
from agentctl.errors import UsageError


def named_folder(environ: Mapping[str, str], variable: str) -> FilePath | None:
    """Return the folder that a variable names; None where it is not set, or relative and so to be ignored."""
    path = environ.get(variable, "")
    return FilePath(path.rstrip("/") or "/") if os.path.isabs(path) else None


def home_folder(environ: Mapping[str, str]) -> FilePath:
    """Return the person's home folder; `/` where neither HOME nor the system names one, as a container has it."""
    return named_folder(environ, "HOME") or FilePath(_home_of_user())


def _home_of_user() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return "/"


def _in_home(environ: Mapping[str, str], name: str) -> FilePath:
    return FilePath(os.path.join(home_folder(environ), name))


def settings_folder(environ: Mapping[str, str]) -> FilePath:
    """Return the folder of the settings of all programs (XDG Base Directory)."""
    return named_folder(environ, "XDG_CONFIG_HOME") or _in_home(environ, ".config")


def config_folder(environ: Mapping[str, str]) -> FilePath:
    """Return the folder of a person's config.yaml, agents, templates, trust and key (XDG Base Directory)."""
    return settings_folder(environ) / "agentctl"


def own_programs_file(environ: Mapping[str, str]) -> FilePath:
    """Return the file of the programs that speak ACP which a person has added."""
    return config_folder(environ) / "acp.yaml"


def state_folder(environ: Mapping[str, str]) -> FilePath:
    """Return the folder of data that is worth keeping but is not a setting (XDG Base Directory)."""
    return (named_folder(environ, "XDG_STATE_HOME") or _in_home(environ, ".local/state")) / "agentctl"


def is_ones_own(found: os.stat_result) -> bool:
    """Return whether a file or folder belongs to this person, and nobody else can write to it."""
    return found.st_uid == os.geteuid() and not found.st_mode & 0o022


def closing_step(path: str | os.PathLike[str]) -> str:
    """Return the command after which nobody else can write to a file of this person."""
    import shlex  # Only for a refusal.

    return f"chmod go-w {shlex.quote(os.fspath(path))}"


def check_closed(path: str | os.PathLike[str], found: os.stat_result, does: str) -> None:
    """Raise `UsageError` where others can write a file of this person, which does what only they may do."""
    if not is_ones_own(found):
        raise UsageError(f"{path} {does}, and others can write it", hint=closing_step(path))


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
    check_closed(path, found, f"says {says}")
    return True
