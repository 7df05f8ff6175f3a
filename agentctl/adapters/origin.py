"""Whether a task was made here, by this person, or came with files that somebody else wrote.

A cloned repository may bring a task directory. What `task.yaml` allows there is nobody's word until a person has given
it: `origin` in the task's folder holds a code that only this person's own key (`~/.config/agentctl/key`) can make.
"""

from __future__ import annotations

import contextlib
import hmac
import os
from collections.abc import Mapping
from pathlib import Path

from agentctl.adapters.files import create_whole, make_folder, write_whole
from agentctl.adapters.personal import config_folder
from agentctl.adapters.taskdir import TaskDir
from agentctl.errors import Refused, StorageError

_KEY_BYTES = 32


def mark_own(task: TaskDir, environ: Mapping[str, str]) -> None:
    """Note that this person made a task; without a home to keep a key in, nothing is noted."""
    with contextlib.suppress(OSError, StorageError):
        file = _key_file(environ)
        if not file.exists():
            make_folder(file.parent)
            create_whole(file, os.urandom(_KEY_BYTES).hex().encode() + b"\n")
        write_whole(task.origin, _code(task, file.read_bytes().strip()).encode() + b"\n", durable=False)


def is_own(task: TaskDir, environ: Mapping[str, str]) -> bool:
    """Tell whether this person made a task, in the place where it lies now."""
    try:
        told, key = task.origin.read_text(encoding="ascii").strip(), _key_file(environ).read_bytes().strip()
    except (OSError, UnicodeDecodeError):
        return False
    return bool(key) and hmac.compare_digest(told, _code(task, key))


def check_own(task: TaskDir, environ: Mapping[str, str], doing: str) -> None:
    """Raise `Refused` where a task's files, by which something would be run, may be somebody else's."""
    if not is_own(task, environ):
        raise Refused(
            f"{task.path} was not made here by you: {doing} would run what its files say",
            hint="spawn anew what you want to run, in a task of your own: agentctl new TITLE",
        )


def _code(task: TaskDir, key: bytes) -> str:
    return hmac.new(key, os.fsencode(os.path.realpath(task.path)), "sha256").hexdigest()


def _key_file(environ: Mapping[str, str]) -> Path:
    return config_folder(environ) / "key"
