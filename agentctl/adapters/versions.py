"""Which version an installed program has: asked once, and kept until its file is another one."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from time import time
from typing import Any

from agentctl.adapters.files import make_folders, read_known, to_json, write_whole
from agentctl.adapters.personal import state_folder
from agentctl.errors import StorageError

_KEPT = "versions.json"
#: How long a program may take to tell its version.
_PATIENCE_S = 20
#: How long an answer counts: what starts a program may stay the same while another one takes its place behind it. That
#: it told none may be due to a busy machine.
_COUNTS_S, _SILENCE_COUNTS_S = 86_400.0, 600.0
_MOST_KEPT = 64


def version_of(program: str, argv: Sequence[str]) -> str | None:
    """Return the version that a program reports; None if it reports none in time.

    Args:
        argv: The arguments that make it report its version.
    """
    path = os.path.realpath(program)
    try:
        found = os.stat(path)
    except OSError:
        return None
    mark = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns, *argv)
    return _version(program, tuple(argv), path, mark, int(time() / _SILENCE_COUNTS_S))


@lru_cache(maxsize=64)
def _version(program: str, argv: Sequence[str], path: str, mark: tuple[object, ...], _when: int) -> str | None:
    """Return the version of a program whose file has a mark: in a batch, it is looked up once."""
    file = state_folder(os.environ) / _KEPT
    try:
        known = _entries(read_known(file))
    except StorageError:
        return _ask(program, argv)  # What is kept there stays.
    entry = known.get(path)
    if entry is not None and entry.get("of") == list(mark) and _counts(entry):
        version: str | None = entry["version"]
        return version
    version = _ask(program, argv)
    _keep(file, {**known, path: {"of": list(mark), "version": version, "at": time()}})
    return version


def _entries(kept: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what is kept, as far as it is an answer of a program."""
    return {path: entry for path, entry in kept.items() if _is_entry(entry)}


def _is_entry(entry: Any) -> bool:
    if not isinstance(entry, dict) or not isinstance(entry.get("at"), (int, float)):
        return False
    version = entry.get("version", 0)
    return version is None or (isinstance(version, str) and _VERSION.fullmatch(version.encode()) is not None)


def _counts(entry: Mapping[str, Any]) -> bool:
    age_s = time() - float(entry["at"])
    return 0 <= age_s < (_SILENCE_COUNTS_S if entry["version"] is None else _COUNTS_S)


def _keep(file: str | os.PathLike[str], known: Mapping[str, Mapping[str, Any]]) -> None:
    """Write what is known, the newest answers only; where that cannot be, a program is asked again."""
    newest = sorted(known.items(), key=lambda item: item[1]["at"])[-_MOST_KEPT:]
    with contextlib.suppress(OSError, StorageError):
        make_folders(os.path.dirname(file))
        write_whole(file, to_json(dict(newest)), durable=False)


_VERSION = re.compile(rb"\d{1,9}\.\d{1,9}(?:\.\d{1,9})?", re.ASCII)


def _ask(program: str, argv: Sequence[str]) -> str | None:
    import subprocess  # Only where nothing is known yet.

    try:
        done = subprocess.run(
            [program, *argv],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=_PATIENCE_S,
            env={**os.environ, "NO_COLOR": "1"},
            cwd="/",  # Nothing of a project has a say in it.
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _VERSION.search(done.stdout or done.stderr)
    return found.group().decode() if found else None
